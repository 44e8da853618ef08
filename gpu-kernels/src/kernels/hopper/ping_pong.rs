//! Rung 2: ping-pong. The two consumers alternate at whole tiles, so that one multiplies
//! while the other stores (CUTLASS: `KernelTmaWarpSpecializedPingpong`). The producer of
//! rung 1 is unchanged, because it need not know which consumer reads a stage.
//!
//! ```text
//! consumer 0   multiply tile 0 │ store tile 0    │ multiply tile 2 │ store tile 2
//! consumer 1                   │ multiply tile 1 │ store tile 1    │ multiply tile 3
//! ```
//!
//! Each consumer has an order barrier. The other consumer arrives at it when the last stage
//! of its own tile has landed, and so passes on the tensor cores. An earlier arrival would
//! be wrong: an mbarrier's parity tells a round of the pipeline from the next round, not
//! from the round after that, and a consumer that ran ahead would wait for a stage two
//! rounds away.
//!
//! It also hides an activation, whose arithmetic would otherwise add to every tile: GELU at
//! 8192×8192×1024 takes 1.14 × the plain product, and 1.31 × in a cooperative 128×256 kernel.
//!
//! Gained on an H200, tiles of 128×192 (`docs/perf-log.md`, "Ping-pong, and k-blocks of
//! 128"): 7 % at 8192×8192×1024, where the 1,640 cycles between tiles are 8 % of the run
//! time; 1 % at 8192³.

use super::cooperative::{produce, tiles};
use super::epilogue::TileStore;
use super::main_loop::{MainLoop, undefined};
use super::origin::Origin;
use super::pipeline::{self, Consumer, NoPeers};
use super::shared_memory::SharedMemory;
use super::traits::{KernelSchedule, KernelTraits};
use crate::isa::hint::compute_here;
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{dependency, thread};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};

/// Consumers alternate at tiles; CTAs work alone.
pub struct PingPong;

impl KernelSchedule for PingPong {
    const PING_PONG: bool = true;

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

/// A consumer: multiplies and stores every other tile.
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
        let mut tiles = tiles::<K>(params);
        // The first consumer's first wait returns at once, like the producer's first wait
        // for an empty stage (`PipelineState::PRODUCER_START`).
        let mut order_parity = 1 - consumer.index % 2;
        tiles.alternate(consumer.index, K::CONSUMERS);
        main_loop.skip(consumer.index * k_blocks);
        while let Some(tile) = tiles.next() {
            let origin = Origin::of::<K>(params, tile);
            dependency::wait();
            store.prepare(origin);
            let mut accumulators = undefined::<K>();
            smem.order(consumer.index).wait(order_parity);
            order_parity ^= 1;
            let last = main_loop.multiply(&mut accumulators, k_blocks);
            // This consumer has seen its last stage land, so the other may multiply.
            let first = compute_here(consumer.lane) == 0;
            smem.order(1 - consumer.index).arrive_if(first);
            main_loop.finish(&mut accumulators, last);
            // The next stages belong to the other consumer's tile.
            main_loop.skip(k_blocks);
            store.tile(&mut accumulators, origin);
        }
        store.finish();
    }
}
