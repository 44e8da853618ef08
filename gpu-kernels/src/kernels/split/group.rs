//! The lines that a CTA splits at a time, and the largest magnitude of each.

use crate::f16x3;
use crate::isa::{global, shared, thread};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Threads of a CTA.
pub(super) const THREADS: u32 = 512;

/// Threads whose magnitudes one of them gathers.
const OCTET: u32 = 8;

/// The fewest threads that share a line. With 8, an operand of 2000 short lines would have 31
/// CTAs; with 32, a CTA would have little to do for lines of 100 elements.
pub(super) const FEWEST: u32 = 2 * OCTET;

/// Shared addresses, in bytes: the largest magnitude of each octet, and before, in its slot, that
/// of each thread. The slots of an octet begin a bank after those of the octet before, so that
/// the threads that gather them meet in no bank.
const OF_OCTETS: u32 = 0;
const OF_THREADS: u32 = OF_OCTETS + THREADS / OCTET * 4;
const OCTET_PITCH: u32 = (OCTET + 1) * 4;

/// Bytes of shared memory from its base on.
pub(super) const SHARED_BYTES: u32 = OF_THREADS + THREADS / OCTET * OCTET_PITCH;

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
    /// Gathers the largest magnitudes that the threads have found, of which this thread's is
    /// `largest`. The threads that share a line have neighbouring slots, whole octets of them.
    /// [`Group::exponent`] may be called afterwards.
    ///
    /// # Safety
    /// All threads of the CTA call this, each with another slot.
    #[inline(always)]
    pub(super) unsafe fn gather(&self, slot: u32, largest: u32) {
        let base = shared::base();
        let thread = thread::thread_index();
        let of_octet = |octet: u32| base + OF_THREADS + octet * OCTET_PITCH;
        // SAFETY: the barriers separate stores to shared memory from loads.
        unsafe {
            shared::store_u32(of_octet(slot / OCTET) + slot % OCTET * 4, largest);
            thread::sync_cta();
            if thread < THREADS / OCTET {
                let mut largest = 0;
                unroll!(I < 8, {
                    largest = shared::load_u32(of_octet(thread) + 4 * I as u32).max(largest);
                });
                shared::store_u32(base + OF_OCTETS + thread * 4, largest);
            }
            thread::sync_cta();
        }
    }

    /// The exponent of line `line`, which `threads` threads share, in slots from
    /// `line * threads` on.
    ///
    /// # Safety
    /// All threads of the CTA have gathered magnitudes.
    #[inline(always)]
    pub(super) unsafe fn exponent(&self, line: u32, threads: u32) -> i32 {
        let octets = threads / OCTET;
        let mut from = shared::base() + OF_OCTETS + line * octets * 4;
        let end = from + octets * 4;
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
