//! Split-K inside a cluster: `k` CTAs compute one tile, each over its share of
//! K, and the first adds up the sums.
//!
//! ```text
//! CTA r > 0   wait drained ── write sums into CTA 0's shared memory ── arrive
//! CTA 0       wait arrived ── add sums of 1, 2, … in that order ── signal drained
//! ```
//!
//! The order of additions is fixed, so results are the same bit for bit from
//! run to run. No workspace, no atomics and no second kernel: the sums travel
//! through distributed shared memory (PTX ISA, "State Spaces: .shared::cluster").

use core::marker::PhantomData;

use super::device::Slab;
use super::{Shape, WARPGROUP};
use crate::isa::wgmma::{Accumulator, SupplyColumns, VisitColumns};
use crate::isa::{cluster, mbarrier, shared, warpgroup};

/// The exchange of sums, as one thread of the consumer sees it.
pub(super) struct Exchange<S> {
    /// Shared address of the kernel's memory, the same in every CTA.
    base: u32,
    /// Index of this CTA along K.
    rank: u32,
    lane: u32,
    /// Parity of the tile: both barriers complete once a tile.
    parity: u32,
    shape: PhantomData<S>,
}

/// The consumer's named barrier; there is one consumer.
const BARRIER: u32 = 1;

impl<S: Shape> Exchange<S> {
    #[inline(always)]
    pub(super) fn new(base: u32, rank: u32, lane: u32) -> Self {
        Exchange {
            base,
            rank,
            lane,
            parity: 0,
            shape: PhantomData,
        }
    }

    /// In CTA 0: the sums of all others have arrived.
    #[inline(always)]
    fn arrived(base: u32) -> u32 {
        base + S::BARRIERS + mbarrier::BYTES * 2 * S::STAGES
    }

    /// In the others: CTA 0 has added the last tile's sums.
    #[inline(always)]
    fn drained(base: u32) -> u32 {
        Self::arrived(base) + mbarrier::BYTES
    }

    /// Initialises this CTA's two barriers.
    ///
    /// # Safety
    /// By one thread, before anyone uses them.
    #[inline(always)]
    pub(super) unsafe fn set_up(base: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            mbarrier::init(Self::arrived(base), S::CLUSTER.k - 1);
            mbarrier::init(Self::drained(base), 1);
        }
    }

    /// Adds the sums of all CTAs to those of CTA 0. Whether this is CTA 0, which
    /// has the tile's sums now; the others are through with it.
    ///
    /// # Safety
    /// By the whole consumer warpgroup of every CTA, once a tile.
    #[inline(always)]
    pub(super) unsafe fn gather(&mut self, sums: &mut Slab<S>) -> bool {
        let parity = self.parity;
        self.parity ^= 1;
        // SAFETY: a CTA's place in CTA 0's memory is written only when drained,
        // and read only when arrived; one thread signals for the warpgroup,
        // after a barrier.
        unsafe {
            if self.rank == 0 {
                mbarrier::wait_for_cluster(Self::arrived(self.base), parity);
                let mut peer = 1;
                while peer < S::CLUSTER.k {
                    sums.add(&Place::<S>::of(self.base, peer, self.lane));
                    peer += 1;
                }
                warpgroup::sync(BARRIER);
                if self.lane != 0 && self.lane < S::CLUSTER.k {
                    mbarrier::arrive_releasing_at(Self::drained(self.base), self.lane);
                }
                true
            } else {
                // The first tile's place is free: the parity before the first
                // phase counts as complete.
                mbarrier::wait_for_cluster(Self::drained(self.base), parity ^ 1);
                let place = Place::<S>::of(self.base, self.rank, self.lane).address;
                let address = cluster::address_in(place, 0);
                sums.columns(&mut Place::<S> {
                    address,
                    shape: PhantomData,
                });
                warpgroup::sync(BARRIER);
                if self.lane == 0 {
                    mbarrier::arrive_releasing_at(Self::arrived(self.base), 0);
                }
                false
            }
        }
    }
}

/// Where one thread's share of a peer's sums lies: eight values of a group as two
/// 16-byte vectors, neighbouring threads side by side.
struct Place<S> {
    address: u32,
    shape: PhantomData<S>,
}

impl<S: Shape> Place<S> {
    #[inline(always)]
    fn of(base: u32, rank: u32, lane: u32) -> Self {
        let address = base + S::EXCHANGE + (rank - 1) * S::SUM_BYTES + lane * 16;
        Place {
            address,
            shape: PhantomData,
        }
    }

    #[inline(always)]
    fn vector(&self, index: u32) -> u32 {
        self.address + index * (WARPGROUP * 16)
    }
}

impl<S: Shape> VisitColumns for Place<S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        // SAFETY: this thread's part of the peer's place in CTA 0.
        unsafe {
            cluster::store_f32x4(self.vector(2 * group), [a, b, c, d]);
            cluster::store_f32x4(self.vector(2 * group + 1), [e, f, g, h]);
        }
    }
}

impl<S: Shape> SupplyColumns for Place<S> {
    #[inline(always)]
    unsafe fn supply(&self, group: u32) -> [f32; 8] {
        // SAFETY: the peer's sums have arrived in our shared memory.
        unsafe {
            let [a, b, c, d] = shared::load_f32x4(self.vector(2 * group));
            let [e, f, g, h] = shared::load_f32x4(self.vector(2 * group + 1));
            [a, b, c, d, e, f, g, h]
        }
    }
}
