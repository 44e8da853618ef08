//! [`HostMatrix`]: a matrix in the memory of the process.

use crate::layout::Layout;

/// A matrix, a part of one, or a batch, in the memory of the process.
#[derive(Clone, Copy)]
pub(crate) struct HostMatrix<T> {
    /// The first element.
    pub(crate) first: *mut T,
    pub(crate) layout: Layout,
}

impl<T: Copy> HostMatrix<T> {
    /// The address of element (row, col), which must lie inside the matrix.
    pub(crate) fn element(self, row: usize, col: usize) -> *mut T {
        let Layout {
            row_stride,
            col_stride,
            ..
        } = self.layout;
        self.first.wrapping_add(row * row_stride + col * col_stride)
    }

    /// Matrix `index` of a batch.
    pub(crate) fn batch(self, index: usize) -> Self {
        HostMatrix {
            first: self.first.wrapping_add(index * self.layout.batch_stride),
            layout: self.layout.matrix(),
        }
    }

    /// The `rows`×`cols` elements from (row, col) on, which must lie inside the matrix.
    pub(crate) fn part(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        HostMatrix {
            // The place of an empty part may be past the end.
            first: self.element(row, col),
            layout: Layout {
                rows,
                cols,
                ..self.layout
            },
        }
    }

    pub(crate) fn transposed(self) -> Self {
        HostMatrix {
            layout: self.layout.transposed(),
            ..self
        }
    }
}
