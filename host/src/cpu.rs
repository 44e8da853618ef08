//! The CPU device: the `gemm` crate, in f32; for batch-invariant results, sums in an order of
//! its own ([`in_order`]).
//!
//! f32 operands are multiplied in place. 16-bit operands are widened to
//! f32 panel by panel, so that the accumulators are f32 over all of K, as on the
//! GPU; an element of a 16-bit C is rounded once, from its finished accumulator. An
//! epilogue is computed in f32, from the accumulators.

pub(crate) mod epilogue;
mod in_order;

use epilogue::HostEpilogue;
use gemm::Parallelism;
use gpu_kernels::DType;

use crate::element::{Element, Output};
use crate::epilogue_form::{EpilogueForm, Gated};
use crate::error::Error;
use crate::host_matrix::HostMatrix;
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
    /// Whether sums are added in an order that K alone decides.
    in_order: bool,
    a_panel: HostBuffer<f32>,
    b_panel: HostBuffer<f32>,
    /// Sums of products that are not written to C as they are.
    sums: HostBuffer<f32>,
    /// The gates of a gated epilogue.
    gates: HostBuffer<f32>,
}

impl CpuPlan {
    /// A plan for elements of type `T` and `O` and products of M×N×K with an epilogue, with
    /// sums `in_order` of K, or in any.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::SizeOverflow`].
    pub(crate) fn new<T: Element, O: Output<T>>(
        [m, n, k]: [usize; 3],
        epilogue: &EpilogueForm,
        in_order: bool,
    ) -> Result<Self, Error> {
        let panel = |needed: bool, rows: usize, cols: usize| {
            let layout = Layout::row_major(if needed { rows } else { 0 }, cols);
            let len = layout
                .allocation(size_of::<f32>())
                .ok_or(Error::SizeOverflow { layout })?;
            HostBuffer::zeroed(len)
        };
        let is_gated = epilogue.gated.is_some();
        let n = if is_gated { n / 2 } else { n };
        let (rows, cols) = (m.min(PANEL_ROWS), n.min(PANEL_COLS));
        // The copies are strips, with whole ones at the edges, or have the operands' shape.
        let copies = in_order || T::DTYPE != DType::F32;
        let (a_rows, b_cols) = match in_order {
            true => in_order::padded(rows, cols),
            false => (rows, cols),
        };
        let in_place = O::DTYPE == DType::F32 && epilogue.is_plain();
        Ok(CpuPlan {
            in_order,
            a_panel: panel(copies, a_rows, k)?,
            b_panel: panel(copies, k, b_cols)?,
            sums: panel(!in_place, rows, cols)?,
            gates: panel(is_gated, rows, cols)?,
        })
    }

    /// Bytes of the panels.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        let panels = [&self.a_panel, &self.b_panel, &self.sums, &self.gates];
        let elements: usize = panels.iter().map(|panel| panel.len()).sum();
        (elements * size_of::<f32>()) as u64
    }

    /// Computes C.
    ///
    /// # Safety
    /// The shapes and the form of the epilogue are as planned. A, B and the operands of the
    /// epilogue can be read; C can be written, and no other code uses it.
    pub(crate) unsafe fn run<T: Element, O: Output<T>>(
        &mut self,
        a: HostMatrix<T>,
        b: HostMatrix<T>,
        c: HostMatrix<O>,
        epilogue: &HostEpilogue<O>,
    ) {
        for batch in 0..c.layout.batches {
            let (a, b, c) = (a.batch(batch), b.batch(batch), c.batch(batch));
            // SAFETY: the caller ensures it.
            unsafe { self.run_one(a, b, c, &epilogue.batch(batch)) };
        }
    }

    /// Computes one C of a batch.
    ///
    /// # Safety
    /// As for [`CpuPlan::run`].
    unsafe fn run_one<T: Element, O: Output<T>>(
        &mut self,
        a: HostMatrix<T>,
        b: HostMatrix<T>,
        c: HostMatrix<O>,
        epilogue: &HostEpilogue<O>,
    ) {
        let (m, n, k) = (c.layout.rows, c.layout.cols, a.layout.cols);
        let (gate, up) = Columns::of(&epilogue.form, b.layout.cols);
        for col in (0..n).step_by(PANEL_COLS) {
            let cols = PANEL_COLS.min(n - col);
            for row in (0..m).step_by(PANEL_ROWS) {
                let rows = PANEL_ROWS.min(m - row);
                let a = a.part(row, 0, rows, k);
                let c = c.part(row, col, rows, cols);
                // SAFETY: the caller ensures it.
                unsafe {
                    if let Some(gate) = gate {
                        let gates = scratch(&mut self.gates, c.layout);
                        self.product(a, gate.part(b, col, cols), gates);
                        epilogue.finish_gates(gates, row, gate.first(col), gate.step);
                    }
                    let b = up.part(b, col, cols);
                    if epilogue.form.is_plain() {
                        self.write_product(a, b, c);
                        continue;
                    }
                    let sums = scratch(&mut self.sums, c.layout);
                    self.product(a, b, sums);
                    let gates = gate.map(|_| scratch(&mut self.gates, c.layout));
                    epilogue.finish(sums, gates, row, up.first(col), up.step);
                    convert(sums, c, O::narrow);
                }
            }
        }
    }

    /// Computes `c` = `a`·`b`, through `sums` unless C is f32.
    ///
    /// # Safety
    /// `a` and `b` can be read; `c` can be written, and no other code uses it.
    unsafe fn write_product<T: Element, O: Element>(
        &mut self,
        a: HostMatrix<T>,
        b: HostMatrix<T>,
        c: HostMatrix<O>,
    ) {
        if O::DTYPE == DType::F32 {
            let c = HostMatrix {
                first: c.first.cast(),
                layout: c.layout,
            };
            // SAFETY: the caller ensures it.
            return unsafe { self.product(a, b, c) };
        }
        let sums = scratch(&mut self.sums, c.layout);
        // SAFETY: the caller ensures it; the sums are in their panel.
        unsafe {
            self.product(a, b, sums);
            convert(sums, c, O::narrow);
        }
    }

    /// Computes `c` = `a`·`b`.
    ///
    /// # Safety
    /// As for [`CpuPlan::write_product`].
    unsafe fn product<T: Element>(
        &mut self,
        a: HostMatrix<T>,
        b: HostMatrix<T>,
        c: HostMatrix<f32>,
    ) {
        let depth = a.layout.cols;
        // SAFETY: the caller ensures it; the copies are in their panels.
        unsafe {
            if self.in_order {
                let a = in_order::pack_a(a, self.a_panel.elements());
                let b = in_order::pack_b(b, self.b_panel.elements());
                in_order::multiply(a, b, depth, c);
            } else {
                let a = widened(a, &mut self.a_panel);
                let b = widened(b, &mut self.b_panel);
                product_in_any_order(a, b, c);
            }
        }
    }
}

/// The columns of B that become the columns of C, or one of the two that do.
#[derive(Clone, Copy)]
struct Columns {
    /// The column of B for column 0 of C.
    offset: usize,
    /// Columns of B from one to the next.
    step: usize,
}

impl Columns {
    /// The gate columns, if there are any, and the others, of a B with `n` columns.
    fn of(epilogue: &EpilogueForm, n: usize) -> (Option<Columns>, Columns) {
        let at = |offset, step| Columns { offset, step };
        match epilogue.gated {
            None => (None, at(0, 1)),
            Some(Gated::Interleaved) => (Some(at(0, 2)), at(1, 2)),
            Some(Gated::Halves) => (Some(at(0, 1)), at(n / 2, 1)),
        }
    }

    /// The column of B for column `col` of C.
    fn first(self, col: usize) -> usize {
        self.offset + col * self.step
    }

    /// The columns of B for `cols` columns of C from `col` on.
    fn part<T: Element>(self, b: HostMatrix<T>, col: usize, cols: usize) -> HostMatrix<T> {
        let rows = b.layout.rows;
        let part = b.part(0, self.first(col), rows, cols);
        HostMatrix {
            layout: Layout {
                col_stride: part.layout.col_stride * self.step,
                ..part.layout
            },
            ..part
        }
    }
}

/// A matrix in `panel`, of the shape of `like` and contiguous in the same direction.
fn scratch(panel: &mut HostBuffer<f32>, like: Layout) -> HostMatrix<f32> {
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
    let copy = scratch(panel, matrix.layout);
    // SAFETY: both have the same shape; the copy is in `panel`.
    unsafe { convert(matrix, copy, T::widen) };
    copy
}

/// Computes `c` = `a`·`b` by the crate `gemm`.
///
/// # Safety
/// As for [`CpuPlan::write_product`].
unsafe fn product_in_any_order(a: HostMatrix<f32>, b: HostMatrix<f32>, c: HostMatrix<f32>) {
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
