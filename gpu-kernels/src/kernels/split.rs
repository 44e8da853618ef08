//! Not a step of the ladder: `split` turns f32 operands into two f16 parts ([`f16x3`](crate::f16x3)),
//! for kernels of type [`DType::F16x3`].
//!
//! A CTA takes a few lines (rows of A, or columns of B) at a time: it finds the largest magnitude
//! of each, which gives the line's exponent, and then stores the low and the high parts of its
//! elements, contiguous along K.
//!
//! | lines | a CTA's lines | elements that are read once, of each |
//! |---|---|---|
//! | contiguous along K | 1 to 32 | 16384 |
//! | contiguous along M or N | 8 to 32 | 2048 |
//!
//! It takes the parameters of the product. C is the copy of A and the source of the epilogue is
//! the copy of B: a matrix of all low parts, then one of all high parts, for each matrix of a
//! batch, with a line of the operand in each row. `exponents` get what the epilogue of the
//! product needs to scale its sums back. One launch splits both operands, because a launch takes
//! as long as splitting a small operand.

mod group;
mod held;

use core::marker::PhantomData;

use crate::dtype::{DType, ElementType};
use crate::isa::thread;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;
use group::{FEWEST, Group, SHARED_BYTES, THREADS};
use held::Access;

/// Most CTAs along x.
const WIDTH: u64 = 1 << 20;

/// The launch grid, along x and y: at least a CTA for each group of lines.
pub fn grid(params: &GemmParams) -> (u32, u32) {
    let groups = Operand::a(params).groups() + Operand::b(params).groups();
    (groups.min(WIDTH) as u32, groups.div_ceil(WIDTH) as u32)
}

/// Splits the operands of a product.
pub struct Split<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Split<T> {
    const INFO: KernelInfo = KernelInfo {
        ctas_per_sm: 2,
        shared_bytes: SHARED_BYTES,
        ..KernelInfo::new(
            Family::Split,
            Arch::Sm75,
            T::DTYPE,
            // The most lines of a CTA, and the depth that it holds of them.
            Block {
                m: THREADS / FEWEST,
                n: 32 * FEWEST,
                k: 1,
            },
            THREADS,
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        let (a, b) = (Operand::a(params), Operand::b(params));
        let position = thread::cta_position();
        let group = position.y as u64 * position.grid_x as u64 + position.x as u64;
        let (operand, index) = if group < a.groups() {
            (a, group)
        } else {
            (b, group - a.groups())
        };
        if index < operand.groups() {
            // SAFETY: loads and stores are masked to the lines.
            unsafe { split_group(&operand, index) };
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

    #[inline(always)]
    fn access(&self) -> Access {
        Access::of(&self.from, self.k)
    }

    /// The binary logarithm of the lines of a group, which a CTA splits at a time.
    #[inline(always)]
    fn lines_log2(&self) -> u32 {
        self.access().lines_log2(self.k)
    }

    /// Groups of one matrix.
    #[inline(always)]
    fn groups_of_matrix(&self) -> u32 {
        let log2 = self.lines_log2();
        let is_part_left = self.lines & ((1 << log2) - 1) != 0;
        (self.lines >> log2) + is_part_left as u32
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
    let access = operand.access();
    // The constant gives vectors code of their own, without the other ways' addresses.
    // SAFETY: the caller's duty.
    unsafe {
        if access == Access::Vectors {
            held::split(&group, Access::Vectors);
        } else {
            held::split(&group, access);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: u32, k: u32, along_k: bool) -> Operand {
        let matrix = TensorRef {
            address: 256,
            row_stride: if along_k { k.into() } else { 1 },
            col_stride: if along_k { 1 } else { lines.into() },
            batch_stride: 0,
        };
        Operand {
            lines,
            k,
            matrices: 3,
            from: matrix,
            to: matrix,
            exponents: 0,
        }
    }

    #[test]
    fn groups_are_all_lines_and_no_empty_one() {
        for along_k in [false, true] {
            for k in [1, 7, 100, 512, 513, 1024, 2048, 16384, 1 << 20] {
                for count in [1, 7, 8, 9, 1000, u32::MAX - 1, u32::MAX] {
                    let operand = lines(count, k, along_k);
                    let of_group = 1_u64 << operand.lines_log2();
                    let groups = operand.groups();
                    assert_eq!(groups % 3, 0);
                    assert!(groups / 3 * of_group >= count.into());
                    assert!((groups / 3 - 1) * of_group < count.into());
                    assert!(along_k || count == 1 || of_group >= 8, "part of a sector");
                }
            }
        }
    }

    /// As many lines as the threads share out evenly, which hold them whole up to a depth.
    #[test]
    fn a_line_is_held_by_as_many_threads_as_it_needs() {
        for (along_k, deepest) in [(true, 16384), (false, 2048)] {
            for k in 1..=deepest {
                let threads = THREADS >> lines(8, k, along_k).lines_log2();
                assert!(threads >= FEWEST && 32 * threads >= k);
                assert!(threads == FEWEST || 16 * threads < k);
            }
        }
    }
}
