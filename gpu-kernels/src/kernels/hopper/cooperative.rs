//! Rung 1: the plain kernel. Two consumer warpgroups share the rows of a tile
//! ("cooperative", as CUTLASS's `KernelTmaWarpSpecializedCooperative`); CTAs work alone.
//!
//! ```text
//! set-up       mbarriers full[s], empty[s] of every stage
//! producer     one thread; for each tile, for each k-block:
//!                  wait empty[s], expect the bytes at full[s], TMA A and B into stage s
//! consumers    one warpgroup each, 64 or 128 rows of the tile; for each tile:
//!                  for each k-block: wait full[s], wgmma, release the stage before
//!                  wait for the last wgmma; accumulators → staging → C
//! ```
//!
//! The loop of the multiplies stands in [`main_loop`](super::main_loop). Each other rung changes one of
//! these parts and takes the rest from here.

use super::epilogue::TileStore;
use super::main_loop::{MainLoop, undefined};
use super::origin::Origin;
use super::pipeline::{self, Consumer, NoPeers, Peers, PipelineState};
use super::shared_memory::SharedMemory;
use super::tma_load::TileLoads;
use super::traits::{KernelSchedule, KernelTraits};
use crate::form::Planes;
use crate::isa::hint::{KEEPS_INVARIANTS, compute_here};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{dependency, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::schedule::{CtaPosition, TileScheduler};

/// Consumers share the rows of a tile; CTAs work alone.
pub struct Cooperative;

impl KernelSchedule for Cooperative {
    const KEEPS_LAST_STAGE: bool = true;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: every thread of the CTA runs this code, in this order; each role takes
        // a whole warpgroup, as setmaxnreg and wgmma require.
        unsafe {
            dependency::launch_dependents();
            // `set_up` may run before `dependency::wait`, because it touches nothing that
            // an earlier grid might write: it prefetches the tensor maps, and they are
            // copied only between launches. Each role waits when it knows its tile.
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

/// The tiles of this CTA. With clusters, the tiles of its cluster: the tiles of all CTAs
/// of a cluster together form one tile of the grid.
#[inline(always)]
pub fn tiles<K: KernelTraits>(params: &GemmParams) -> TileScheduler {
    tiles_of::<K, false>(params)
}

/// [`tiles`], computed here and not before a loop.
#[inline(always)]
pub fn tiles_here<K: KernelTraits>(params: &GemmParams) -> TileScheduler {
    tiles_of::<K, true>(params)
}

#[inline(always)]
fn tiles_of<K: KernelTraits, const HERE: bool>(params: &GemmParams) -> TileScheduler {
    let here = |value| if HERE { compute_here(value) } else { value };
    let position = cluster_position::<K, HERE>(params);
    let batches = if !K::FUSED || here(params.form.planes as u32) != Planes::Batch as u32 {
        None
    } else {
        Some(params.batches)
    };
    TileScheduler::new(params.raster, batches, position)
}

/// The place of this CTA's cluster among those of the launch, by its id; without clusters, of this
/// CTA. It is read `HERE`, if that is so, and not before a loop.
#[inline(always)]
pub(super) fn cluster_position<K: KernelTraits, const HERE: bool>(
    params: &GemmParams,
) -> CtaPosition {
    let position = if HERE {
        thread::cta_position_here()
    } else {
        thread::cta_position()
    };
    let cluster = K::Schedule::cluster(params);
    let position = position.of_cluster(cluster);
    if cluster.ctas() == 1 {
        return position;
    }
    CtaPosition {
        x: params.cluster_id(position.x),
        ..position
    }
}

// ------------------------------------------------------------------ producer

/// The producer: keeps the stages full.
///
/// # Safety
/// One thread of the CTA calls this, after the barriers are set up.
#[inline(always)]
pub unsafe fn produce<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    k_blocks: u32,
) {
    let mut producer = Producer::new(params, maps, smem, NoPeers);
    let mut tiles = tiles::<K>(params);
    while let Some(tile) = tiles.next() {
        // SAFETY: the caller's duty.
        unsafe { producer.fill(Origin::of::<K>(params, tile), (0, k_blocks)) };
    }
    // For a CTA without tiles.
    dependency::wait();
}

/// Fills stages, from tile to tile.
pub struct Producer<'a, K, P> {
    params: &'a GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    peers: P,
    state: PipelineState,
}

impl<'a, K: KernelTraits, P: Peers> Producer<'a, K, P> {
    /// A producer that shares its loads with `peers`.
    #[inline(always)]
    pub fn new(params: &'a GemmParams, maps: MapAddress, smem: SharedMemory<K>, peers: P) -> Self {
        Producer {
            params,
            maps,
            smem,
            peers,
            state: PipelineState::PRODUCER_START,
        }
    }

    /// Fills a stage with each of a tile's k-blocks from `first` to `end`; with each part of
    /// them, where elements have parts. The first load waits for the launch before.
    ///
    /// # Safety
    /// One thread of the CTA calls this, after the barriers are set up.
    #[inline(always)]
    pub unsafe fn fill(&mut self, origin: Origin, (first, end): (u32, u32)) {
        dependency::wait();
        let loads = TileLoads::new::<K>(self.params, self.maps, self.peers, origin);
        let mut block = first * K::PARTS;
        while block < end * K::PARTS {
            let PipelineState { stage, parity } = self.state;
            // SAFETY: the stage is free in every CTA we write to once its `empty` barrier
            // has completed, and `full` expects all bytes that land in this CTA: our own
            // loads and our peers' loads.
            unsafe {
                self.smem.empty(stage).wait(parity);
                self.smem
                    .full(stage)
                    .arrive_expecting(loads.stage_bytes::<K>());
                let k = block / K::PARTS * K::BLOCK_K;
                loads.start(self.smem, stage, (k, block % K::PARTS));
            }
            self.state = self.state.next::<K>();
            block += 1;
        }
    }

    /// Waits until every stage has been released by all CTAs that read it (CUTLASS: `producer_tail`).
    /// The barriers are then no longer needed: an arrival on its way to a CTA that has exited fails
    /// the launch.
    ///
    /// # Safety
    /// The thread that has filled the stages calls this, last.
    #[inline(always)]
    pub unsafe fn tail(self) {
        let mut state = self.state;
        let mut stage = 0;
        while stage < K::STAGES {
            // SAFETY: the barriers are set up. A wait for a stage that was never filled returns.
            unsafe { self.smem.empty(state.stage).wait(state.parity) };
            state = state.next::<K>();
            stage += 1;
        }
    }
}

// ----------------------------------------------------------------- consumers

/// A consumer: multiplies its rows of each tile, and stores them.
///
/// # Safety
/// A whole warpgroup calls this, after the barriers are set up.
#[inline(always)]
pub unsafe fn consume<K: KernelTraits>(
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
        let mut tiles = tiles::<K>(params);
        while let Some(tile) = tiles.next() {
            let origin = consumer.part_of::<K>(Origin::of::<K>(params, tile));
            dependency::wait();
            store.prepare(origin);
            let mut accumulators = undefined::<K>();
            let k_blocks = if KEEPS_INVARIANTS {
                ceil_div(compute_here(params.k), K::BLOCK_K)
            } else {
                k_blocks
            };
            main_loop.multiply_tile(&mut accumulators, k_blocks);
            main_loop.store(&mut store, &mut accumulators, origin);
            if KEEPS_INVARIANTS {
                main_loop.consumer.lane = thread::thread_index_here() % WARPGROUP;
                tiles = tiles.renewed(tiles_here::<K>(params));
            }
        }
        store.finish();
    }
}
