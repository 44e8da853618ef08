//! The pipeline between the producer and the consumers: a ring of stages, with two
//! mbarriers each (CUTLASS: `PipelineTmaAsync`, `PipelineState`).
//!
//! ```text
//! producer    wait empty[s] → expect the bytes at full[s] → TMA loads into stage s
//! consumers                   wait full[s] → wgmma reads stage s → arrive at empty[s]
//! ```
//!
//! The state carries over from tile to tile, so the producer of a persistent CTA loads the
//! next tile while the consumers still store the last one.

use super::origin::Origin;
use super::shared_memory::SharedMemory;
use super::traits::{KernelSchedule, KernelTraits};
use crate::isa::hint::{compute_here, compute_late};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{mbarrier, shared, thread, tma, warpgroup};
use crate::problem::{MapAddress, MapOf};

/// Leaves the producer's warpgroup 40 registers a thread, or 32 beside three consumers.
///
/// # Safety
/// All threads of the warpgroup call this, once.
#[inline(always)]
pub unsafe fn release_registers<K: KernelTraits>() {
    // SAFETY: the caller's duty.
    unsafe {
        if K::CONSUMERS > 2 {
            warpgroup::release_registers::<32>();
        } else {
            warpgroup::release_registers::<40>();
        }
    }
}

/// Claims 232 registers a thread for a consumer, or 160 where there are three. The roles together
/// have the registers that the CTA starts with: 3 · 168 = 40 + 2 · 232, and 4 · 128 = 32 + 3 · 160.
///
/// # Safety
/// All threads of the warpgroup call this, once, and the producer's call [`release_registers`].
#[inline(always)]
pub unsafe fn claim_registers<K: KernelTraits>() {
    // SAFETY: the caller's duty.
    unsafe {
        if K::CONSUMERS > 2 {
            warpgroup::claim_registers::<160>();
        } else {
            warpgroup::claim_registers::<232>();
        }
    }
}

/// A position in the ring: a stage, and the parity of the round.
#[derive(Clone, Copy)]
pub struct PipelineState {
    /// The stage.
    pub stage: u32,
    /// Parity of the phase to wait for.
    pub parity: u32,
}

impl PipelineState {
    /// The producer's first position. It finds every stage empty, because a wait for the
    /// parity before the first phase returns at once.
    pub const PRODUCER_START: PipelineState = PipelineState {
        stage: 0,
        parity: 1,
    };

    /// A consumer's first position.
    pub const CONSUMER_START: PipelineState = PipelineState {
        stage: 0,
        parity: 0,
    };

    /// The next stage; after the last stage, the first stage of the next round.
    #[inline(always)]
    pub fn next<K: KernelTraits>(self) -> Self {
        if self.stage + 1 == K::STAGES {
            PipelineState {
                stage: 0,
                parity: self.parity ^ 1,
            }
        } else {
            PipelineState {
                stage: self.stage + 1,
                parity: self.parity,
            }
        }
    }

    /// The stage before this one.
    #[inline(always)]
    pub fn previous_stage<K: KernelTraits>(self) -> u32 {
        if self.stage == 0 {
            K::STAGES - 1
        } else {
            self.stage - 1
        }
    }

    /// The position `k_blocks` further on.
    #[inline(always)]
    pub fn skip<K: KernelTraits>(self, k_blocks: u32) -> Self {
        let stage = self.stage + k_blocks % (2 * K::STAGES);
        let (rounds, stage) = (stage / K::STAGES, stage % K::STAGES);
        PipelineState {
            stage,
            parity: self.parity ^ (rounds & 1),
        }
    }
}

/// Initialises the mbarriers and the zero. `readers` CTAs read the data that one CTA loads
/// into a stage.
///
/// # Safety
/// All threads of the CTA call this, once; a barrier follows before any use of the
/// mbarriers.
#[inline(always)]
pub unsafe fn set_up<K: KernelTraits>(maps: MapAddress, smem: SharedMemory<K>, readers: u32) {
    // The roles ask for thread 0 again, behind a barrier. LLVM 7 would join the two branches, and give
    // that thread, whose warp has others, its own barrier and `setmaxnreg`.
    let thread = compute_late(thread::thread_index());
    // SAFETY: one thread initialises them before any thread uses them.
    unsafe {
        if thread == 0 {
            if K::Schedule::LOADS_BY_TMA {
                tma::prefetch_map(maps.of(MapOf::A));
                tma::prefetch_map(maps.of(MapOf::B));
            }
            let mut stage = 0;
            while stage < K::STAGES {
                smem.full(stage).init(K::Schedule::ARRIVALS);
                // Each consumer of each CTA that reads the stage arrives once; each of its warps
                // where they load A to registers.
                let arrivals = if K::A_IN_REGISTERS { WARPGROUP / 32 } else { 1 };
                smem.empty(stage)
                    .init(K::CONSUMERS_PER_TILE * readers * arrivals);
                stage += 1;
            }
            let mut consumer = 0;
            while consumer < SharedMemory::<K>::ORDER_BARRIERS {
                smem.order(consumer).init(1);
                consumer += 1;
            }
            let mut consumer = 0;
            while consumer < SharedMemory::<K>::SOURCE_BARRIERS {
                smem.source(consumer).init(1);
                consumer += 1;
            }
            if SharedMemory::<K>::HAS_ZERO {
                shared::store_u32(smem.zero(), 0);
            }
            mbarrier::fence_init();
        }
    }
}

/// A thread of a consumer warpgroup.
#[derive(Clone, Copy)]
pub struct Consumer {
    /// Index of the warpgroup among the consumers.
    pub index: u32,
    /// Index of the thread in its warpgroup.
    pub lane: u32,
}

impl Consumer {
    /// This thread.
    ///
    /// # Safety
    /// Whole warps of the consumers call this.
    #[inline(always)]
    pub unsafe fn this() -> Self {
        // SAFETY: whole warps call this.
        let index = unsafe { thread::broadcast(thread::thread_index() / WARPGROUP) } - 1;
        Consumer {
            index,
            lane: thread::thread_index() % WARPGROUP,
        }
    }

    /// This consumer's first m64 tile of the CTA's tile.
    #[inline(always)]
    pub fn first_m64<K: KernelTraits>(self) -> u32 {
        if K::CONSUMERS_PER_TILE == 1 || K::DIVIDES_COLUMNS {
            0
        } else {
            self.index * K::M64_TILES
        }
    }

    /// This consumer's first column of the CTA's tile.
    #[inline(always)]
    pub fn first_col<K: KernelTraits>(self) -> u32 {
        if K::DIVIDES_COLUMNS {
            self.index * K::CONSUMER_N
        } else {
            0
        }
    }

    /// Where this consumer's part begins of the CTA's `tile`.
    #[inline(always)]
    pub fn part_of<K: KernelTraits>(self, tile: Origin) -> Origin {
        Origin {
            row: tile.row + 64 * self.first_m64::<K>(),
            col: tile.col + self.first_col::<K>(),
            ..tile
        }
    }

    /// The named barrier of the warpgroup; named barrier 0 is the CTA's.
    #[inline(always)]
    pub fn barrier(self) -> u32 {
        1 + self.index
    }
}

/// A CTA's part of loading an operand's tile: one of `of` equal parts. The CTA multicasts
/// its part to all CTAs whose bits are set in `peers`.
#[derive(Clone, Copy)]
pub struct Share {
    /// Index of the part.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
    /// Whether there are several.
    pub is_shared: bool,
    /// CTAs of the cluster that need the tile, this one among them.
    pub peers: u32,
}

/// The CTAs that load and read the same stages.
pub trait Peers: Copy {
    /// Row and column of this CTA in its cluster.
    fn place(self) -> (u32, u32);

    /// This CTA's part of A's tile.
    fn share_of_a(self) -> Share;

    /// This CTA's part of B's tile.
    fn share_of_b(self) -> Share;

    /// Tells every producer that writes to `stage` that the warpgroup has read it.
    ///
    /// # Safety
    /// The whole warpgroup calls this; the multiplies that read the stage have finished. Where
    /// the warps load A to registers, a barrier of each warp stands after these loads.
    unsafe fn release<K: KernelTraits>(self, smem: SharedMemory<K>, stage: u32, lane: u32);
}

/// A CTA without peers: it loads whole tiles, and only it reads them.
#[derive(Clone, Copy)]
pub struct NoPeers;

impl Peers for NoPeers {
    #[inline(always)]
    fn place(self) -> (u32, u32) {
        (0, 0)
    }

    #[inline(always)]
    fn share_of_a(self) -> Share {
        Share {
            index: 0,
            of: 1,
            is_shared: false,
            peers: 1,
        }
    }

    #[inline(always)]
    fn share_of_b(self) -> Share {
        self.share_of_a()
    }

    #[inline(always)]
    unsafe fn release<K: KernelTraits>(self, smem: SharedMemory<K>, stage: u32, lane: u32) {
        // Compared anew each time: kept, the result would take a register.
        let lane = compute_here(lane);
        let first = if K::A_IN_REGISTERS {
            lane.is_multiple_of(32)
        } else {
            lane == 0
        };
        // SAFETY: the caller's duty.
        unsafe { smem.empty(stage).arrive_if(first) }
    }
}
