//! Not a step of the ladder: `split` turns f32 operands into two f16 parts ([`f16x3`]), for
//! kernels of type [`DType::F16x3`](crate::DType::F16x3).
//!
//! A CTA takes a few lines (rows of A, or columns of B) at a time: it finds the largest magnitude
//! of each, which gives the line's exponent, and then stores the low and the high parts of its
//! elements, contiguous along K.
//!
//! | lines | a CTA's lines | how |
//! |---|---|---|
//! | contiguous along K, in aligned groups of four | 1, 2, 4 or 8 ([`vectors`]) | in registers; up to 8192 elements are read once |
//! | any other | 8 ([`staged`]) | through shared memory; read twice |
//!
//! It takes the parameters of the product. C is the copy of A and the source of the epilogue is
//! the copy of B: a matrix of all low parts, then one of all high parts, for each matrix of a
//! batch, with a line of the operand in each row. `exponents` get what the epilogue of the
//! product needs to scale its sums back. One launch splits both operands, because a launch takes
//! as long as splitting a small operand.

mod staged;
mod vectors;

use core::marker::PhantomData;

use crate::dtype::{DType, ElementType};
use crate::f16x3;
use crate::isa::{global, shared, thread};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Threads of a CTA.
const THREADS: u32 = 256;

const WARPS: u32 = THREADS / 32;

/// Shared addresses, in bytes: the largest magnitude that each thread has found, and that each
/// warp has found. A bank apart, a thread's own lie in 32 banks along a warp.
const OF_THREADS: u32 = staged::CHUNK_BYTES;
const OF_WARPS: u32 = OF_THREADS + WARPS * WARP_PITCH;
const WARP_PITCH: u32 = 33 * 4;

/// CTAs that have lines to split; a smaller grid splits them all too.
pub fn useful_ctas(params: &GemmParams) -> u64 {
    Operand::a(params).groups() + Operand::b(params).groups()
}

/// Splits the operands of a product.
pub struct Split<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Split<T> {
    const INFO: KernelInfo = KernelInfo {
        ctas_per_sm: 4,
        shared_bytes: OF_WARPS + WARPS * 4,
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

/// The lines that a CTA splits at a time.
struct Group {
    /// Lines of the matrix from the first one of the group on: all that may be read or stored.
    count: u32,
    k: u32,
    /// The first line of the group is the first row of both.
    from: TensorRef,
    to: TensorRef,
    /// Bytes from a low part to the high part of the same element.
    plane: u64,
    /// Address of the exponent of the first line.
    exponents: u64,
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

impl Group {
    /// Gathers the largest magnitude of each warp's threads, of which this thread's is `largest`
    /// and belongs to slot `slot` of warp `warp`. [`Group::exponent`] may be called afterwards.
    ///
    /// # Safety
    /// All threads of the CTA call this, each with another slot.
    #[inline(always)]
    unsafe fn gather(&self, warp: u32, slot: u32, largest: u32) {
        let base = shared::base();
        let thread = thread::thread_index();
        // SAFETY: the barriers separate stores to shared memory from loads.
        unsafe {
            shared::store_u32(base + OF_THREADS + warp * WARP_PITCH + slot * 4, largest);
            thread::sync_cta();
            if thread < WARPS {
                let mut largest = 0;
                let mut from = base + OF_THREADS + thread * WARP_PITCH;
                let end = from + 32 * 4;
                while from < end {
                    unroll!(I < 8, {
                        largest = shared::load_u32(from + 4 * I as u32).max(largest);
                    });
                    from += 32;
                }
                shared::store_u32(base + OF_WARPS + thread * 4, largest);
            }
            thread::sync_cta();
        }
    }

    /// The exponent of line `line`, whose magnitudes `warps` warps from `line * warps` on have
    /// gathered.
    ///
    /// # Safety
    /// All threads of the CTA have gathered magnitudes.
    #[inline(always)]
    unsafe fn exponent(&self, line: u32, warps: u32) -> i32 {
        let mut from = shared::base() + OF_WARPS + line * warps * 4;
        let end = from + warps * 4;
        let mut largest = 0;
        while from < end {
            // SAFETY: the caller's duty.
            largest = unsafe { shared::load_u32(from) }.max(largest);
            from += 4;
        }
        f16x3::exponent(largest)
    }

    /// Stores the exponent of line `line`, if the line exists.
    ///
    /// # Safety
    /// The exponents are live.
    #[inline(always)]
    unsafe fn store_exponent(&self, line: u32, exponent: i32) {
        if line < self.count {
            // SAFETY: the caller's duty.
            unsafe { global::store_u32(self.exponents + 4 * line as u64, exponent as u32) }
        }
    }
}
