//! Rung 3: clusters with multicast. CTAs side by side need the same rows of A, and CTAs
//! above each other the same columns of B. Each CTA loads a part of the shared tile and
//! multicasts it to every CTA that needs it, so one L2 request serves several SMs.
//!
//! ```text
//! cluster 2 × 1      CTA 0: rows 0..M     loads its A, and half of B for both
//!                    CTA 1: rows M..2M    loads its A, and the other half of B for both
//! ```
//!
//! A stage is empty when the consumers of *all* CTAs that read it have released it, so a
//! consumer arrives at the `empty` barrier of each CTA that loads data for it.
//!
//! Where CTAs share both ways (2×4, 4×2), a CTA's readers are not the readers of its peers. A peer
//! that needs none of the CTA's bytes could release a stage twice before another reader does so
//! once, and the CTA would load over data that is still read. So every CTA loads a part of every
//! shared tile there, also past the edges of A and B: no CTA then starts a round of the stages
//! before all CTAs whose barriers it arrives at have ended the last one.
//!
//! Clusters gain where a pitch is not a multiple of a cache line: there each row of a box
//! costs two L2 requests, and a cluster halves their number. On an H200
//! (`docs/perf-log.md`, "Requests that meet, and what multicast is for"), 128×256 tiles,
//! × cuBLASLt, cold: 3000³ rose from 0.66 to 0.74, 4104³ from 0.76 to 0.83. On aligned
//! operands CTAs without clusters are as fast, because the GPC merges concurrent requests
//! for the same line.

use super::cooperative::{Producer, tiles};
use super::epilogue::TileStore;
use super::main_loop::{MainLoop, undefined};
use super::origin::Origin;
use super::pipeline::{self, Consumer, Peers, Share};
use super::shared_memory::SharedMemory;
use super::traits::{KernelSchedule, KernelTraits};
use crate::cluster::Cluster;
use crate::cluster::ClusterShape;
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{cluster, dependency, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::schedule::WorkTile;

/// CTAs on adjacent tiles share their loads: CTAs along M share B, CTAs along N share A. Consumers
/// share the rows of a tile, or its columns.
///
/// How many CTAs there are is a part of the launch's form, so that one compiled tile serves all
/// shapes of clusters: the host folds it into the PTX, and the driver's compiler makes constants of
/// all that follows from it.
pub struct Clusters;

impl KernelSchedule for Clusters {
    const CLUSTER_OF_FORM: bool = true;
    const KEEPS_LAST_STAGE: bool = true;

    #[inline(always)]
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress) {
        let cluster = Self::cluster(params);
        let peers = Multicast::new(params.form.cluster);
        let k_blocks = ceil_div(params.k, K::BLOCK_K);
        let smem = SharedMemory::<K>::of_this_cta();
        // SAFETY: as in rung 1; the cluster barriers ensure that no CTA touches a peer
        // before the peer runs, or after it may have exited.
        unsafe {
            dependency::launch_dependents();
            // A stage is read by the CTAs in our row and column of the cluster.
            pipeline::set_up(maps, smem, cluster.m + cluster.n - 1);
            // Relaxed is enough: the fence in `set_up` has released the barriers, and
            // peers need to see no other write.
            cluster::arrive_relaxed();
            cluster::wait();
            if thread::thread_index() < WARPGROUP {
                pipeline::release_registers::<K>();
                if thread::thread_index() == 0 {
                    produce(params, maps, smem, peers, k_blocks);
                }
            } else {
                pipeline::claim_registers::<K>();
                consume(params, maps, smem, peers, k_blocks);
            }
            // A peer may still signal this CTA's barriers, or write its stages.
            cluster::arrive_relaxed();
            cluster::wait();
        }
    }
}

/// This CTA among the CTAs of its cluster, which are numbered down the columns.
#[derive(Clone, Copy)]
pub(super) struct Multicast {
    shape: ClusterShape,
}

impl Multicast {
    #[inline(always)]
    pub(super) fn new(shape: ClusterShape) -> Self {
        Multicast { shape }
    }

    /// Where this CTA's part begins of the cluster's `tile`. The part may
    /// lie outside C: its CTA still loads its share for its peers, and stores nothing.
    #[inline(always)]
    pub(super) fn origin<K: KernelTraits>(self, params: &GemmParams, tile: WorkTile) -> Origin {
        Origin::in_cluster::<K>(params, tile, self.place())
    }
}

/// The first CTA of every column of a cluster of eight CTAs at most, as a mask: every `m`-th of
/// `m · n` bits. Without a loop, the compilers fold it as the rest.
const fn column_starts(shape: ClusterShape) -> u32 {
    // Of 8 bits every one, every other one, every fourth one and the first one.
    let every = 0x01_11_55_ff_u32 >> (8 * shape.log2_m as u32);
    every & ((1 << shape.cluster().ctas()) - 1)
}

impl Peers for Multicast {
    #[inline(always)]
    fn place(self) -> (u32, u32) {
        let (rank, Cluster { m, .. }) = (cluster::rank(), self.shape.cluster());
        (rank % m, rank / m)
    }

    #[inline(always)]
    fn share_of_a(self) -> Share {
        let (down, across) = self.place();
        Share {
            index: across,
            of: self.shape.cluster().n,
            is_shared: self.shape.shares_a(),
            // Bits down, down + m, down + 2m, …: one in each column of the cluster.
            peers: column_starts(self.shape) << down,
        }
    }

    #[inline(always)]
    fn share_of_b(self) -> Share {
        let (down, across) = self.place();
        let Cluster { m, .. } = self.shape.cluster();
        Share {
            index: down,
            of: m,
            is_shared: self.shape.shares_b(),
            // A run of m bits: one column of the cluster.
            peers: ((1 << m) - 1) << (across * m),
        }
    }

    /// One thread arrives for each CTA in our row and column of the cluster.
    #[inline(always)]
    unsafe fn release<K: KernelTraits>(self, smem: SharedMemory<K>, stage: u32, lane: u32) {
        let (down, across) = self.place();
        let cluster = self.shape.cluster();
        let peer = (lane % cluster.m, lane / cluster.m);
        // `|` and `&`, because `||` and `&&` would become branches.
        let reads = (peer.0 == down) | (peer.1 == across);
        let exists = lane < cluster.sharing();
        // SAFETY: no peer exits before the cluster barrier at the end.
        unsafe { smem.empty(stage).arrive_at_if(exists & reads, lane) }
    }
}

/// The producer of rung 1, which here loads this CTA's share of every tile.
///
/// # Safety
/// One thread of the CTA calls this, after the barriers are set up.
#[inline(always)]
unsafe fn produce<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    peers: Multicast,
    k_blocks: u32,
) {
    let mut producer = Producer::new(params, maps, smem, peers);
    let mut tiles = tiles::<K>(params);
    while let Some(tile) = tiles.next() {
        // SAFETY: the caller's duty.
        unsafe { producer.fill(peers.origin::<K>(params, tile), (0, k_blocks)) };
    }
    // SAFETY: the caller's duty. The cluster barrier at the end orders no arrivals of peers before it.
    unsafe { producer.tail() };
    // For a CTA without tiles.
    dependency::wait();
}

/// The consumer of rung 1, which here releases a stage to every CTA that loads into it.
///
/// # Safety
/// A whole warpgroup calls this, after the barriers are set up.
#[inline(always)]
unsafe fn consume<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    peers: Multicast,
    k_blocks: u32,
) {
    // SAFETY: the whole warpgroup runs all this together.
    unsafe {
        let consumer = Consumer::this();
        let mut main_loop = MainLoop::new(smem, peers, consumer);
        let mut store = TileStore::<K>::new(params, maps, smem, consumer);
        let mut tiles = tiles::<K>(params);
        while let Some(tile) = tiles.next() {
            let origin = consumer.part_of::<K>(peers.origin::<K>(params, tile));
            dependency::wait();
            store.prepare(origin);
            let mut accumulators = undefined::<K>();
            main_loop.multiply_tile(&mut accumulators, k_blocks);
            main_loop.store(&mut store, &mut accumulators, origin);
        }
        store.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_starts_at_every_mth_cta() {
        for m in [1, 2, 4, 8] {
            for n in [1, 2, 4, 8].into_iter().filter(|n| m * n <= 8) {
                let starts = (0..n).map(|column| 1_u32 << (column * m));
                let cluster = Cluster { m, n, k: 1 };
                let found = column_starts(ClusterShape::of(cluster));
                assert_eq!(found, starts.sum(), "{m}×{n}");
            }
        }
    }
}
