//! Rung 7: split-K over clusters, for deep products with fewer tiles than SMs (CUTLASS:
//! `GemmSplitKParallel`). Every cluster computes one tile over a part of K, with the multicast of
//! rung 3, and leaves its accumulators in the workspace. A launch of
//! [`reduce`](crate::kernels::reduce) follows, which adds the parts of each tile on all SMs,
//! computes the epilogue and stores C.
//!
//! ```text
//! 2 tiles, 3 parts     cluster 0 1 2    tile 0, the k-blocks of part 0, 1, 2
//!                      cluster 3 4 5    tile 1, …
//! ```
//!
//! Stream-K kernels do the same without clusters, rung 6 does it for operands that TMA cannot read,
//! and rung 4 has no workspace. Where operands
//! straddle cache lines, the requests to L2 limit a deep product, and CTAs that share loads make
//! fewer. The kernel stores no C, so all of its shared memory is stages.
//!
//! The parts of a tile are equally long but for one k-block, and are added in the order of K, so
//! results are the same bit for bit from run to run.

use super::cluster::Multicast;
use super::cooperative::{MainLoop, Producer, tiles, undefined};
use super::pipeline::{self, Consumer, Peers};
use super::shared_memory::SharedMemory;
use super::stream_k::Workspace;
use super::traits::{KernelSchedule, KernelTraits};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{cluster, dependency, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::schedule::CtaPosition;
use crate::stream_k::{StreamKScheduler, WorkUnit};

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

/// The cluster of this CTA, in the place of the CTA in a launch without clusters.
#[inline(always)]
fn cluster_position<K: KernelTraits>(params: &GemmParams) -> CtaPosition {
    thread::cta_position().of_cluster(K::Schedule::cluster(params))
}

/// The part of a tile that this cluster computes: one, because there are as many clusters as parts.
#[inline(always)]
pub(super) fn part<K: KernelTraits>(params: &GemmParams) -> Option<WorkUnit> {
    let mut parts = StreamKScheduler::new(
        tiles::<K>(params),
        cluster_position::<K>(params),
        params.stream_k_ctas,
        ceil_div(params.k, K::BLOCK_K),
    );
    parts.next()
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
    if let Some(part) = part::<K>(params) {
        let origin = peers.origin::<K>(params, part.tile);
        let mut producer = Producer::new(params, maps, smem, peers);
        // SAFETY: the caller's duty.
        unsafe {
            producer.fill(origin, (part.first, part.end));
            // The cluster barrier at the end does not order the arrivals of peers before it.
            producer.tail();
        }
    }
    // For a CTA without a tile.
    dependency::wait();
}

/// A consumer: multiplies its rows over the k-blocks of its cluster, and leaves the accumulators in
/// the cluster's part of the workspace.
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
        if let Some(part) = part::<K>(params) {
            let consumer = Consumer::this();
            let mut main_loop = MainLoop::new(smem, peers, consumer);
            dependency::wait();
            let mut accumulators = undefined::<K>();
            main_loop.multiply_tile(&mut accumulators, part.end - part.first);
            let part = (params.workspace, cluster_position::<K>(params).x);
            let cluster = (K::Schedule::cluster(params), peers.place());
            Workspace::<K>::in_cluster(part, cluster, (consumer.index, consumer.lane))
                .write(&accumulators);
        }
    }
}
