//! The CPU device: the `gemm` crate, in f32.
//!
//! f32 operands are multiplied where they are. 16-bit operands are widened to
//! f32 panel by panel, so that sums are f32 over all of K, as on the GPU; a
//! 16-bit C is rounded once, from the finished sum.

use gemm::Parallelism;
use gpu_kernels::DType;

use crate::device::Device;
use crate::element::{Element, Output};
use crate::error::Error;
use crate::layout::Layout;
use crate::storage::{Memory, Storage};
use crate::view::{MatrixView, MatrixViewMut, Window};

/// Rows of A widened at once: a share of the time to use them that is small,
/// and memory that is, too.
const PANEL_ROWS: usize = 512;

/// Columns of B widened at once.
const PANEL_COLS: usize = 2048;

/// A product on the CPU, with the memory it works in.
#[derive(Debug)]
pub(crate) struct CpuPlan {
    a_panel: Storage<f32>,
    b_panel: Storage<f32>,
    c_panel: Storage<f32>,
}

/// A block of a matrix in memory.
#[derive(Clone, Copy)]
struct Block<T> {
    first: *mut T,
    layout: Layout,
}

impl<T: Element> Block<T> {
    /// The elements of a view on the CPU device.
    fn of(window: Window<T>) -> Self {
        Block {
            // SAFETY: a window starts inside its storage.
            first: unsafe { host_pointer(window.storage()).add(window.offset()) },
            layout: window.layout(),
        }
    }

    /// The `rows`×`cols` elements from (row, col) on; the caller stays inside.
    fn part(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        let Layout {
            row_stride,
            col_stride,
            ..
        } = self.layout;
        Block {
            // Wrapping, since an empty part may start past the end.
            first: self.first.wrapping_add(row * row_stride + col * col_stride),
            layout: Layout {
                rows,
                cols,
                ..self.layout
            },
        }
    }

    fn transposed(self) -> Self {
        Block {
            layout: self.layout.transposed(),
            ..self
        }
    }
}

impl Block<f32> {
    /// A matrix in `panel`, of the shape of `like` and contiguous in the same
    /// direction.
    fn scratch(panel: &mut Storage<f32>, like: Layout) -> Self {
        let (rows, cols) = (like.rows, like.cols);
        assert!(rows * cols <= panel.len(), "the plan knows its shapes");
        let layout = if like.row_stride < like.col_stride {
            Layout::row_major(cols, rows).transposed()
        } else {
            Layout::row_major(rows, cols)
        };
        Block {
            first: host_pointer(panel),
            layout,
        }
    }
}

/// The first element of a storage on the CPU device.
fn host_pointer<T: Element>(storage: &Storage<T>) -> *mut T {
    match storage.memory() {
        Memory::Host(buffer) => buffer.pointer(),
        Memory::Gpu(_) => unreachable!("plans check the device of every operand"),
    }
}

impl CpuPlan {
    /// For elements of type `T` and `O` and an M×N×K product.
    pub(crate) fn new<T: Element, O: Output<T>>(
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Self, Error> {
        let panel = |needed: bool, rows: usize, cols: usize| {
            let rows = if needed { rows } else { 0 };
            Storage::zeroed(&Device::cpu(), Layout::row_major(rows, cols))
        };
        let (rows, cols) = (m.min(PANEL_ROWS), n.min(PANEL_COLS));
        let widens = T::DTYPE != DType::F32;
        Ok(CpuPlan {
            a_panel: panel(widens, rows, k)?,
            b_panel: panel(widens, k, cols)?,
            c_panel: panel(O::DTYPE != DType::F32, rows, cols)?,
        })
    }

    /// Computes C = A·B; the shapes are those planned, the operands on the CPU.
    pub(crate) fn run<T: Element, O: Output<T>>(
        &mut self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) {
        let (a, b, c) = (Block::of(a.0), Block::of(b.0), Block::of(c.0));
        let (m, n, k) = (c.layout.rows, c.layout.cols, a.layout.cols);
        for col in (0..n).step_by(PANEL_COLS) {
            let cols = PANEL_COLS.min(n - col);
            let b = b.part(0, col, k, cols);
            // SAFETY: B is live and not written.
            let b = unsafe { widened(b, &mut self.b_panel) };
            for row in (0..m).step_by(PANEL_ROWS) {
                let rows = PANEL_ROWS.min(m - row);
                let a = a.part(row, 0, rows, k);
                // SAFETY: A is live and not written.
                let a = unsafe { widened(a, &mut self.a_panel) };
                let c = c.part(row, col, rows, cols);
                // SAFETY: C is the caller's alone.
                unsafe { write_product(a, b, c, &mut self.c_panel) };
            }
        }
    }
}

/// `block` in f32: itself, or a copy in `panel`.
///
/// # Safety
/// The block can be read.
unsafe fn widened<T: Element>(block: Block<T>, panel: &mut Storage<f32>) -> Block<f32> {
    if T::DTYPE == DType::F32 {
        return Block {
            first: block.first.cast(),
            layout: block.layout,
        };
    }
    let copy = Block::scratch(panel, block.layout);
    // SAFETY: both blocks have one shape; the copy is in `panel`.
    unsafe { convert(block, copy, T::widen) };
    copy
}

/// Computes `c` = `a`·`b`, through `panel` unless C is f32.
///
/// # Safety
/// `a` and `b` can be read; `c` can be written, and nobody else uses it.
unsafe fn write_product<O: Element>(
    a: Block<f32>,
    b: Block<f32>,
    c: Block<O>,
    panel: &mut Storage<f32>,
) {
    if O::DTYPE == DType::F32 {
        let c = Block {
            first: c.first.cast(),
            layout: c.layout,
        };
        // SAFETY: the caller's duty.
        return unsafe { product(a, b, c) };
    }
    let sums = Block::scratch(panel, c.layout);
    // SAFETY: the caller's duty; the sums are in `panel`.
    unsafe {
        product(a, b, sums);
        convert(sums, c, O::narrow);
    }
}

/// Computes `c` = `a`·`b`.
///
/// # Safety
/// As for [`write_product`].
unsafe fn product(a: Block<f32>, b: Block<f32>, c: Block<f32>) {
    let stride = |stride: usize| stride as isize;
    // SAFETY: the shapes agree, and C is written only: with `read_dst` false
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
/// `from` can be read; `to` can be written, and nobody else uses it.
unsafe fn convert<S: Element, D: Element>(
    from: Block<S>,
    to: Block<D>,
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
            // SAFETY: the runs lie inside their blocks, and do not overlap:
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
