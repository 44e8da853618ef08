//! [`Window`]: shape and strides over memory, checked once, when it is made.

use std::ops::Range;

use crate::element::Element;
use crate::error::Error;
use crate::host_matrix::HostMatrix;
use crate::layout::Layout;
use crate::memory::{Memory, Place};

/// A window on memory. Invariant: `layout` starting at `offset` lies inside the memory.
#[derive(Debug)]
pub(crate) struct Window<'a, T> {
    memory: Memory<'a, T>,
    offset: usize,
    layout: Layout,
}

impl<T> Clone for Window<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Window<'_, T> {}

impl<'a, T: Element> Window<'a, T> {
    pub(crate) fn new(memory: Memory<'a, T>, offset: usize, layout: Layout) -> Result<Self, Error> {
        let end = layout.span().and_then(|span| span.checked_add(offset));
        if end.is_none_or(|end| end > memory.len()) {
            return Err(Error::OutOfBounds {
                layout,
                offset,
                elements: memory.len(),
            });
        }
        Ok(Window {
            memory,
            offset,
            layout,
        })
    }

    pub(crate) fn transposed(self) -> Self {
        Window {
            layout: self.layout.transposed(),
            ..self
        }
    }

    pub(crate) fn slice(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self, Error> {
        check_range("rows", &rows, self.layout.rows)?;
        check_range("columns", &cols, self.layout.cols)?;
        let layout = Layout {
            rows: rows.len(),
            cols: cols.len(),
            ..self.layout
        };
        // An empty slice may start one past the last row, which may be outside the
        // memory, so its offset stays where it is.
        let offset = if layout.is_empty() {
            self.offset
        } else {
            self.offset + rows.start * layout.row_stride + cols.start * layout.col_stride
        };
        Window::new(self.memory, offset, layout)
    }

    pub(crate) fn step(self, row_step: usize, col_step: usize) -> Result<Self, Error> {
        for (axis, step) in [("rows", row_step), ("columns", col_step)] {
            if step == 0 {
                return Err(Error::ZeroStep { axis });
            }
        }
        let layout = Layout {
            rows: self.layout.rows.div_ceil(row_step),
            cols: self.layout.cols.div_ceil(col_step),
            // The stride may only overflow if there is a single row or column, and then
            // nothing uses it.
            row_stride: self.layout.row_stride.saturating_mul(row_step),
            col_stride: self.layout.col_stride.saturating_mul(col_step),
            ..self.layout
        };
        Window::new(self.memory, self.offset, layout)
    }

    pub(crate) fn with_layout(self, layout: Layout) -> Result<Self, Error> {
        Window::new(self.memory, self.offset, layout)
    }

    /// Matrix `index` of the batch.
    pub(crate) fn batch(self, index: usize) -> Result<Self, Error> {
        let end = index.saturating_add(1);
        check_range("matrices", &(index..end), self.layout.batches)?;
        let layout = self.layout.matrix();
        // As for a slice, an empty window stays where it is.
        let offset = if layout.is_empty() {
            self.offset
        } else {
            self.offset + index * self.layout.batch_stride
        };
        Window::new(self.memory, offset, layout)
    }

    pub(crate) fn memory(self) -> Memory<'a, T> {
        self.memory
    }

    /// The elements of a window on the CPU device, whose memory is the process's.
    pub(crate) fn host_matrix(self) -> HostMatrix<T> {
        let Place::Host(first) = self.memory.place() else {
            unreachable!("the caller has checked the device");
        };
        HostMatrix {
            // SAFETY: a window starts inside its memory.
            first: unsafe { first.add(self.offset) },
            layout: self.layout,
        }
    }

    pub(crate) fn offset(self) -> usize {
        self.offset
    }

    pub(crate) fn layout(self) -> Layout {
        self.layout
    }

    /// Address of element (0, 0), in device memory on a GPU, else in host memory.
    pub(crate) fn address(self) -> u64 {
        self.memory.address() + (self.offset * size_of::<T>()) as u64
    }
}

fn check_range(axis: &'static str, range: &Range<usize>, len: usize) -> Result<(), Error> {
    if range.start > range.end || range.end > len {
        return Err(Error::SliceRange {
            axis,
            start: range.start,
            end: range.end,
            len,
        });
    }
    Ok(())
}
