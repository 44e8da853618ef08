//! `cvt` and `fma`: every conversion that the kernels use, on any 32 bits.

use super::probe;
use crate::dtype::DType;
use crate::isa::{arithmetic, convert, global, thread};
use crate::kernel::{Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// Words that [`Conversions`] writes for each word it reads.
pub const CONVERSION_WORDS: u32 = 8;

/// Threads of a CTA.
const THREADS: u32 = 256;

/// Converts words of A, which has `k` words. A thread reads its own word w and the next
/// thread's word v (the last thread reads its own word twice), and writes
/// [`CONVERSION_WORDS`] words to C: w to f16, to bf16 and to TF32; w's low half from f16
/// and from bf16; w and v to f16x2 and to bf16x2; and w · v + w.
pub struct Conversions;

impl Kernel for Conversions {
    const INFO: KernelInfo = probe(DType::F32, THREADS, 0);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        let index = thread::cta_position().x * THREADS + thread::thread_index();
        if index >= params.k {
            return;
        }
        let next = if index + 1 < params.k {
            index + 1
        } else {
            index
        };
        // SAFETY: A has `k` words, and C eight words for each of them.
        unsafe {
            let word = global::load_u32(params.a.address + 4 * index as u64);
            let next = f32::from_bits(global::load_u32(params.a.address + 4 * next as u64));
            let value = f32::from_bits(word);
            let place = params.c.address + 4 * (index * CONVERSION_WORDS) as u64;
            let to = [
                convert::f16_from_f32(value),
                convert::bf16_from_f32(value),
                convert::tf32_from_f32(value),
                convert::f32_from_f16(word & 0xffff).to_bits(),
            ];
            let from = [
                convert::f32_from_bf16(word & 0xffff).to_bits(),
                convert::f16x2_from_f32(value, next),
                convert::bf16x2_from_f32(value, next),
                arithmetic::fma(value, next, value).to_bits(),
            ];
            global::store_u32x4(place, to);
            global::store_u32x4(place + 16, from);
        }
    }
}
