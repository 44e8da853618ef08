//! Rung 7: split-K over clusters, for deep products with fewer tiles than SMs (CUTLASS:
//! `GemmSplitKParallel`). Every cluster computes one tile over a part of K, with the multicast of
//! rung 3, and leaves its accumulators in the workspace. A launch of
//! [`reduce`](crate::kernels::reduce) follows, which adds the parts of each tile on all SMs,
//! computes the epilogue and stores C.
//!
//! ```text
//! 2 tiles, 6 clusters     cluster 0 1 2    tile 0, the first, second and last third of its k-blocks
//!                         cluster 3 4 5    tile 1, …
//! 2 tiles, 3 clusters     cluster 0        tile 0, two thirds of its k-blocks
//!                         cluster 1        the rest of tile 0, and the first third of tile 1
//!                         cluster 2        the rest of tile 1
//! ```
//!
//! Where tiles do not divide the clusters, ranges of k-blocks cross from one tile to the next
//! ([`crate::split_k`]), so that 74 tiles keep 132 SMs, too.
//!
//! Stream-K kernels do the same without clusters, rung 6 does it for operands that TMA cannot read,
//! and rung 4 has no workspace. Where operands
//! straddle cache lines, the requests to L2 limit a deep product, and CTAs that share loads make
//! fewer. The kernel stores no C, so all of its shared memory is stages.
//!
//! The parts of a tile are added in the order of K, so results are the same bit for bit from run to run.

use super::cluster::Multicast;
use super::cooperative::{Producer, cluster_position, tiles, tiles_here};
use super::main_loop::{MainLoop, undefined};
use super::pipeline::{self, Consumer, Peers};
use super::shared_memory::SharedMemory;
use super::stream_k::Workspace;
use super::traits::{KernelSchedule, KernelTraits};
use crate::isa::hint::{compute_here, compute_here_u64};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{cluster, dependency, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::split_k::SplitKScheduler;

/// Clusters of a shape of the form, as in rung 3, split the K of each tile.
pub struct SplitKParallel;

impl KernelSchedule for SplitKParallel {
    const CLUSTER_OF_FORM: bool = true;
    const LEAVES_SUMS: bool = true;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let cluster = Self::cluster(params);
        let peers = Multicast::new(params.form.cluster);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as in rung 3.
        unsafe {
            dependency::launch_dependents();
            // A stage is read by the CTAs in our row and column of the cluster.
            pipeline::set_up(maps, smem, cluster.m + cluster.n - 1);
            cluster::arrive_relaxed();
            cluster::wait();
            if thread::thread_index() < WARPGROUP {
                pipeline::release_registers::<K>();
                if thread::thread_index() == 0 {
                    produce(params, maps, smem, peers);
                }
            } else {
                pipeline::claim_registers::<K>();
                consume(params, smem, peers);
            }
            cluster::arrive_relaxed();
            cluster::wait();
        }
    }
}

/// The parts of tiles that this cluster computes.
#[inline(always)]
pub(super) fn units<K: KernelTraits>(params: &GemmParams) -> SplitKScheduler {
    SplitKScheduler::new(
        tiles::<K>(params),
        cluster_position::<K, false>(params),
        params.stream_k_ctas,
        ceil_div(params.k, K::BLOCK_K),
    )
}

/// [`units`], computed here and not before a loop.
#[inline(always)]
pub(super) fn units_here<K: KernelTraits>(params: &GemmParams) -> SplitKScheduler {
    SplitKScheduler::new(
        tiles_here::<K>(params),
        cluster_position::<K, true>(params),
        compute_here(params.stream_k_ctas),
        ceil_div(compute_here(params.k), K::BLOCK_K),
    )
}

/// The producer: loads this CTA's share of the k-blocks of its cluster.
///
/// # Safety
/// One thread of the CTA calls this, after the barriers are set up.
#[inline(always)]
unsafe fn produce<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    peers: Multicast,
) {
    let mut producer = Producer::new(params, maps, smem, peers);
    let mut units = units::<K>(params);
    while let Some(unit) = units.next() {
        let origin = peers.origin::<K>(params, unit.tile);
        // SAFETY: the caller's duty.
        unsafe { producer.fill(origin, (unit.first, unit.end)) };
    }
    // SAFETY: the caller's duty. The cluster barrier at the end does not order the arrivals of peers
    // before it.
    unsafe { producer.tail() };
    // For a CTA without a tile.
    dependency::wait();
}

/// A consumer: multiplies its rows over the k-blocks of each part, and leaves the accumulators in the
/// workspace.
///
/// # Safety
/// A whole warpgroup calls this, after the barriers are set up.
#[inline(always)]
pub(super) unsafe fn consume<K: KernelTraits>(
    params: &GemmParams,
    smem: SharedMemory<K>,
    peers: impl Peers,
) {
    // SAFETY: the whole warpgroup runs all this together.
    unsafe {
        let consumer = Consumer::this();
        let mut main_loop = MainLoop::new(smem, peers, consumer);
        let mut units = units::<K>(params);
        while let Some(unit) = units.next() {
            dependency::wait();
            let mut accumulators = undefined::<K>();
            main_loop.multiply_tile(&mut accumulators, unit.end - unit.first);
            // Computed here, as in stream-K: before the first part, the addresses would take
            // registers from the main loop.
            let place = (compute_here_u64(params.workspace), unit.part);
            let cluster = (K::Schedule::cluster(params), peers.place());
            let lane = compute_here(consumer.lane);
            Workspace::<K>::in_cluster(place, cluster, (consumer.index, lane)).write(&accumulators);
        }
    }
}
