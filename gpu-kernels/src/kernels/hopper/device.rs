//! The Hopper kernel, in reading order: setup, producer, consumer. How the
//! producer fills a stage is in [`super::load`]; how consumers multiply it, in
//! [`super::main_loop`]; their last step, from registers to memory, in
//! [`super::epilogue`].

use super::epilogue::SlabStore;
use super::ring::RingPosition;
use super::split::{Attendance, Exchange};
use super::{Shape, WARPGROUP, Width};
use crate::isa::wgmma::Accumulator;
use crate::isa::{cluster, dependency, mbarrier, shared, thread, tma, warpgroup};
use crate::order::{Tile, TileGrid, ceil_div};
use crate::problem::GemmParams;
use crate::schedule::{CtaPosition, Schedule, TileWalk};
use crate::stream_k::{Part, PartWalk};

/// The accumulator of one slab of 64 rows.
pub(super) type Slab<S> = <<S as Shape>::Width as Width>::Accumulator;

/// One CTA's view of the launch and of its shared memory.
pub(super) struct Cta<'a, S> {
    pub(super) params: &'a GemmParams,
    /// Index of this CTA in its cluster.
    rank: u32,
    /// Steps of `BLOCK_K` along K.
    k_steps: u32,
    /// Shared address of the ring; 1024-byte aligned for the swizzle.
    ring: u32,
    shape: core::marker::PhantomData<S>,
}

/// # Safety
/// See [`crate::kernel::Kernel::run`].
#[inline(always)]
pub(super) unsafe fn run<S: Shape>(params: &GemmParams) {
    let cta = Cta::<S> {
        params,
        rank: if S::CLUSTER.ctas() > 1 {
            cluster::rank()
        } else {
            0
        },
        k_steps: ceil_div(params.k, S::BLOCK_K),
        ring: shared::base(),
        shape: core::marker::PhantomData,
    };
    // SAFETY: every thread of the CTA passes here, in this order; the roles
    // take whole warpgroups, as setmaxnreg and wgmma ask.
    unsafe {
        dependency::launch_dependents();
        // Touches nothing that a grid ahead might write: the tensor maps, which
        // it prefetches, are only ever copied between launches.
        cta.set_up_barriers();
        dependency::wait();
        if thread::thread_index() < WARPGROUP {
            // What the roles have together must be what the CTA started with:
            // 3 · 168 = 40 + 2 · 232.
            warpgroup::release_registers::<40>();
            if thread::thread_index() == 0 {
                cta.produce();
            }
        } else {
            warpgroup::claim_registers::<232>();
            cta.consume();
        }
        if S::CLUSTER.sharing() > 1 {
            // A peer may still signal this CTA's barriers, or write its ring.
            cluster::arrive_relaxed();
            cluster::wait();
        }
    }
}

impl<S: Shape> Cta<'_, S> {
    // ------------------------------------------------------------- setup

    /// Barrier that completes when the bytes of `stage` have landed.
    #[inline(always)]
    pub(super) fn full(&self, stage: u32) -> u32 {
        self.ring + S::BARRIERS + mbarrier::BYTES * stage
    }

    /// Barrier that completes when every reader of `stage` is done with it.
    #[inline(always)]
    pub(super) fn empty(&self, stage: u32) -> u32 {
        self.full(S::STAGES + stage)
    }

    /// Barrier that completes when it is the turn of `consumer` to multiply.
    #[inline(always)]
    pub(super) fn turn(&self, consumer: u32) -> u32 {
        self.full(2 * S::STAGES + consumer)
    }

    /// The A tile of `stage`; the B tile follows it.
    #[inline(always)]
    pub(super) fn a_tile(&self, stage: u32) -> u32 {
        self.ring + stage * S::STAGE_BYTES
    }

    /// # Safety
    /// By all threads of the CTA, once, before anything else.
    #[inline(always)]
    unsafe fn set_up_barriers(&self) {
        // SAFETY: one thread initialises before anyone uses.
        unsafe {
            if thread::thread_index() == 0 {
                tma::prefetch_map(self.params.tensor_map(0));
                tma::prefetch_map(self.params.tensor_map(1));
                let mut stage = 0;
                while stage < S::STAGES {
                    // The producer's own arrival; the bytes are counted apart.
                    mbarrier::init(self.full(stage), 1);
                    // One arrival a consumer, of every CTA that our loads write to:
                    // those in our row and column of the cluster.
                    let readers = S::CLUSTER.m + S::CLUSTER.n - 1;
                    mbarrier::init(self.empty(stage), S::TOGETHER * readers);
                    stage += 1;
                }
                let mut consumer = 0;
                while consumer < S::TURNS {
                    mbarrier::init(self.turn(consumer), 1);
                    consumer += 1;
                }
                mbarrier::fence_init();
            }
            if S::CLUSTER.sharing() > 1 {
                // `fence_init` has released the barriers; nothing else has
                // happened that a peer must know of.
                cluster::arrive_relaxed();
                cluster::wait();
            } else {
                // Where a cluster splits K, `Exchange` waits for the peers.
                thread::sync_cta();
            }
        }
    }

    /// The tiles of this cluster, or their parts; [`Cta::origin`] makes them this
    /// CTA's.
    #[inline(always)]
    fn walk(&self) -> PartWalk {
        let params = self.params;
        let grid = TileGrid::cover(params.m, params.n, S::M * S::CLUSTER.m, S::N * S::CLUSTER.n);
        let position = thread::cta_position();
        let cluster = CtaPosition {
            x: position.x / S::CLUSTER.ctas(),
            y: position.y,
            grid_x: position.grid_x / S::CLUSTER.ctas(),
        };
        if S::STREAM_K {
            let tiles = TileWalk::new(Schedule::StreamK, params.order, grid, cluster);
            PartWalk::shared(tiles, cluster, params.sharers, self.k_steps)
        } else {
            let tiles = TileWalk::new(params.schedule, params.order, grid, cluster);
            PartWalk::whole(tiles, self.steps())
        }
    }

    #[inline(always)]
    fn next(walk: &mut PartWalk) -> Option<Part> {
        if S::STREAM_K {
            walk.next()
        } else {
            walk.next_whole()
        }
    }

    /// This CTA's row and column in its cluster, which counts down columns.
    #[inline(always)]
    pub(super) fn place(&self) -> (u32, u32) {
        let rank = if S::CLUSTER.k > 1 { 0 } else { self.rank };
        (rank % S::CLUSTER.m, rank / S::CLUSTER.m)
    }

    /// The steps along K of each tile that are this CTA's: first and end, the same
    /// of all tiles but those it shares by stream-K. At least one, if need be past
    /// the end of K, where the copy engine delivers zeros.
    #[inline(always)]
    fn steps(&self) -> (u32, u32) {
        if S::CLUSTER.k == 1 {
            return (0, self.k_steps);
        }
        let share = ceil_div(self.k_steps, S::CLUSTER.k);
        (self.rank * share, (self.rank + 1) * share)
    }

    /// First row and column of C of this CTA's share of `tile`. It may lie
    /// outside C: such a CTA still loads its share for its peers, and stores nothing.
    #[inline(always)]
    fn origin(&self, tile: Tile) -> (u32, u32) {
        let (down, across) = self.place();
        let row = (tile.m * S::CLUSTER.m + down) * S::M;
        let col = (tile.n * S::CLUSTER.n + across) * S::N;
        (row, col)
    }

    // ---------------------------------------------------------- producer

    /// One thread: keeps the ring full.
    ///
    /// # Safety
    /// By one thread of the CTA, after the barriers are set up.
    #[inline(always)]
    unsafe fn produce(&self) {
        // The first round finds every stage free: waiting for the parity before
        // the first phase returns at once.
        let mut position = RingPosition {
            stage: 0,
            parity: 1,
        };
        let bytes = self.stage_bytes();
        // SAFETY: by a thread that exchanges nothing; followed once a tile.
        let attendance = unsafe { Attendance::<S>::begin() };
        let mut walk = self.walk();
        while let Some(part) = Self::next(&mut walk) {
            let (row, col) = self.origin(part.tile);
            let mut step = part.first;
            while step < part.end {
                // SAFETY: the stage is free in every CTA we write to once its
                // `empty` barrier has completed, and `full` expects all that
                // lands in this CTA: our own loads and the peer's.
                unsafe {
                    mbarrier::wait(self.empty(position.stage), position.parity);
                    mbarrier::arrive_expecting(self.full(position.stage), bytes);
                    let mut layer = 0;
                    while layer < S::LAYERS {
                        self.load_a(position.stage, layer, row, step * S::BLOCK_K);
                        self.load_b(position.stage, layer, col, step * S::BLOCK_K);
                        layer += 1;
                    }
                }
                position = position.next::<S>();
                step += 1;
            }
            // SAFETY: once a tile.
            unsafe { attendance.tile() };
        }
        // SAFETY: after the last tile.
        unsafe { attendance.end() };
    }

    // ---------------------------------------------------------- consumer

    /// One warpgroup: multiplies its rows of each tile, and stores them.
    ///
    /// # Safety
    /// By a whole warpgroup, after the barriers are set up.
    #[inline(always)]
    unsafe fn consume(&self) {
        // SAFETY: whole warps arrive here.
        let consumer = unsafe { thread::broadcast(thread::thread_index() / WARPGROUP) } - 1;
        let lane = thread::thread_index() % WARPGROUP;
        let mut position = RingPosition {
            stage: 0,
            parity: 0,
        };
        let mut store = SlabStore::<S>::new(self.params, consumer, lane, self.ring + S::STAGING);
        // SAFETY: the whole warpgroup, before its first tile.
        let mut exchange = unsafe { Exchange::<S>::begin(self.ring, self.rank, lane) };
        let mut walk = self.walk();
        // The first consumer finds that it is its turn, as the producer does
        // that every stage is free.
        let mut turn = 1 - consumer % 2;
        if S::PING_PONG {
            walk.take_turns(consumer, S::CONSUMERS);
            position = position.skip::<S>(consumer * self.k_steps);
        }
        while let Some(part) = Self::next(&mut walk) {
            let (row, col) = self.origin(part.tile);
            let row = row + Self::share(consumer) * (64 * S::SLABS);
            // SAFETY: the whole warpgroup runs this loop together.
            unsafe {
                let mut sums = [Slab::<S>::undefined(), Slab::<S>::undefined()];
                let steps = part.end - part.first;
                if S::PING_PONG {
                    mbarrier::wait(self.turn(consumer), turn);
                    turn ^= 1;
                }
                position = self.multiply(&mut sums, steps, position, consumer, lane);
                if S::PING_PONG {
                    position = position.skip::<S>(steps);
                }
                // From here on each warp goes its own way, where a cluster splits K.
                if S::CLUSTER.k > 1 && !exchange.gather(&mut sums[0], row, self.params.m) {
                    continue;
                }
                let barrier = store.barrier();
                if S::STREAM_K && !self.fix_up(&mut sums, part.role, consumer, lane, barrier) {
                    continue;
                }
                store.rows(&sums[0], row, col);
                if S::SLABS > 1 {
                    store.rows(&sums[1], row + 64, col);
                }
            }
        }
        store.finish();
    }

    /// Which share of a tile's rows is that of `consumer`.
    #[inline(always)]
    pub(super) fn share(consumer: u32) -> u32 {
        if S::PING_PONG { 0 } else { consumer }
    }
}
