//! Rung 5: stream-K. The tiles that remain after whole waves are cut along K and shared:
//! whole tiles run as in rung 1, and several CTAs compute some k-blocks each of a shared
//! tile. [`crate::stream_k`] says which CTA computes which k-blocks, and why no CTA waits
//! long or in a cycle; this file has the fix-up, which adds up the accumulators.
//!
//! The plan's workspace has a part for each CTA, because a CTA writes at most one tile's
//! partial accumulators a launch:
//!
//! ```text
//! part            accumulators of consumer 0 │ of consumer 1 │ flags 0 and 1, to 128 bytes
//! accumulators    vectors of 4 f32: every thread's first, every thread's second, …
//! ```
//!
//! A cluster of [`split_k_parallel`](super::split_k_parallel) has one part for its tile, in the
//! same layout: m64 tile after m64 tile, each with the columns of all its CTAs.
//!
//! A consumer warpgroup writes for the consumer with the same rows in the CTA that
//! reduces, and raises a flag of its own, so that the consumers of a CTA need not wait for
//! each other. The CTA that has seen a flag lowers it, so all flags are down between
//! launches, and a CUDA graph can replay a launch as it is.
//!
//! Under [`Schedule::SplitK`] every CTA has a part of one tile, writes it, and raises no flag: a
//! launch of [`reduce`](crate::kernels::reduce) follows, in which all SMs add.
//!
//! The order of additions is fixed: the CTA that reduces has the last k-blocks, and adds
//! the accumulators of its peers to its own in the order of K.
//!
//! Gained on an H200 (`docs/perf-log.md`, "Stream-K for the last wave"), 128×256 tiles,
//! cold: 2 % at 8192³, 11 % at 3072³, 14 % at 2304³. It loses 2 % at 4096³, and a tile
//! that divides the product better usually gains more.

use core::marker::PhantomData;

use super::cooperative::{Producer, tiles, tiles_here};
use super::epilogue::TileStore;
use super::main_loop::{MainLoop, undefined};
use super::origin::Origin;
use super::pipeline::{self, Consumer, NoPeers};
use super::shared_memory::SharedMemory;
use super::traits::{Accumulators, KernelSchedule, KernelTraits};
use crate::cluster::Cluster;
use crate::isa::hint::{KEEPS_INVARIANTS, compute_here, compute_here_u64};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{dependency, flag, global, thread, warpgroup};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::schedule::{Schedule, TileScheduler};
use crate::stream_k::{FixUp, StreamKScheduler};
use crate::unroll::unroll;

/// Bytes of the accumulators of 64 rows and 16 columns: two vectors of each thread, side by side.
pub const GROUP_BYTES: u32 = 2 * 16 * WARPGROUP;

/// Bytes of one part of the workspace, for M×N tiles: accumulators, and a cache line of flags.
pub const fn part_bytes(m: u32, n: u32) -> u32 {
    m / 64 * (n / 16) * GROUP_BYTES + 128
}

/// CTAs share the tiles of the last wave; consumers share the rows of a tile.
pub struct StreamK;

impl KernelSchedule for StreamK {
    const STREAM_K: bool = true;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as in rung 1.
        unsafe {
            dependency::launch_dependents();
            pipeline::set_up(maps, smem, 1);
            thread::sync_cta();
            if thread::thread_index() < WARPGROUP {
                pipeline::release_registers::<K>();
                if thread::thread_index() == 0 {
                    produce(params, maps, smem, k_blocks);
                }
            } else {
                pipeline::claim_registers::<K>();
                consume(params, maps, smem, k_blocks);
            }
        }
    }
}

/// The tiles of this CTA, and its k-blocks of the tiles that are shared.
#[inline(always)]
fn work<K: KernelTraits>(params: &GemmParams, k_blocks: u32) -> StreamKScheduler {
    scheduler(params, tiles::<K>(params), k_blocks)
}

#[inline(always)]
fn scheduler(params: &GemmParams, tiles: TileScheduler, k_blocks: u32) -> StreamKScheduler {
    let cta = thread::cta_position();
    StreamKScheduler::new(tiles, cta, params.stream_k_ctas, k_blocks)
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
    k_blocks: u32,
) {
    let mut producer = Producer::new(params, maps, smem, NoPeers);
    let mut work = work::<K>(params, k_blocks);
    while let Some(unit) = work.next() {
        let origin = Origin::of::<K>(params, unit.tile);
        // SAFETY: the caller's duty.
        unsafe { producer.fill(origin, (unit.first, unit.end)) };
    }
    // For a CTA without tiles.
    dependency::wait();
}

/// A consumer: multiplies its rows of each tile over this CTA's k-blocks; then stores
/// them, or writes its accumulators to the workspace for the CTA that reduces.
///
/// # Safety
/// A whole warpgroup calls this, after the barriers are set up.
#[inline(always)]
unsafe fn consume<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    k_blocks: u32,
) {
    // SAFETY: the whole warpgroup runs all this together.
    unsafe {
        let consumer = Consumer::this();
        let mut main_loop = MainLoop::new(smem, NoPeers, consumer);
        let mut store = TileStore::<K>::new(params, maps, smem, consumer);
        let mut work = work::<K>(params, k_blocks);
        while let Some(unit) = work.next() {
            let origin = consumer.part_of::<K>(Origin::of::<K>(params, unit.tile));
            dependency::wait();
            let mut accumulators = undefined::<K>();
            main_loop.multiply_tile(&mut accumulators, unit.end - unit.first);
            if fix_up::<K>(params, &mut accumulators, unit.fix_up, consumer) {
                store.prepare(origin);
                store.tile(&mut accumulators, origin);
            }
            if KEEPS_INVARIANTS {
                let tiles = tiles_here::<K>(params);
                work = work.renewed(scheduler(params, tiles, k_blocks));
            }
        }
        store.finish();
    }
}

/// Writes the accumulators to the workspace, or adds the peers' accumulators to them, as
/// `fix_up` and the schedule say. Returns whether they now are the sums over all of K, for the
/// caller to store.
///
/// # Safety
/// The whole warpgroup of `consumer` calls this; the accumulators are finished.
#[inline(always)]
unsafe fn fix_up<K: KernelTraits>(
    params: &GemmParams,
    accumulators: &mut Accumulators<K>,
    fix_up: FixUp,
    consumer: Consumer,
) -> bool {
    // Without `compute_here` LLVM would compute the workspace addresses before the first
    // tile, and they would take some 64 registers from the main loop.
    let cta = compute_here(thread::cta_index_x());
    let workspace = compute_here_u64(params.workspace);
    let lane = compute_here(consumer.lane);
    // SAFETY: all threads of the warpgroup take the same branch. A flag is raised after
    // the barrier that follows the last store, and seen before the barrier that precedes
    // the first load ([`flag`]). One thread waits for a flag, and lowers it.
    unsafe {
        match fix_up {
            FixUp::None => true,
            _ if matches!(params.schedule, Schedule::SplitK) => {
                Workspace::<K>::of(workspace, cta, consumer.index, lane).write(accumulators);
                false
            }
            FixUp::Write => {
                let part = Workspace::<K>::of(workspace, cta, consumer.index, lane);
                part.write(accumulators);
                warpgroup::sync(consumer.barrier());
                flag::raise_if(lane == 0, part.flag);
                false
            }
            FixUp::Reduce { peers } => {
                // Each thread waits for another peer, so that all waits take as long as one: at
                // 128×128×16384 with seven peers, 20.6 µs instead of 23.0 on an H200.
                let mut peer = cta - peers + lane;
                while peer < cta {
                    let part = Workspace::<K>::of(workspace, peer, consumer.index, lane);
                    flag::wait(part.flag);
                    flag::lower(part.flag);
                    peer += WARPGROUP;
                }
                warpgroup::sync(consumer.barrier());
                let mut peer = cta - peers;
                while peer != cta {
                    let part = Workspace::<K>::of(workspace, peer, consumer.index, lane);
                    part.add_to(&mut accumulators[0]);
                    if K::M64_TILES > 1 {
                        part.second_m64().add_to(&mut accumulators[1]);
                    }
                    peer += 1;
                }
                true
            }
        }
    }
}

/// One thread's piece of a CTA's part of the workspace.
pub struct Workspace<K> {
    /// Address of the thread's first vector of an m64 tile.
    vectors: u64,
    /// Bytes from there to the first vector of the next m64 tile.
    m64_stride: u64,
    /// Address of the consumer's flag.
    flag: u64,
    kernel: PhantomData<K>,
}

impl<K: KernelTraits> Workspace<K> {
    /// Bytes between one vector of a thread and the next.
    const STRIDE: u64 = 16 * WARPGROUP as u64;
    /// Bytes of a CTA's accumulators of one m64 tile.
    const M64_BYTES: u64 = 64 * K::BLOCK_N as u64 * 4;

    #[inline(always)]
    fn of(workspace: u64, cta: u32, consumer: u32, lane: u32) -> Self {
        Self::in_cluster((workspace, cta), (Cluster::NONE, (0, 0)), (consumer, lane))
    }

    /// The piece in a part of the workspace, for the CTA at `(down, across)` of a cluster.
    #[inline(always)]
    pub(super) fn in_cluster(
        (workspace, part): (u64, u32),
        (cluster, (down, across)): (Cluster, (u32, u32)),
        (consumer, lane): (u32, u32),
    ) -> Self {
        let bytes = part_bytes(K::BLOCK_M * cluster.m, K::BLOCK_N * cluster.n);
        let part = workspace + part as u64 * bytes as u64;
        let m64 = (down * (K::BLOCK_M / 64) + consumer * K::M64_TILES) as u64;
        let m64_stride = Self::M64_BYTES * cluster.n as u64;
        let accumulators = part + m64 * m64_stride + across as u64 * Self::M64_BYTES;
        Workspace {
            vectors: accumulators + 16 * lane as u64,
            m64_stride,
            flag: part + K::ACCUMULATOR_BYTES as u64 + 4 * consumer as u64,
            kernel: PhantomData,
        }
    }

    /// The piece for the second m64 tile.
    #[inline(always)]
    fn second_m64(&self) -> Self {
        Workspace {
            vectors: self.vectors + self.m64_stride,
            ..*self
        }
    }

    #[inline(always)]
    fn vector(&self, index: u32) -> u64 {
        self.vectors + index as u64 * Self::STRIDE
    }

    /// # Safety
    /// No other CTA writes here; the accumulators are finished.
    #[inline(always)]
    pub(super) unsafe fn write(&self, accumulators: &Accumulators<K>) {
        // SAFETY: the caller's duty.
        unsafe {
            self.write_m64(&accumulators[0]);
            if K::M64_TILES > 1 {
                self.second_m64().write_m64(&accumulators[1]);
            }
        }
    }

    /// # Safety
    /// See [`Workspace::write`].
    #[inline(always)]
    unsafe fn write_m64(&self, accumulator: &K::Accumulator) {
        unroll!(GROUP < 16, {
            if 16 * (GROUP as u32) < K::BLOCK_N {
                // SAFETY: the caller's duty.
                unsafe {
                    let [a, b, c, d, e, f, g, h] = accumulator.columns(GROUP);
                    global::store_f32x4(self.vector(2 * GROUP as u32), [a, b, c, d]);
                    global::store_f32x4(self.vector(2 * GROUP as u32 + 1), [e, f, g, h]);
                }
            }
        });
    }

    /// # Safety
    /// The peer has written its part; the accumulator is finished.
    #[inline(always)]
    unsafe fn add_to(&self, accumulator: &mut K::Accumulator) {
        unroll!(GROUP < 16, {
            if 16 * (GROUP as u32) < K::BLOCK_N {
                // SAFETY: the caller's duty.
                unsafe {
                    let [a, b, c, d] = global::load_f32x4(self.vector(2 * GROUP as u32));
                    let [e, f, g, h] = global::load_f32x4(self.vector(2 * GROUP as u32 + 1));
                    accumulator.add(GROUP, [a, b, c, d, e, f, g, h]);
                }
            }
        });
    }
}
