//! Rung 6: operands that TMA cannot read. Lines may begin at any element: three producer
//! warpgroups load them to registers, and store them where TMA would have.
//!
//! ```text
//! producer p   for every third k-block, from the pth on, over all tiles:
//!                  load the lines of A and of B to registers         [`lines`]
//!                  wait empty[s], store in the 128-byte swizzle
//!                  proxy fence, one arrival a warp at full[s]
//! consumer     as in rung 1, with the warpgroup that is the second of the CTA
//! ```
//!
//! A producer has the loads of a whole k-block in flight, and the other producers those of the
//! next two, so a k-block takes a third of the latency of memory. All loads of a product that
//! is no deeper than three k-blocks are in flight at once.
//!
//! The alternative is to copy the operands first ([`pack`](crate::kernels::pack)), which costs a
//! second launch. The selection weighs the two (`host/src/select/when_to_pack.rs`).

use super::cooperative::{consume, tiles};
use super::origin::Origin;
use super::pipeline::{self, NoPeers, PipelineState};
use super::shared_memory::SharedMemory;
use super::split_k::{self, ProducerArrivals, SplitK};
use super::split_k_parallel;
use super::traits::{KernelSchedule, KernelTraits};
use crate::cluster::Cluster;
use crate::dtype::{Contiguous, ElementType as _, Major};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{cluster, dependency, thread, tma};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use lines::{Block, Lines};

mod lines;

/// Producers load through registers; CTAs work alone.
pub struct Unaligned;

/// Producer warpgroups. With the consumer there are 512 threads, which have 128 registers each; up
/// to 51 of a producer's hold a k-block.
const PRODUCERS: u32 = 3;

/// The warpgroup that multiplies, as [`Consumer::this`](pipeline::Consumer::this) counts them.
const CONSUMER: u32 = 1;

/// Warps of a warpgroup, each of which arrives once at `full`.
const WARPS: u32 = WARPGROUP / 32;

impl KernelSchedule for Unaligned {
    const PRODUCERS: u32 = PRODUCERS;
    const LOADS_BY_TMA: bool = false;
    const ARRIVALS: u32 = WARPS;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: every thread of the CTA runs this code, in this order; each role takes whole
        // warpgroups, as wgmma requires.
        unsafe {
            match begin(maps, smem) {
                None => consume(params, maps, smem, k_blocks),
                Some(index) => {
                    let mut producer = Producer::new(params, smem, index);
                    let mut tiles = tiles::<K>(params);
                    while let Some(tile) = tiles.next() {
                        producer.fill(Origin::of::<K>(params, tile), (0, k_blocks));
                    }
                }
            }
        }
    }
}

/// The same, where the CTAs of a cluster split the K of one tile ([`split_k`]).
pub struct UnalignedSplitK<const CTAS: u32>;

impl<const CTAS: u32> KernelSchedule for UnalignedSplitK<CTAS> {
    const CLUSTER: Cluster = <SplitK<CTAS> as KernelSchedule>::CLUSTER;
    const PRODUCERS: u32 = PRODUCERS;
    const LOADS_BY_TMA: bool = false;
    const ARRIVALS: u32 = WARPS;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let rank = cluster::rank();
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as above; the exchange waits for the peers, and every producer thread arrives
        // for each tile.
        unsafe {
            match begin(maps, smem) {
                None => split_k::consume(params, maps, smem, rank, k_blocks),
                Some(index) => {
                    let mut producer = Producer::new(params, smem, index);
                    let mut arrivals = ProducerArrivals::begin();
                    let mut tiles = tiles::<K>(params);
                    let part = split_k::part::<K>(rank, k_blocks);
                    while let Some(tile) = tiles.next() {
                        producer.fill(Origin::of::<K>(params, tile), part);
                        arrivals.tile();
                    }
                    arrivals.end();
                }
            }
        }
    }
}

/// The same, where any number of CTAs share the k-blocks of all tiles, and leave their sums
/// ([`split_k_parallel`]).
pub struct UnalignedSplitKParallel;

impl KernelSchedule for UnalignedSplitKParallel {
    const LEAVES_SUMS: bool = true;
    const PRODUCERS: u32 = PRODUCERS;
    const LOADS_BY_TMA: bool = false;
    const ARRIVALS: u32 = WARPS;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as above.
        unsafe {
            match begin(maps, smem) {
                None => split_k_parallel::consume(params, smem, NoPeers),
                Some(index) => {
                    let mut producer = Producer::new(params, smem, index);
                    let mut units = split_k_parallel::units::<K>(params);
                    while let Some(unit) = units.next() {
                        let origin = Origin::of::<K>(params, unit.tile);
                        producer.fill(origin, (unit.first, unit.end));
                        // The loads of a k-block leave no registers for what it derives.
                        units = units.renewed(split_k_parallel::units_here::<K>(params));
                    }
                }
            }
        }
    }
}

/// Sets the CTA up, and gives the index of this thread's producer; `None` for the consumer.
///
/// # Safety
/// All threads of the CTA call this, once.
#[inline(always)]
unsafe fn begin<K: KernelTraits>(maps: MapAddress, smem: SharedMemory<K>) -> Option<u32> {
    const {
        assert!(K::BLOCK_M == 64 && matches!(K::BLOCK_N, 64 | 128));
        assert!(K::ATOMS == 1 && K::PARTS == 1);
        assert!(K::Element::DTYPE.bytes() == 2, "a lane loads a word");
    }
    // SAFETY: the caller's duty.
    let warpgroup = unsafe {
        dependency::launch_dependents();
        pipeline::set_up(maps, smem, 1);
        thread::sync_cta();
        dependency::wait();
        thread::broadcast(thread::thread_index() / WARPGROUP)
    };
    match warpgroup {
        CONSUMER => None,
        0 => Some(0),
        behind_the_consumer => Some(behind_the_consumer - 1),
    }
}

/// Fills every third stage, from tile to tile.
struct Producer<'a, K> {
    params: &'a GemmParams,
    smem: SharedMemory<K>,
    state: PipelineState,
    /// K-blocks of the next tile that other producers load before this one's first.
    turn: u32,
    /// Index of the warp in its warpgroup, and of the lane in its warp.
    warp: u32,
    lane: u32,
}

impl<'a, K: KernelTraits> Producer<'a, K> {
    /// Producer `index`.
    ///
    /// # Safety
    /// Whole warps call this.
    #[inline(always)]
    unsafe fn new(params: &'a GemmParams, smem: SharedMemory<K>, index: u32) -> Self {
        Producer {
            params,
            smem,
            state: PipelineState::PRODUCER_START.skip::<K>(index),
            turn: index,
            // SAFETY: the caller's duty.
            warp: unsafe { thread::broadcast(thread::thread_index() % WARPGROUP / 32) },
            lane: thread::thread_index() % 32,
        }
    }

    /// Fills a stage with each third of a tile's k-blocks from `first` to `end`.
    ///
    /// # Safety
    /// A whole warpgroup calls this, after the barriers are set up, and the other producers do.
    #[inline(always)]
    unsafe fn fill(&mut self, origin: Origin, (first, end): (u32, u32)) {
        let (params, dtype) = (self.params, K::Element::DTYPE);
        let (a, b) = match params.batches() {
            Some(_) if K::FUSED => (
                params.a.of_batch(origin.batch, dtype),
                params.b.of_batch(origin.batch, dtype),
            ),
            _ => (params.a, params.b),
        };
        let line = |major, address, along_k, along_mn| match major {
            Major::K => (address, along_mn),
            Major::Mn => (address, along_k),
        };
        let a = line(K::A::MAJOR, a.address, a.col_stride, a.row_stride);
        let b = line(K::B::MAJOR, b.address, b.row_stride, b.col_stride);
        let is_wide = K::BLOCK_N > 64;
        let a = Lines::new(K::A::MAJOR, a, (origin.row, params.m));
        let right = Lines::new(K::B::MAJOR, b, (origin.col + 64, params.n));
        let b = Lines::new(K::B::MAJOR, b, (origin.col, params.n));
        let mut k_block = first + self.turn;
        while k_block < end {
            let k = (k_block * K::BLOCK_K, params.k);
            let PipelineState { stage, parity } = self.state;
            let (smem, warp, lane) = (self.smem, self.warp, self.lane);
            // SAFETY: elements inside the operands are live; the stage is free once `empty` has
            // completed, and each warp arrives at `full` when its lines are visible to wgmma.
            unsafe {
                let a = a.load(k, warp, lane);
                let b = b.load(k, warp, lane);
                let right = match is_wide {
                    true => right.load(k, warp, lane),
                    false => Block::NONE,
                };
                smem.empty(stage).wait(parity);
                let (tile_a, tile_b) = (smem.a(stage, 0), smem.b(stage, 0));
                a.store_words(tile_a, warp, lane);
                b.store_words(tile_b, warp, lane);
                if is_wide {
                    right.store_words(tile_b.m64(1), warp, lane);
                }
                // A single element lands in a word that another lane has stored.
                thread::sync_warp();
                a.store_single(tile_a, warp);
                b.store_single(tile_b, warp);
                if is_wide {
                    right.store_single(tile_b.m64(1), warp);
                }
                tma::fence_shared();
                thread::sync_warp();
                smem.full(stage).arrive_if(lane == 0);
            }
            self.state = self.state.skip::<K>(PRODUCERS);
            k_block += PRODUCERS;
        }
        self.turn = k_block - end;
    }
}
