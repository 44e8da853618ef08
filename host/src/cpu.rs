//! The CPU device: the `gemm` crate, in f32.
//!
//! f32 operands are multiplied in place. 16-bit operands are widened to
//! f32 panel by panel, so that the accumulators are f32 over all of K, as on the
//! GPU; an element of a 16-bit C is rounded once, from its finished accumulator.

use gemm::Parallelism;
use gpu_kernels::DType;

use crate::element::{Element, Output};
use crate::error::Error;
use crate::host_memory::HostBuffer;
use crate::layout::Layout;

/// Number of rows of A that are widened at once. Widening them takes little time compared
/// to their use, and they need little memory.
const PANEL_ROWS: usize = 512;

/// Number of columns of B that are widened at once.
const PANEL_COLS: usize = 2048;

/// A product on the CPU, with its workspace.
#[derive(Debug)]
pub(crate) struct CpuPlan {
    a_panel: HostBuffer<f32>,
    b_panel: HostBuffer<f32>,
    c_panel: HostBuffer<f32>,
}

/// A matrix, or a part of one, in the process's memory.
#[derive(Clone, Copy)]
pub(crate) struct HostMatrix<T> {
    /// Element (0, 0).
    pub(crate) first: *mut T,
    pub(crate) layout: Layout,
}

impl<T: Element> HostMatrix<T> {
    /// The `rows`×`cols` elements from (row, col) on, which must lie inside the matrix.
    fn part(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        let Layout {
            row_stride,
            col_stride,
            ..
        } = self.layout;
        HostMatrix {
            // The addition wraps, because an empty part may start past the end.
            first: self.first.wrapping_add(row * row_stride + col * col_stride),
            layout: Layout {
                rows,
                cols,
                ..self.layout
            },
        }
    }

    fn transposed(self) -> Self {
        HostMatrix {
            layout: self.layout.transposed(),
            ..self
        }
    }
}

impl HostMatrix<f32> {
    /// A matrix in `panel`, of the shape of `like` and contiguous in the same
    /// direction.
    fn scratch(panel: &mut HostBuffer<f32>, like: Layout) -> Self {
        let (rows, cols) = (like.rows, like.cols);
        assert!(rows * cols <= panel.len(), "the plan knows its shapes");
        let layout = if like.row_stride < like.col_stride {
            Layout::row_major(cols, rows).transposed()
        } else {
            Layout::row_major(rows, cols)
        };
        HostMatrix {
            first: panel.pointer(),
            layout,
        }
    }
}

impl CpuPlan {
    /// A plan for elements of type `T` and `O` and an M×N×K product.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::SizeOverflow`].
    pub(crate) fn new<T: Element, O: Output<T>>(
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Self, Error> {
        let panel = |needed: bool, rows: usize, cols: usize| {
            let layout = Layout::row_major(if needed { rows } else { 0 }, cols);
            let len = layout
                .allocation(size_of::<f32>())
                .ok_or(Error::SizeOverflow { layout })?;
            HostBuffer::zeroed(len)
        };
        let (rows, cols) = (m.min(PANEL_ROWS), n.min(PANEL_COLS));
        let widens = T::DTYPE != DType::F32;
        Ok(CpuPlan {
            a_panel: panel(widens, rows, k)?,
            b_panel: panel(widens, k, cols)?,
            c_panel: panel(O::DTYPE != DType::F32, rows, cols)?,
        })
    }

    /// Bytes of the panels.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        let panels = [&self.a_panel, &self.b_panel, &self.c_panel];
        let elements: usize = panels.iter().map(|panel| panel.len()).sum();
        (elements * size_of::<f32>()) as u64
    }

    /// Computes C = A·B.
    ///
    /// # Safety
    /// The shapes are as planned. A and B can be read; C can be written, and no other code
    /// uses it.
    pub(crate) unsafe fn run<T: Element, O: Output<T>>(
        &mut self,
        a: HostMatrix<T>,
        b: HostMatrix<T>,
        c: HostMatrix<O>,
    ) {
        let (m, n, k) = (c.layout.rows, c.layout.cols, a.layout.cols);
        for col in (0..n).step_by(PANEL_COLS) {
            let cols = PANEL_COLS.min(n - col);
            let b = b.part(0, col, k, cols);
            // SAFETY: the caller ensures it.
            let b = unsafe { widened(b, &mut self.b_panel) };
            for row in (0..m).step_by(PANEL_ROWS) {
                let rows = PANEL_ROWS.min(m - row);
                let a = a.part(row, 0, rows, k);
                // SAFETY: the caller ensures it.
                let a = unsafe { widened(a, &mut self.a_panel) };
                let c = c.part(row, col, rows, cols);
                // SAFETY: the caller ensures it.
                unsafe { write_product(a, b, c, &mut self.c_panel) };
            }
        }
    }
}

/// `matrix` in f32: itself, or a copy in `panel`.
///
/// # Safety
/// The matrix can be read.
unsafe fn widened<T: Element>(
    matrix: HostMatrix<T>,
    panel: &mut HostBuffer<f32>,
) -> HostMatrix<f32> {
    if T::DTYPE == DType::F32 {
        return HostMatrix {
            first: matrix.first.cast(),
            layout: matrix.layout,
        };
    }
    let copy = HostMatrix::scratch(panel, matrix.layout);
    // SAFETY: both have the same shape; the copy is in `panel`.
    unsafe { convert(matrix, copy, T::widen) };
    copy
}

/// Computes `c` = `a`·`b`, through `panel` unless C is f32.
///
/// # Safety
/// `a` and `b` can be read; `c` can be written, and no other code uses it.
unsafe fn write_product<O: Element>(
    a: HostMatrix<f32>,
    b: HostMatrix<f32>,
    c: HostMatrix<O>,
    panel: &mut HostBuffer<f32>,
) {
    if O::DTYPE == DType::F32 {
        let c = HostMatrix {
            first: c.first.cast(),
            layout: c.layout,
        };
        // SAFETY: the caller ensures it.
        return unsafe { product(a, b, c) };
    }
    let accumulators = HostMatrix::scratch(panel, c.layout);
    // SAFETY: the caller ensures it; the accumulators are in `panel`.
    unsafe {
        product(a, b, accumulators);
        convert(accumulators, c, O::narrow);
    }
}

/// Computes `c` = `a`·`b`.
///
/// # Safety
/// As for [`write_product`].
unsafe fn product(a: HostMatrix<f32>, b: HostMatrix<f32>, c: HostMatrix<f32>) {
    let stride = |stride: usize| stride as isize;
    // SAFETY: the shapes agree. C is only written: with `read_dst` false,
    // its old values, perhaps NaN, are not multiplied by alpha.
    unsafe {
        gemm::gemm(
            c.layout.rows,
            c.layout.cols,
            a.layout.cols,
            c.first,
            stride(c.layout.col_stride),
            stride(c.layout.row_stride),
            false,
            a.first,
            stride(a.layout.col_stride),
            stride(a.layout.row_stride),
            b.first,
            stride(b.layout.col_stride),
            stride(b.layout.row_stride),
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
}

/// Converts `from` into `to`, of the same shape, in runs as long as both are
/// contiguous in one direction.
///
/// # Safety
/// `from` can be read; `to` can be written, and no other code uses it.
unsafe fn convert<S: Element, D: Element>(
    from: HostMatrix<S>,
    to: HostMatrix<D>,
    run: impl Fn(&[S], &mut [D]),
) {
    let (from, to) = if to.layout.row_stride < to.layout.col_stride {
        (from.transposed(), to.transposed())
    } else {
        (from, to)
    };
    let (rows, cols) = (to.layout.rows, to.layout.cols);
    let contiguous = from.layout.col_stride == 1 && to.layout.col_stride == 1;
    let length = if contiguous { cols } else { 1 };
    for row in 0..rows {
        for col in (0..cols).step_by(length.max(1)) {
            let (from, to) = (from.part(row, col, 1, length), to.part(row, col, 1, length));
            // SAFETY: the runs lie inside their matrices, and do not overlap:
            // one of them is a plan's panel.
            unsafe {
                run(
                    std::slice::from_raw_parts(from.first, length),
                    std::slice::from_raw_parts_mut(to.first, length),
                );
            }
        }
    }
}
