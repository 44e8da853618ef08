//! `mma.sync`: one product on the registers of a warp.

use core::marker::PhantomData;

use super::probe;
use crate::dtype::DType;
use crate::dtype::ElementType;
use crate::isa::{global, mma, thread};
use crate::kernel::{Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// Words of A that [`Multiply`] reads for each lane.
pub const FRAGMENT_WORDS: u32 = 12;

/// A lane reads its fragments from operand A: four registers of A, two of B, two unused
/// words, and four of C. It writes the four registers of D to operand C.
pub struct Multiply<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Multiply<T> {
    const INFO: KernelInfo = probe(T::DTYPE, 32, 0);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the operands have a record for each CTA; the whole warp executes this.
        unsafe {
            with_fragments(params, |d, a, b| match T::DTYPE {
                DType::F16 | DType::F16x3 => mma::multiply_f16(d, a, b),
                DType::Bf16 => mma::multiply_bf16(d, a, b),
                DType::Tf32 | DType::F32 => mma::multiply_tf32(d, a, b),
            });
        }
    }
}

/// [`Multiply`] of f16 by `mma.m16n8k8`, which uses the first two registers of A and the
/// first of B.
pub struct MultiplyK8;

impl Kernel for MultiplyK8 {
    const INFO: KernelInfo = probe(DType::F16, 32, 0);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the operands have a record for each CTA; the whole warp executes this.
        unsafe {
            with_fragments(params, |d, [a0, a1, ..], [b, _]| {
                mma::multiply_f16_k8(d, [a0, a1], b);
            });
        }
    }
}

/// Reads this lane's fragments, applies `multiply` to D, A and B, and writes D.
///
/// # Safety
/// The operands have a record for each CTA.
#[inline(always)]
unsafe fn with_fragments(
    params: &GemmParams,
    multiply: impl FnOnce(&mut [f32; 4], [u32; 4], [u32; 2]),
) {
    let index = thread::cta_position().x * 32 + thread::thread_index();
    let fragments = params.a.address + 4 * (index * FRAGMENT_WORDS) as u64;
    // SAFETY: the caller's duty.
    unsafe {
        let a = global::load_u32x4(fragments);
        let [b0, b1, ..] = global::load_u32x4(fragments + 16);
        let mut d = global::load_u32x4(fragments + 32).map(f32::from_bits);
        multiply(&mut d, a, [b0, b1]);
        global::store_u32x4(params.c.address + 16 * index as u64, d.map(f32::to_bits));
    }
}
