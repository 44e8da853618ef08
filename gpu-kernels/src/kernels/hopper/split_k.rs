//! Rung 4: split-K inside a cluster, for products with fewer tiles than SMs. `k` CTAs
//! compute one tile, each over its part of K, and then add up their accumulators by a
//! reduce-scatter through distributed shared memory.
//!
//! Each CTA owns the rows of `4 / k` of each consumer's four warps; of eight CTAs, the first four
//! own a warp's rows each, and the others none. With two CTAs:
//!
//! ```text
//!           CTA 0                     CTA 1
//! warp 0    add, store rows  0..16    send to CTA 0
//! warp 1    add, store rows 16..32    send to CTA 0
//! warp 2    send to CTA 1             add, store rows 32..48
//! warp 3    send to CTA 1             add, store rows 48..64
//! ```
//!
//! CTAs own rows rather than columns, because a warp then sends all its registers to one
//! peer or to none, and stores whole rows of C.
//!
//! **Barriers.** Each tile has two phases of the cluster barrier: in one all accumulators are
//! sent, in the other all are added up, and the exchange buffer is free for the next tile
//! (PTX ISA, "State Spaces: .shared::cluster"). The barrier's `arrive` has release semantics
//! and its `wait` acquire semantics (PTX ISA, "barrier.cluster"), which orders both. The last
//! tile has no second phase.
//!
//! The producer arrives too, since the barrier waits for every thread that has not
//! exited, but ahead of time and without ordering anything (`ProducerArrivals`).
//! In each phase every thread arrives once and waits once:
//!
//! ```text
//! phase         0: all CTAs run     1: first tile is sent   2: it is added up     3: …
//! consumers     arrive, multiply,   wait, send, arrive,     wait, add, arrive,
//!                                                           store, multiply,      wait, send …
//! producer      arrive, load,       wait, arrive, load,     wait, arrive,         wait, arrive …
//! ```
//!
//! **Order of additions.** The sums are pairwise: (s₀ + s₁) + (s₂ + s₃), where sᵢ is the
//! partial sum of CTA i; of eight, the sum of the first four and that of the last four. The choice of the CTA that adds changes only the order of the
//! operands, and addition commutes, so results are the same bit for bit from run to run
//! and in every row. The reduction needs no workspace, no atomics and no second kernel.
//!
//! Gained on an H200 (`docs/perf-log.md`, "Two ideas that did not pay" and "Short
//! products"), f16, × cuBLAS, cold: 64×4096×4096 from 0.82 to 0.93 with two CTAs a tile,
//! 16×1024×8192 from 0.52 to 0.94 with four. When the reduce-scatter replaced a single
//! adding CTA, 64×4096×4096 rose from 0.93 to 0.99.

use core::marker::PhantomData;

use super::cooperative::{Producer, tiles};
use super::epilogue::TileStore;
use super::main_loop::{MainLoop, undefined};
use super::origin::Origin;
use super::pipeline::{self, Consumer, NoPeers};
use super::shared_memory::SharedMemory;
use super::traits::{KernelSchedule, KernelTraits};
use crate::cluster::Cluster;
use crate::epilogue::plus;
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{cluster, dependency, shared, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::unroll::unroll;

/// The CTAs of a cluster split the K of one tile.
pub struct SplitK<const CTAS: u32>;

impl<const CTAS: u32> KernelSchedule for SplitK<CTAS> {
    const CLUSTER: Cluster = Cluster {
        m: 1,
        n: 1,
        k: CTAS,
    };

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let rank = cluster::rank();
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as in rung 1; the exchange waits for the peers.
        unsafe {
            dependency::launch_dependents();
            pipeline::set_up(maps, smem, 1);
            thread::sync_cta();
            if thread::thread_index() < WARPGROUP {
                pipeline::release_registers::<K>();
                if thread::thread_index() == 0 {
                    produce(params, maps, smem, rank, k_blocks);
                }
            } else {
                pipeline::claim_registers::<K>();
                consume(params, maps, smem, rank, k_blocks);
            }
        }
    }
}

/// The first and the end of this CTA's k-blocks of each tile. A CTA has at least one, if
/// need be past the end of K, where producers deliver zeros.
#[inline(always)]
pub(super) fn part<K: KernelTraits>(rank: u32, k_blocks: u32) -> (u32, u32) {
    let part = ceil_div(k_blocks, K::CLUSTER.k);
    (rank * part, (rank + 1) * part)
}

/// The producer: loads this CTA's k-blocks of every tile.
///
/// # Safety
/// One thread of the CTA calls this, after the barriers are set up.
#[inline(always)]
unsafe fn produce<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    rank: u32,
    k_blocks: u32,
) {
    // SAFETY: this thread takes no part in the exchange, and calls `tile` once a tile.
    unsafe {
        let mut producer = Producer::new(params, maps, smem, NoPeers);
        let mut arrivals = ProducerArrivals::begin();
        let mut tiles = tiles::<K>(params);
        let part = part::<K>(rank, k_blocks);
        while let Some(tile) = tiles.next() {
            producer.fill(Origin::of::<K>(params, tile), part);
            arrivals.tile();
        }
        // For a CTA without tiles.
        dependency::wait();
        arrivals.end();
    }
}

/// The consumer: multiplies this CTA's k-blocks of every tile, exchanges accumulators
/// with the peers, and stores its rows.
///
/// # Safety
/// A whole warpgroup calls this, after the barriers are set up.
#[inline(always)]
pub(super) unsafe fn consume<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    rank: u32,
    k_blocks: u32,
) {
    // SAFETY: the whole warpgroup runs all this together, up to the exchange.
    unsafe {
        let consumer = Consumer::this();
        let mut main_loop = MainLoop::new(smem, NoPeers, consumer);
        let mut store = TileStore::<K>::new(params, maps, smem, consumer);
        let exchange = Exchange::<K>::begin(smem, rank, consumer);
        let mut tiles = tiles::<K>(params);
        let (first, end) = part::<K>(rank, k_blocks);
        let mut next = tiles.next();
        while let Some(tile) = next {
            let origin = consumer.part_of::<K>(Origin::of::<K>(params, tile));
            dependency::wait();
            let mut accumulators = undefined::<K>();
            main_loop.multiply_tile(&mut accumulators, end - first);
            let stores = exchange.reduce_scatter(&mut accumulators[0], origin.row, params.m);
            next = tiles.next();
            if next.is_some() {
                exchange.release();
            }
            // From here on the warps diverge: some have nothing to store.
            if stores {
                store.prepare(origin);
                store.tile(&mut accumulators, origin);
            }
        }
        store.finish();
    }
}

/// The exchange of accumulators, as one thread of the consumer sees it.
struct Exchange<K> {
    /// Shared address of this thread's vectors in the first peer's part of the exchange buffer,
    /// which has the same address in every CTA.
    buffer: u32,
    /// Index of this CTA along K.
    rank: u32,
    /// Index of the CTA that adds and stores the rows of this warp.
    owner: u32,
    /// First row of this warp, of its consumer's 64.
    first_row: u32,
    kernel: PhantomData<K>,
}

impl<K: KernelTraits> Exchange<K> {
    /// Arrives for phase 0, which ends when all CTAs of the cluster run: before that no CTA may
    /// write a peer's shared memory (CUDA C++ Programming Guide, "Distributed Shared Memory").
    ///
    /// # Safety
    /// The whole consumer warpgroup of every CTA calls this, once, before the first tile.
    #[inline(always)]
    unsafe fn begin(smem: SharedMemory<K>, rank: u32, consumer: Consumer) -> Self {
        let lane = consumer.lane;
        // SAFETY: `reduce_scatter` waits for this phase; whole warps call this.
        let warp = unsafe {
            cluster::arrive_relaxed();
            thread::broadcast(lane / 32)
        };
        Exchange {
            buffer: smem.exchange()
                + consumer.index * (SharedMemory::<K>::EXCHANGE_BYTES / K::CONSUMERS)
                + lane % PeerBuffer::<K>::THREADS * 16,
            rank,
            owner: warp * SharedMemory::<K>::OWNERS / 4,
            first_row: warp * 16,
            kernel: PhantomData,
        }
    }

    /// Adds up the accumulators of the consumer's rows from `row` on, of a C of `m` rows.
    /// Returns whether this warp stores its rows: this CTA owns them, and they are inside C.
    ///
    /// # Safety
    /// The whole consumer warpgroup of every CTA calls this, once a tile.
    #[inline(always)]
    unsafe fn reduce_scatter(&self, sums: &mut K::Accumulator, row: u32, m: u32) -> bool {
        let inside = row + self.first_row < m;
        let ours = self.rank == self.owner;
        // SAFETY: see "Barriers" in the module's documentation.
        unsafe {
            cluster::wait();
            if inside && !ours {
                let mut buffer = self.peer(self.rank ^ self.owner);
                buffer.address = cluster::address_in(buffer.address, self.owner);
                unroll!(GROUP < 16, {
                    if 16 * (GROUP as u32) < K::BLOCK_N {
                        buffer.send(GROUP as u32, sums.columns(GROUP));
                    }
                });
            }
            cluster::arrive();
            cluster::wait();
            if inside && ours {
                let first = self.peer(1);
                unroll!(GROUP < 16, {
                    if 16 * (GROUP as u32) < K::BLOCK_N {
                        sums.add(GROUP, first.received(GROUP as u32));
                    }
                });
                if K::CLUSTER.k > 2 {
                    unroll!(GROUP < 16, {
                        if 16 * (GROUP as u32) < K::BLOCK_N {
                            sums.add(GROUP, self.received_pair(2, GROUP as u32));
                        }
                    });
                }
                if K::CLUSTER.k > 4 {
                    unroll!(GROUP < 16, {
                        if 16 * (GROUP as u32) < K::BLOCK_N {
                            let low = self.received_pair(4, GROUP as u32);
                            let high = self.received_pair(6, GROUP as u32);
                            sums.add(GROUP, plus(low, high));
                        }
                    });
                }
            }
        }
        inside && ours
    }

    /// Lets the peers send the accumulators of the next tile.
    ///
    /// # Safety
    /// Between two tiles, the whole consumer warpgroup of every CTA calls this once, after
    /// [`Exchange::reduce_scatter`].
    #[inline(always)]
    unsafe fn release(&self) {
        // SAFETY: `reduce_scatter` waits for this phase. It has waited for the one before.
        unsafe { cluster::arrive() }
    }

    /// The sum of a group of columns from the peers whose ranks differ from the receiver's by
    /// `difference` and by `difference + 1`, an even number and the next.
    ///
    /// # Safety
    /// See [`PeerBuffer::received`].
    #[inline(always)]
    unsafe fn received_pair(&self, difference: u32, group: u32) -> [f32; 8] {
        // SAFETY: the caller's duty.
        unsafe {
            plus(
                self.peer(difference).received(group),
                self.peer(difference + 1).received(group),
            )
        }
    }

    /// The part of the buffer for the peer whose rank is the receiver's rank XOR
    /// `difference`.
    #[inline(always)]
    fn peer(&self, difference: u32) -> PeerBuffer<K> {
        PeerBuffer {
            address: self.buffer + (difference - 1) * PeerBuffer::<K>::BYTES,
            kernel: PhantomData,
        }
    }
}

/// One thread's accumulators from one peer: the eight values of a group of columns as two
/// 16-byte vectors, neighbouring threads side by side.
struct PeerBuffer<K> {
    address: u32,
    kernel: PhantomData<K>,
}

impl<K: KernelTraits> PeerBuffer<K> {
    /// Threads whose accumulators fill the buffer.
    const THREADS: u32 = WARPGROUP / SharedMemory::<K>::OWNERS;
    /// Bytes of the buffer: one consumer's accumulators of the rows that the receiver owns.
    const BYTES: u32 = K::ACCUMULATOR_BYTES / (K::CONSUMERS * SharedMemory::<K>::OWNERS);

    #[inline(always)]
    fn vector(&self, index: u32) -> u32 {
        self.address + index * (Self::THREADS * 16)
    }

    /// # Safety
    /// This is our part of a peer's buffer, and the peer has read its last contents.
    #[inline(always)]
    unsafe fn send(&self, group: u32, [a, b, c, d, e, f, g, h]: [f32; 8]) {
        // SAFETY: the caller's duty.
        unsafe {
            cluster::store_f32x4(self.vector(2 * group), [a, b, c, d]);
            cluster::store_f32x4(self.vector(2 * group + 1), [e, f, g, h]);
        }
    }

    /// # Safety
    /// The peer's accumulators have arrived in our shared memory.
    #[inline(always)]
    unsafe fn received(&self, group: u32) -> [f32; 8] {
        // SAFETY: the caller's duty.
        unsafe {
            let [a, b, c, d] = shared::load_f32x4(self.vector(2 * group));
            let [e, f, g, h] = shared::load_f32x4(self.vector(2 * group + 1));
            [a, b, c, d, e, f, g, h]
        }
    }
}

/// A producer thread's part in the cluster barriers. It arrives for the two phases between two
/// tiles when it has issued the loads of the second one, so that no consumer waits for it.
pub(super) struct ProducerArrivals {
    first_tile: bool,
}

impl ProducerArrivals {
    /// # Safety
    /// The producer calls this once, before the first tile, and [`ProducerArrivals::end`]
    /// after the last.
    #[inline(always)]
    pub(super) unsafe fn begin() -> Self {
        // SAFETY: this arrives for phase 0.
        unsafe { cluster::arrive_relaxed() };
        ProducerArrivals { first_tile: true }
    }

    /// # Safety
    /// The producer calls this once a tile.
    #[inline(always)]
    pub(super) unsafe fn tile(&mut self) {
        // SAFETY: each ends one phase and arrives for the next: the last tile is sent, and added
        // up; this one is sent.
        unsafe {
            if !self.first_tile {
                cluster::wait();
                cluster::arrive_relaxed();
            }
            cluster::wait();
            cluster::arrive_relaxed();
        }
        self.first_tile = false;
    }

    /// # Safety
    /// The producer calls this once, after the last tile.
    #[inline(always)]
    pub(super) unsafe fn end(self) {
        // SAFETY: this ends the last phase.
        unsafe { cluster::wait() };
    }
}
