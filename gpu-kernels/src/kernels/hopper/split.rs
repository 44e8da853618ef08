//! Split-K inside a cluster: `k` CTAs compute one tile, each over its share of
//! K, and then add up their sums by a reduce-scatter.
//!
//! Each CTA owns the rows of `4 / k` of the consumer's four warps. With two:
//!
//! ```text
//!           CTA 0                     CTA 1
//! warp 0    add, store rows  0..16    send to CTA 0
//! warp 1    add, store rows 16..32    send to CTA 0
//! warp 2    send to CTA 1             add, store rows 32..48
//! warp 3    send to CTA 1             add, store rows 48..64
//! ```
//!
//! Rows rather than columns, for then a warp sends all its registers to one peer
//! or none, and what it stores are whole lines of C.
//!
//! **Barriers.** The sums travel through distributed shared memory (PTX ISA,
//! "State Spaces: .shared::cluster"), and one cluster barrier a tile stands
//! between sending and adding. There are two sets of slots to receive in, which
//! take turns: a CTA reads a set before it arrives at the next tile's barrier, and
//! its peers write the set again after that barrier. The barrier's `arrive` has
//! release semantics and its `wait` acquire semantics (PTX ISA,
//! "barrier.cluster"), which orders both pairs.
//!
//! The producer arrives too, for the barrier waits for every thread that has not
//! exited, but ahead of time and without ordering anything ([`Attendance`]).
//! Phases, with one arrival and one wait of every thread in each:
//!
//! ```text
//! phase         0: all CTAs run     1: first tile's sums sent     2: second's …
//! consumers     arrive, wait        multiply, send, arrive, wait, add, store
//! producer      arrive, load,       wait, arrive, load,           wait, arrive …
//! ```
//!
//! **Order of additions.** Pairwise: (s₀ + s₁) + (s₂ + s₃) with sᵢ of CTA i.
//! Which CTA adds only changes which operand comes first, and addition commutes,
//! so results are the same bit for bit from run to run and in every row. No
//! workspace, no atomics and no second kernel.

use core::marker::PhantomData;

use super::device::Slab;
use super::{Shape, WARPGROUP};
use crate::isa::wgmma::{Accumulator, SupplyColumns, VisitColumns};
use crate::isa::{cluster, shared, thread};

/// The exchange of sums, as one thread of the consumer sees it.
pub(super) struct Exchange<S> {
    /// Shared address of this thread's vectors in the first slot of the set that
    /// is next. Everything stands at the same address in every CTA.
    slots: u32,
    /// What to add for the other set, or to subtract.
    other: i32,
    /// Index of this CTA along K.
    rank: u32,
    /// Of the CTA that adds and stores the rows of this warp.
    owner: u32,
    /// First row of this warp, in its tile.
    first_row: u32,
    shape: PhantomData<S>,
}

impl<S: Shape> Exchange<S> {
    /// `base` is the shared address of the kernel's memory. Returns when all CTAs
    /// of the cluster run: before that nobody may write their shared memory
    /// (CUDA C++ Programming Guide, "Distributed Shared Memory").
    ///
    /// # Safety
    /// By the whole consumer warpgroup of every CTA, once, before the first tile.
    #[inline(always)]
    pub(super) unsafe fn begin(base: u32, rank: u32, lane: u32) -> Self {
        let mut warp = 0;
        if S::CLUSTER.k > 1 {
            // SAFETY: phase 0 of the cluster's barrier; whole warps.
            unsafe {
                cluster::arrive_relaxed();
                cluster::wait();
                warp = thread::broadcast(lane / 32);
            }
        }
        Exchange {
            slots: base + S::EXCHANGE + lane % Slot::<S>::THREADS * 16,
            other: S::SLOTS_BYTES as i32,
            rank,
            owner: warp * S::CLUSTER.k / 4,
            first_row: warp * 16,
            shape: PhantomData,
        }
    }

    /// Brings together the sums of the tile whose first row is `row`, of a C of `m`
    /// rows. Whether this warp has sums to store now: its rows are this CTA's, and
    /// inside C.
    ///
    /// # Safety
    /// By the whole consumer warpgroup of every CTA, once a tile.
    #[inline(always)]
    pub(super) unsafe fn gather(&mut self, sums: &mut Slab<S>, row: u32, m: u32) -> bool {
        let inside = row + self.first_row < m;
        let ours = self.rank == self.owner;
        // SAFETY: see "Barriers" in the module's documentation.
        unsafe {
            if inside && !ours {
                let mut slot = self.slot(self.rank ^ self.owner);
                slot.address = cluster::address_in(slot.address, self.owner);
                sums.columns(&mut slot);
            }
            cluster::arrive();
            cluster::wait();
            if inside && ours {
                sums.add(&self.slot(1));
                if S::CLUSTER.k == 4 {
                    sums.add(&Pair(self.slot(2), self.slot(3)));
                }
            }
        }
        self.slots = self.slots.wrapping_add_signed(self.other);
        self.other = -self.other;
        inside && ours
    }

    /// Where the sums lie whose sender's rank XOR the receiver's is `difference`.
    #[inline(always)]
    fn slot(&self, difference: u32) -> Slot<S> {
        Slot {
            address: self.slots + (difference - 1) * S::PART_BYTES,
            shape: PhantomData,
        }
    }
}

/// One thread's share of the sums from one peer: eight values of a group as two
/// 16-byte vectors, neighbouring threads side by side.
struct Slot<S> {
    address: u32,
    shape: PhantomData<S>,
}

impl<S: Shape> Slot<S> {
    /// Threads whose sums fill a slot.
    const THREADS: u32 = WARPGROUP / S::CLUSTER.k;

    #[inline(always)]
    fn vector(&self, index: u32) -> u32 {
        self.address + index * (Self::THREADS * 16)
    }
}

impl<S: Shape> VisitColumns for Slot<S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        // SAFETY: this thread's part of our slot in a peer.
        unsafe {
            cluster::store_f32x4(self.vector(2 * group), [a, b, c, d]);
            cluster::store_f32x4(self.vector(2 * group + 1), [e, f, g, h]);
        }
    }
}

impl<S: Shape> SupplyColumns for Slot<S> {
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

/// The sums of two peers, added up.
struct Pair<S>(Slot<S>, Slot<S>);

impl<S: Shape> SupplyColumns for Pair<S> {
    #[inline(always)]
    unsafe fn supply(&self, group: u32) -> [f32; 8] {
        // SAFETY: as each of the two.
        let ([a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]) =
            unsafe { (self.0.supply(group), self.1.supply(group)) };
        [a + i, b + j, c + k, d + l, e + m, f + n, g + o, h + p]
    }
}

/// The part in the barriers of a thread that exchanges nothing and does not exit
/// before: the producer. It arrives for a tile's exchange when it has issued the
/// tile's loads, so that nobody waits for it, and waits for that exchange only
/// when it has issued those of the next tile.
pub(super) struct Attendance<S>(PhantomData<S>);

impl<S: Shape> Attendance<S> {
    /// # Safety
    /// Once, before the first tile; later [`Attendance::end`].
    #[inline(always)]
    pub(super) unsafe fn begin() -> Self {
        if S::CLUSTER.k > 1 {
            // SAFETY: phase 0.
            unsafe { cluster::arrive_relaxed() };
        }
        Attendance(PhantomData)
    }

    /// # Safety
    /// Once a tile.
    #[inline(always)]
    pub(super) unsafe fn tile(&self) {
        if S::CLUSTER.k > 1 {
            // SAFETY: ends one phase and arrives for the next.
            unsafe {
                cluster::wait();
                cluster::arrive_relaxed();
            }
        }
    }

    /// # Safety
    /// Once, after the last tile.
    #[inline(always)]
    pub(super) unsafe fn end(self) {
        if S::CLUSTER.k > 1 {
            // SAFETY: ends the last phase.
            unsafe { cluster::wait() };
        }
    }
}
