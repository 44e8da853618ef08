//! Stream-K's fix-up: a tile whose steps along K several CTAs have is brought
//! together by the one that has the last of them. Who that is, and why nobody
//! waits long or in a circle, is in [`crate::stream_k`].
//!
//! The plan's workspace has a slot for each CTA, which lends at most once a launch:
//!
//! ```text
//! slot    sums of consumer 0 | sums of consumer 1 | flag 0, flag 1, to 128 bytes
//! sums    vectors of 4 f32, first of all threads the first, then of all the second, …
//! ```
//!
//! A consumer warpgroup lends to the consumer with the same rows in the other
//! CTA, by a flag of their own, so that the consumers of a CTA need not wait for
//! each other. Who has seen a flag lowers it, so flags are all down between
//! launches, and a launch can be replayed from a CUDA graph as it is.
//!
//! The order of additions is fixed: to the finisher's own sums, which are the last
//! along K, those of its lenders in the order of K.

use super::device::{Cta, Slab};
use super::{Shape, WARPGROUP};
use crate::isa::hint::compute_here;
use crate::isa::wgmma::{Accumulator, SupplyColumns, VisitColumns};
use crate::isa::{flag, global, thread, warpgroup};
use crate::stream_k::Role;

impl<S: Shape> Cta<'_, S> {
    /// Does with `sums` what `role` says, up to storing them. Whether they are
    /// those of all K now, and to be stored.
    ///
    /// # Safety
    /// By the whole warpgroup of `consumer`, whose named barrier `barrier` is; the
    /// sums are finished.
    #[inline(always)]
    pub(super) unsafe fn fix_up(
        &self,
        sums: &mut [Slab<S>; 2],
        role: Role,
        consumer: u32,
        lane: u32,
        barrier: u32,
    ) -> bool {
        let cta = thread::cta_index_x();
        // From here on: addresses in a slot that depend on nothing else would be computed
        // before the first tile, and take some 64 registers from the main loop.
        let lane = compute_here(lane);
        // SAFETY: all of the warpgroup take the same way. A flag is raised behind
        // the barrier that follows the last store, and seen before the barrier
        // that precedes the first load ([`flag`]).
        unsafe {
            match role {
                Role::Whole => true,
                Role::Lend => {
                    let mut slot = Slot::<S>::of(self.params.workspace, cta, consumer, lane);
                    sums[0].columns(&mut slot);
                    if S::SLABS > 1 {
                        sums[1].columns(&mut slot.second_slab());
                    }
                    warpgroup::sync(barrier);
                    flag::raise_if(lane == 0, slot.flag);
                    false
                }
                Role::Finish { lenders } => {
                    let mut lender = cta - lenders;
                    while lender != cta {
                        let slot = Slot::<S>::of(self.params.workspace, lender, consumer, lane);
                        flag::wait(slot.flag);
                        warpgroup::sync(barrier);
                        flag::lower_if(lane == 0, slot.flag);
                        sums[0].add(&slot);
                        if S::SLABS > 1 {
                            sums[1].add(&slot.second_slab());
                        }
                        lender += 1;
                    }
                    true
                }
            }
        }
    }
}

/// One thread's part of a CTA's slot.
struct Slot<S> {
    /// Address of its first vector of a slab.
    vectors: u64,
    /// Address of its consumer's flag.
    flag: u64,
    shape: core::marker::PhantomData<S>,
}

impl<S: Shape> Slot<S> {
    /// Bytes between one vector of a thread and the next.
    const STRIDE: u64 = 16 * WARPGROUP as u64;
    /// Bytes of the sums of one slab.
    const SLAB: u64 = 64 * S::N as u64 * 4;

    #[inline(always)]
    fn of(workspace: u64, cta: u32, consumer: u32, lane: u32) -> Self {
        let slot = workspace + cta as u64 * S::STREAM_K_BYTES as u64;
        let consumer = consumer as u64;
        Slot {
            vectors: slot + consumer * (S::SLABS as u64 * Self::SLAB) + 16 * lane as u64,
            flag: slot + S::SUMS_BYTES as u64 + 4 * consumer,
            shape: core::marker::PhantomData,
        }
    }

    /// The same for the sums of the second 64 rows.
    #[inline(always)]
    fn second_slab(&self) -> Self {
        Slot {
            vectors: self.vectors + Self::SLAB,
            ..*self
        }
    }

    #[inline(always)]
    fn vector(&self, index: u32) -> u64 {
        self.vectors + index as u64 * Self::STRIDE
    }
}

impl<S: Shape> VisitColumns for Slot<S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        // SAFETY: this thread's part of our slot.
        unsafe {
            global::store_f32x4(self.vector(2 * group), [a, b, c, d]);
            global::store_f32x4(self.vector(2 * group + 1), [e, f, g, h]);
        }
    }
}

impl<S: Shape> SupplyColumns for Slot<S> {
    #[inline(always)]
    unsafe fn supply(&self, group: u32) -> [f32; 8] {
        // SAFETY: the lender has written its slot.
        unsafe {
            let [a, b, c, d] = global::load_f32x4(self.vector(2 * group));
            let [e, f, g, h] = global::load_f32x4(self.vector(2 * group + 1));
            [a, b, c, d, e, f, g, h]
        }
    }
}
