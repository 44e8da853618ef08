//! `wgmma`: a product of operands in shared memory, whose layout the host chooses.

use core::marker::PhantomData;

use super::probe;
use crate::dtype::Contiguous;
use crate::dtype::ElementType;
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator;
use crate::isa::{global, shared, thread, tma, wgmma};
use crate::kernel::{Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use crate::unroll::unroll;

/// Bytes of shared memory in which A lies.
pub const A_AREA_BYTES: u32 = 8 * 1024;

/// Bytes of shared memory in which B lies, after A.
pub const B_AREA_BYTES: u32 = 32 * 1024;

/// Fills the areas of shared memory with the operands' records, and multiplies
/// `k` times. D is the record of C, 64 × N / 128 words a thread. Each multiply adds
/// A·B to D; where `m` is 0, the first multiply overwrites D instead.
///
/// The row stride of A and of B is its descriptor, without the area's address; the
/// column stride is added to the descriptor after each multiply.
pub struct MultiplyShared<T, A, B, D>(PhantomData<(T, A, B, D)>);

impl<T, A, B, D> Kernel for MultiplyShared<T, A, B, D>
where
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    D: Accumulator,
{
    const INFO: KernelInfo = probe(T::DTYPE, WARPGROUP, A_AREA_BYTES + B_AREA_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        let cta = thread::cta_position().x as u64;
        let a_area = shared::base();
        let b_area = a_area + A_AREA_BYTES;
        // SAFETY: the operands have a record for each CTA; the descriptors stay in
        // their areas, which are complete before the barrier.
        unsafe {
            copy_to_shared(
                params.a.address + cta * A_AREA_BYTES as u64,
                a_area,
                A_AREA_BYTES,
            );
            copy_to_shared(
                params.b.address + cta * B_AREA_BYTES as u64,
                b_area,
                B_AREA_BYTES,
            );
            tma::fence_shared();
            thread::sync_cta();

            let thread = cta * WARPGROUP as u64 + thread::thread_index() as u64;
            let registers = Registers(params.c.address + thread * 2 * D::N as u64);
            let mut d: D = core::mem::zeroed();
            registers.add_to(&mut d);
            let mut a = params.a.row_stride + (a_area >> 4) as u64;
            let mut b = params.b.row_stride + (b_area >> 4) as u64;
            let mut accumulate = params.m;
            wgmma::fence();
            let mut step = 0;
            while step < params.k {
                d.multiply::<T, A, B>(a, b, accumulate);
                accumulate = 1;
                a += params.a.col_stride;
                b += params.b.col_stride;
                step += 1;
            }
            wgmma::commit();
            d.finish();
            registers.write(&d);
        }
    }
}

/// A thread's accumulators in global memory, in register order, from this address on.
struct Registers(u64);

impl Registers {
    /// Adds the stored registers to the registers of `d`.
    ///
    /// # Safety
    /// The address is the thread's share of C.
    #[inline(always)]
    unsafe fn add_to<D: Accumulator>(&self, d: &mut D) {
        unroll!(GROUP < 16, {
            if 16 * (GROUP as u32) < D::N {
                let address = self.0 + 32 * GROUP as u64;
                // SAFETY: the caller's duty.
                unsafe {
                    let [a, b, c, e] = global::load_f32x4(address);
                    let [f, g, h, i] = global::load_f32x4(address + 16);
                    d.add(GROUP, [a, b, c, e, f, g, h, i]);
                }
            }
        });
    }

    /// Stores the registers of `d`, which is finished.
    ///
    /// # Safety
    /// The address is the thread's share of C.
    #[inline(always)]
    unsafe fn write<D: Accumulator>(&self, d: &D) {
        unroll!(GROUP < 16, {
            if 16 * (GROUP as u32) < D::N {
                let address = self.0 + 32 * GROUP as u64;
                // SAFETY: the caller's duty.
                unsafe {
                    let [a, b, c, e, f, g, h, i] = d.columns(GROUP);
                    global::store_f32x4(address, [a, b, c, e]);
                    global::store_f32x4(address + 16, [f, g, h, i]);
                }
            }
        });
    }
}

/// Copies `bytes` from `source` to shared memory, all threads together.
///
/// # Safety
/// Both ranges exist; a barrier follows.
#[inline(always)]
unsafe fn copy_to_shared(source: u64, destination: u32, bytes: u32) {
    let mut at = 16 * thread::thread_index();
    while at < bytes {
        // SAFETY: the caller's duty.
        unsafe {
            shared::store_u32x4(destination + at, global::load_u32x4(source + at as u64));
        }
        at += 16 * WARPGROUP;
    }
}
