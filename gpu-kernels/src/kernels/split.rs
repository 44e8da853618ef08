//! Not a step of the ladder: `split` turns f32 operands into two f16 parts ([`f16x3`](crate::f16x3)),
//! for kernels of type [`DType::F16x3`].
//!
//! A CTA takes a few lines (rows of A, or columns of B) at a time: it finds the largest magnitude
//! of each, which gives the line's exponent, and then stores the low and the high parts of its
//! elements, contiguous along K.
//!
//! | lines | a CTA's lines | how |
//! |---|---|---|
//! | contiguous along K, in aligned groups of four | 1, 2, 4 or 8 (`vectors`) | in registers; up to 8192 elements are read once |
//! | any other | 8 (`staged`) | through shared memory; read twice |
//!
//! It takes the parameters of the product. C is the copy of A and the source of the epilogue is
//! the copy of B: a matrix of all low parts, then one of all high parts, for each matrix of a
//! batch, with a line of the operand in each row. `exponents` get what the epilogue of the
//! product needs to scale its sums back. One launch splits both operands, because a launch takes
//! as long as splitting a small operand.

mod group;
mod staged;
mod vectors;

use core::marker::PhantomData;

use crate::dtype::{DType, ElementType};
use crate::isa::thread;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;
use group::{Group, THREADS};

/// CTAs that have lines to split; a smaller grid splits them all too.
pub fn useful_ctas(params: &GemmParams) -> u64 {
    Operand::a(params).groups() + Operand::b(params).groups()
}

/// Splits the operands of a product.
pub struct Split<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Split<T> {
    const INFO: KernelInfo = KernelInfo {
        ctas_per_sm: 4,
        shared_bytes: staged::SHARED_BYTES,
        ..KernelInfo::new(
            Family::Split,
            Arch::Sm75,
            T::DTYPE,
            Block {
                m: staged::LINES,
                n: staged::DEPTH,
                k: 1,
            },
            THREADS,
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        let (a, b) = (Operand::a(params), Operand::b(params));
        let position = thread::cta_position();
        let mut group = position.x as u64;
        while group < a.groups() + b.groups() {
            let (operand, index) = if group < a.groups() {
                (a, group)
            } else {
                (b, group - a.groups())
            };
            // SAFETY: all threads run the same groups; loads and stores are masked to the lines.
            unsafe { split_group(&operand, index) };
            group += position.grid_x as u64;
        }
    }
}

/// The lines of an operand, and where their parts go.
#[derive(Clone, Copy)]
struct Operand {
    lines: u32,
    k: u32,
    matrices: u32,
    /// A line is a row, whatever the operand.
    from: TensorRef,
    to: TensorRef,
    exponents: u64,
}

impl Operand {
    #[inline(always)]
    fn a(params: &GemmParams) -> Self {
        Operand {
            lines: params.m,
            k: params.k,
            matrices: matrices(params, &params.a),
            from: params.a,
            to: params.c,
            exponents: params.exponents[0],
        }
    }

    #[inline(always)]
    fn b(params: &GemmParams) -> Self {
        Operand {
            lines: params.n,
            k: params.k,
            matrices: matrices(params, &params.b),
            from: TensorRef {
                row_stride: params.b.col_stride,
                col_stride: params.b.row_stride,
                ..params.b
            },
            to: params.epilogue.source,
            exponents: params.exponents[1],
        }
    }

    /// Whether every line is whole groups of four elements, aligned to 16 bytes.
    #[inline(always)]
    fn in_vectors(&self) -> bool {
        let from = &self.from;
        let steps = from.row_stride | from.batch_stride | self.k as u64;
        from.col_stride == 1 && (from.address | (4 * steps)).is_multiple_of(16)
    }

    /// The binary logarithm of the lines of a group, which a CTA splits at a time.
    #[inline(always)]
    fn lines_log2(&self) -> u32 {
        if self.in_vectors() {
            vectors::lines_log2(self.k)
        } else {
            staged::LINES.ilog2()
        }
    }

    /// Groups of one matrix.
    #[inline(always)]
    fn groups_of_matrix(&self) -> u32 {
        let log2 = self.lines_log2();
        (self.lines + (1 << log2) - 1) >> log2
    }

    /// Groups of all matrices.
    #[inline(always)]
    fn groups(&self) -> u64 {
        self.groups_of_matrix() as u64 * self.matrices as u64
    }
}

/// Number of different matrices of an operand.
#[inline(always)]
fn matrices(params: &GemmParams, operand: &TensorRef) -> u32 {
    if operand.batch_stride == 0 {
        1
    } else {
        params.batches
    }
}

/// Splits group `index` of the operand's lines.
///
/// # Safety
/// All threads of the CTA call this; the operand and its copy are live.
#[inline(always)]
unsafe fn split_group(operand: &Operand, index: u64) {
    // At least one, which the compiler has to see: a kernel cannot panic.
    let groups = operand.groups_of_matrix().max(1) as u64;
    let matrix = (index / groups) as u32;
    let first = ((index % groups) as u32) << operand.lines_log2();
    let from = operand.from.of_batch(matrix, DType::F32);
    let to = operand.to.of_batch(matrix, DType::F16);
    let group = Group {
        count: operand.lines - first,
        k: operand.k,
        from: TensorRef {
            address: from.address + 4 * first as u64 * from.row_stride,
            ..from
        },
        to: TensorRef {
            address: to.address + 2 * first as u64 * to.row_stride,
            ..to
        },
        plane: 2 * operand.lines as u64 * to.row_stride,
        exponents: operand.exponents + 4 * (matrix as u64 * operand.lines as u64 + first as u64),
    };
    // SAFETY: the caller's duty.
    unsafe {
        if operand.in_vectors() {
            vectors::split(&group);
        } else {
            staged::split(&group);
        }
    }
}
