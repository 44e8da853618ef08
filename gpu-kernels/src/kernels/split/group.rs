//! The lines that a CTA splits at a time, and the largest magnitude of each.

use crate::f16x3;
use crate::isa::{global, shared, thread};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Threads of a CTA.
pub(super) const THREADS: u32 = 256;

const WARPS: u32 = THREADS / 32;

/// Shared addresses, in bytes: the largest magnitude that each thread has found, and that each
/// warp has found. A warp's begin a bank after those of the warp before, so that the threads
/// that gather them meet in no bank.
const OF_THREADS: u32 = 0;
const OF_WARPS: u32 = OF_THREADS + WARPS * WARP_PITCH;
const WARP_PITCH: u32 = 33 * 4;

/// Bytes of shared memory from its base on.
pub(super) const SHARED_BYTES: u32 = OF_WARPS + WARPS * 4;

/// The lines that a CTA splits at a time.
pub(super) struct Group {
    /// Lines of the matrix from the first one of the group on: all that may be read or stored.
    pub(super) count: u32,
    pub(super) k: u32,
    /// The first line of the group is the first row of both.
    pub(super) from: TensorRef,
    pub(super) to: TensorRef,
    /// Bytes from a low part to the high part of the same element.
    pub(super) plane: u64,
    /// Address of the exponent of the first line.
    pub(super) exponents: u64,
}

impl Group {
    /// Gathers the largest magnitude of each warp's threads, of which this thread's is `largest`
    /// and belongs to slot `slot` of warp `warp`. [`Group::exponent`] may be called afterwards.
    ///
    /// # Safety
    /// All threads of the CTA call this, each with another slot.
    #[inline(always)]
    pub(super) unsafe fn gather(&self, warp: u32, slot: u32, largest: u32) {
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
    pub(super) unsafe fn exponent(&self, line: u32, warps: u32) -> i32 {
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
    pub(super) unsafe fn store_exponent(&self, line: u32, exponent: i32) {
        if line < self.count {
            // SAFETY: the caller's duty.
            unsafe { global::store_u32(self.exponents + 4 * line as u64, exponent as u32) }
        }
    }
}
