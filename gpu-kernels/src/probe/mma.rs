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
        let index = thread::cta_position().x * 32 + thread::thread_index();
        let fragments = params.a.address + 4 * (index * FRAGMENT_WORDS) as u64;
        // SAFETY: the operands have a record for each CTA; the whole warp executes this.
        unsafe {
            let a = global::load_u32x4(fragments);
            let [b0, b1, ..] = global::load_u32x4(fragments + 16);
            let [x, y, z, w] = global::load_u32x4(fragments + 32);
            let mut d = [
                f32::from_bits(x),
                f32::from_bits(y),
                f32::from_bits(z),
                f32::from_bits(w),
            ];
            match T::DTYPE {
                DType::F16 | DType::F16x3 => mma::multiply_f16(&mut d, a, [b0, b1]),
                DType::Bf16 => mma::multiply_bf16(&mut d, a, [b0, b1]),
                DType::Tf32 | DType::F32 => mma::multiply_tf32(&mut d, a, [b0, b1]),
            }
            let [x, y, z, w] = d;
            let words = [x.to_bits(), y.to_bits(), z.to_bits(), w.to_bits()];
            global::store_u32x4(params.c.address + 16 * index as u64, words);
        }
    }
}
