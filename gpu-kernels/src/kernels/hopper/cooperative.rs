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
//! Each other rung changes one of these parts and takes the rest from here.

use super::epilogue::TileStore;
use super::origin::Origin;
use super::pipeline::{self, Consumer, NoPeers, Peers, PipelineState};
use super::shared_memory::{M64_TILE_BYTES, SharedMemory};
use super::tma_load::TileLoads;
use super::traits::{Accumulators, KernelSchedule, KernelTraits};
use crate::dtype::Contiguous;
use crate::form::Planes;
use crate::isa::hint::{KEEPS_INVARIANTS, compute_here};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{dependency, thread, wgmma};
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
            let origin = Origin::of::<K>(params, tile).down(consumer.first_row::<K>());
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

/// Accumulators with undefined contents: the first multiply of a tile overwrites them.
#[inline(always)]
pub fn undefined<K: KernelTraits>() -> Accumulators<K> {
    [K::Accumulator::undefined(), K::Accumulator::undefined()]
}

/// Multiplies stages, from tile to tile.
pub struct MainLoop<K, P> {
    pub(super) smem: SharedMemory<K>,
    pub(super) peers: P,
    pub(super) consumer: Consumer,
    pub(super) state: PipelineState,
}

impl<K: KernelTraits, P: Peers> MainLoop<K, P> {
    /// The main loop of `consumer`, which reads stages that `peers` fill.
    #[inline(always)]
    pub fn new(smem: SharedMemory<K>, peers: P, consumer: Consumer) -> Self {
        MainLoop {
            smem,
            peers,
            consumer,
            state: PipelineState::CONSUMER_START,
        }
    }

    /// Skips `k_blocks` stages, which the other consumer reads.
    #[inline(always)]
    pub fn skip(&mut self, k_blocks: u32) {
        self.state = self.state.skip::<K>(k_blocks);
    }

    /// All k-blocks of a tile, from the first multiply to accumulators that can be read.
    ///
    /// # Safety
    /// See [`MainLoop::multiply`].
    #[inline(always)]
    pub unsafe fn multiply_tile(&mut self, accumulators: &mut Accumulators<K>, k_blocks: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            if K::PARTS > 1 {
                self.multiply_parts(accumulators, k_blocks);
            } else if K::A_IN_REGISTERS {
                let last = self.multiply_registers(accumulators, k_blocks);
                self.finish(accumulators, last);
            } else {
                let last = self.multiply(accumulators, k_blocks);
                self.finish(accumulators, last);
            }
        }
    }

    /// Multiplies `k_blocks` stages. One group of multiplies stays in flight, so a stage
    /// is released one k-block after its multiplies were issued. Returns the last stage,
    /// for [`MainLoop::finish`] to release.
    ///
    /// # Safety
    /// The whole warpgroup calls this together; the producer fills `k_blocks` stages, and
    /// `k_blocks` is at least 1.
    #[inline(always)]
    pub unsafe fn multiply(&mut self, accumulators: &mut Accumulators<K>, k_blocks: u32) -> u32 {
        let mut previous = self.state.stage;
        let mut k_block = 0;
        // A loop that tests its condition first might not run at all. The accumulators
        // would then have a second definition, and ptxas would serialise every wgmma
        // (C7515).
        loop {
            let PipelineState { stage, parity } = self.state;
            // SAFETY: the stage has landed; the warpgroup is together.
            unsafe {
                self.smem.full(stage).wait(parity);
                let a = self.smem.a(stage, 0).m64(self.consumer.first_m64::<K>());
                let a = wgmma::descriptor(K::A::MAJOR, a.address());
                let b = wgmma::descriptor(K::B::MAJOR, self.smem.b(stage, 0).address());
                wgmma::fence();
                // The first multiply of a tile overwrites the accumulators.
                multiply_atom::<K>(accumulators, a, b, (k_block != 0) as u32);
                if K::ATOMS > 1 {
                    let next = (SharedMemory::<K>::ATOM_BYTES >> 4) as u64;
                    multiply_atom::<K>(accumulators, a + next, b + next, 1);
                }
                wgmma::commit();
                if k_block != 0 {
                    wgmma::wait::<1>();
                    self.peers.release(self.smem, previous, self.consumer.lane);
                }
            }
            previous = stage;
            self.state = self.state.next::<K>();
            k_block += 1;
            if k_block >= k_blocks {
                break;
            }
        }
        previous
    }

    /// Waits until all multiplies are finished, so that the accumulators can be read, and
    /// releases `last`, the last stage, unless C is staged in it.
    ///
    /// # Safety
    /// The whole warpgroup calls this together.
    #[inline(always)]
    pub unsafe fn finish(&self, accumulators: &mut Accumulators<K>, last: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            accumulators[0].finish();
            if K::M64_TILES > 1 {
                accumulators[1].finish();
            }
            if !SharedMemory::<K>::STAGES_C_IN_A {
                self.peers.release(self.smem, last, self.consumer.lane);
            }
        }
    }

    /// Stores this consumer's rows of the tile of [`MainLoop::multiply_tile`], from `origin` on.
    /// Where C is staged in the tile's last stage, that stage is released behind them.
    ///
    /// # Safety
    /// The whole warpgroup calls this together, once after each `multiply_tile`.
    #[inline(always)]
    pub unsafe fn store(
        &self,
        store: &mut TileStore<K>,
        accumulators: &mut Accumulators<K>,
        origin: Origin,
    ) {
        let last = self.state.previous_stage::<K>();
        // SAFETY: the caller's duty. The consumer's rows of A in the last stage are read by no
        // other consumer; a barrier of the warpgroup stands between its multiplies and the first
        // write to them (`TileStore::begin`), and no peer loads them before they are released.
        unsafe {
            if SharedMemory::<K>::STAGES_C_IN_A {
                store.stage_in(self.smem.staging_in(last, self.consumer.first_m64::<K>()));
            }
            store.tile(accumulators, origin);
            if SharedMemory::<K>::STAGES_C_IN_A {
                store.wait_all_read();
                self.peers.release(self.smem, last, self.consumer.lane);
            }
        }
    }
}

/// Issues the multiplies of one swizzle atom: four along K, for every m64 tile.
///
/// # Safety
/// See [`wgmma::Accumulator::multiply`].
#[inline(always)]
pub(super) unsafe fn multiply_atom<K: KernelTraits>(
    accumulators: &mut Accumulators<K>,
    a: u64,
    b: u64,
    accumulate: u32,
) {
    // SAFETY: the caller's duty.
    unsafe {
        multiply_k::<K>(accumulators, a, b, 0, accumulate);
        multiply_k::<K>(accumulators, a, b, 1, 1);
        multiply_k::<K>(accumulators, a, b, 2, 1);
        multiply_k::<K>(accumulators, a, b, 3, 1);
    }
}

/// Issues one wgmma for every m64 tile, over 32 bytes of K: number `index` of the four
/// in a swizzle atom.
///
/// # Safety
/// See [`wgmma::Accumulator::multiply`].
#[inline(always)]
unsafe fn multiply_k<K: KernelTraits>(
    accumulators: &mut Accumulators<K>,
    a: u64,
    b: u64,
    index: u64,
    accumulate: u32,
) {
    let a = a + index * wgmma::descriptor_step(K::A::MAJOR);
    let b = b + index * wgmma::descriptor_step(K::B::MAJOR);
    // SAFETY: the caller's duty.
    unsafe {
        accumulators[0].multiply::<K::Element, K::A, K::B>(a, b, accumulate);
        if K::M64_TILES > 1 {
            let a = a + (M64_TILE_BYTES >> 4) as u64;
            accumulators[1].multiply::<K::Element, K::A, K::B>(a, b, accumulate);
        }
    }
}
