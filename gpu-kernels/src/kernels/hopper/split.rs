//! Split-K inside a cluster: `k` CTAs compute one tile, each over its share of
//! K, and the first adds up the sums.
//!
//! ```text
//! CTA r > 0   write sums into CTA 0's shared memory ┐         ┌ next tile
//!                                               barrier    barrier
//! CTA 0                                             └ add 1, 2, … ┘ store
//! ```
//!
//! The barriers are the cluster's: every thread of every CTA takes part in two a
//! tile, the producers too.
//!
//! The order of additions is fixed, so results are the same bit for bit from
//! run to run. No workspace, no atomics and no second kernel: the sums travel
//! through distributed shared memory (PTX ISA, "State Spaces: .shared::cluster").

use core::marker::PhantomData;

use super::device::Slab;
use super::{Shape, WARPGROUP};
use crate::isa::wgmma::{Accumulator, SupplyColumns, VisitColumns};
use crate::isa::{cluster, shared};

/// The exchange of sums, as one thread of the consumer sees it.
pub(super) struct Exchange<S> {
    /// Shared address of the kernel's memory, the same in every CTA.
    base: u32,
    /// Index of this CTA along K.
    rank: u32,
    lane: u32,
    shape: PhantomData<S>,
}

/// What a thread that exchanges nothing does while its cluster exchanges a
/// tile's sums.
///
/// # Safety
/// Once a tile, by every thread that does not [`Exchange::gather`].
#[inline(always)]
pub(super) unsafe fn attend() {
    // SAFETY: the caller's duty.
    unsafe {
        cluster::sync();
        cluster::sync();
    }
}

impl<S: Shape> Exchange<S> {
    #[inline(always)]
    pub(super) fn new(base: u32, rank: u32, lane: u32) -> Self {
        Exchange {
            base,
            rank,
            lane,
            shape: PhantomData,
        }
    }

    /// Adds the sums of all CTAs to those of CTA 0. Whether this is CTA 0, which
    /// has the tile's sums now; the others are through with it.
    ///
    /// # Safety
    /// By the whole consumer warpgroup of every CTA, once a tile, while all other
    /// threads [`attend`].
    #[inline(always)]
    pub(super) unsafe fn gather(&self, sums: &mut Slab<S>) -> bool {
        // SAFETY: a peer's place in CTA 0's memory is written before the first
        // barrier, read between the two, and free after the second.
        unsafe {
            if self.rank != 0 {
                let place = Place::<S>::of(self.base, self.rank, self.lane).address;
                let address = cluster::address_in(place, 0);
                sums.columns(&mut Place::<S> {
                    address,
                    shape: PhantomData,
                });
            }
            cluster::sync();
            if self.rank == 0 {
                let mut peer = 1;
                while peer < S::CLUSTER.k {
                    sums.add(&Place::<S>::of(self.base, peer, self.lane));
                    peer += 1;
                }
            }
            cluster::sync();
        }
        self.rank == 0
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
