//! The layout of a CTA's shared memory. All offsets and the size are computed here; the
//! other files get typed handles.
//!
//! ```text
//! stage 0          swizzle atom 0: A tile, B tile │ swizzle atom 1, if there is one: …
//! stage 1 …        1024-byte aligned, as the 128-byte swizzle requires
//! staging          of consumer 0 │ of consumer 1 …: C tiles on their way to memory, if there
//!                  is room (`SharedMemory::STAGES_C_IN_OPERANDS`)
//! exchange         split-K alone: peers' accumulators
//! vectors          of each group of threads that stores together: its bias, its scales
//! mbarriers        full[STAGES] │ empty[STAGES] │ ping-pong alone: order[CONSUMERS]
//!                  source[CONSUMERS]
//! zero             ping-pong alone: a word (`SharedMemory::zero`)
//! ```
//!
//! An operand tile is a stack of m64 tiles (of B: 64 columns), 64 rows of 128 bytes each. Where
//! 4-byte elements are contiguous along M, an m64 tile is two boxes of 32 rows of A.

use core::marker::PhantomData;

use super::traits::{KernelSchedule, KernelTraits, ROW_BYTES};
use crate::dtype::{Contiguous, Major};
use crate::isa::{mbarrier, shared};

/// Bytes of an m64 tile: 64 rows of a swizzle atom, or 64 rows of C of the same width.
pub const M64_TILE_BYTES: u32 = 64 * ROW_BYTES;

/// A CTA of compute capability 9.0 has at most 227 KiB.
const LIMIT: u32 = 227 * 1024;

/// The shared memory of one CTA of kernel `K`.
pub struct SharedMemory<K> {
    /// Shared address of the first stage.
    base: u32,
    kernel: PhantomData<K>,
}

impl<K> Clone for SharedMemory<K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for SharedMemory<K> {}

impl<K: KernelTraits> SharedMemory<K> {
    /// A's tile of one swizzle atom.
    const A_BYTES: u32 = K::BLOCK_M / 64 * M64_TILE_BYTES;
    /// B's tile of one swizzle atom. Along N it is whole boxes of 64 columns.
    const B_BYTES: u32 = match K::B::MAJOR {
        Major::K => K::BLOCK_N * ROW_BYTES,
        Major::Mn => K::BLOCK_N.div_ceil(64) * M64_TILE_BYTES,
    };
    /// Bytes from one swizzle atom of a stage to the next.
    pub const ATOM_BYTES: u32 = Self::A_BYTES + Self::B_BYTES;
    /// Bytes of all stages.
    pub const PIPELINE_BYTES: u32 = K::STAGES * K::ATOMS * Self::ATOM_BYTES;

    /// C tiles of 64 rows × 128 bytes for which each consumer has room beside the stages.
    const ROOM: u32 = {
        let others = Self::STAGING
            + Self::EXCHANGE_BYTES
            + Self::VECTOR_BYTES
            + Self::BARRIER_BYTES
            + Self::ZERO_BYTES;
        LIMIT.saturating_sub(others) / (K::CONSUMERS * M64_TILE_BYTES)
    };
    /// Whether C is staged in the last stage of a tile, because the stages leave no room: each
    /// consumer stages its part in what it alone has read, its rows of A or its columns of B, and
    /// releases the stage when the copy engine has read that. The other stages are filled meanwhile.
    pub const STAGES_C_IN_OPERANDS: bool = !K::Schedule::LEAVES_SUMS && Self::ROOM == 0;
    /// C tiles for which each consumer has room in what it alone reads of a stage.
    const ROOM_IN_STAGE: u32 = match K::DIVIDES_COLUMNS {
        true => K::CONSUMER_N / 64,
        false => K::M64_TILES,
    };
    /// Staging buffers (C tiles of 64 rows × 128 bytes) of a consumer beside the stages. It has
    /// enough for its whole 16-bit tile if they fit, else enough for 64 rows of it; and two where
    /// two fit, so that one is filled while the copy engine reads the other.
    const STAGING_TILES: u32 = {
        let row = K::CONSUMER_N.div_ceil(64);
        let all = row * K::M64_TILES;
        let wanted = if all <= Self::ROOM {
            all
        } else if row <= Self::ROOM {
            row
        } else {
            1
        };
        match wanted {
            _ if K::Schedule::LEAVES_SUMS || Self::STAGES_C_IN_OPERANDS => 0,
            1 if Self::ROOM > 1 => 2,
            wanted => wanted,
        }
    };
    /// Staging buffers of a consumer, wherever they are.
    pub const BUFFERS: u32 = if Self::STAGES_C_IN_OPERANDS {
        Self::ROOM_IN_STAGE
    } else {
        Self::STAGING_TILES
    };
    /// Bytes of the C tiles of all consumers.
    pub const STAGING_BYTES: u32 = K::CONSUMERS * Self::STAGING_TILES * M64_TILE_BYTES;

    /// CTAs of a cluster that splits K which own rows of the tile: each at least those of one warp.
    pub const OWNERS: u32 = if K::CLUSTER.k > 4 { 4 } else { K::CLUSTER.k };
    /// Bytes that a CTA receives from its peers along K for one tile: each peer sends it
    /// the accumulators of the rows that the CTA owns.
    pub const EXCHANGE_BYTES: u32 = (K::CLUSTER.k - 1) * (K::ACCUMULATOR_BYTES / Self::OWNERS);

    /// Order barriers: one a consumer, where the consumers alternate.
    pub const ORDER_BARRIERS: u32 = if K::Schedule::PING_PONG {
        K::CONSUMERS
    } else {
        0
    };
    /// Barriers that complete when a consumer's part of the source has landed.
    pub const SOURCE_BARRIERS: u32 = if K::FUSED { K::CONSUMERS } else { 0 };
    const BARRIER_BYTES: u32 =
        (2 * K::STAGES + Self::ORDER_BARRIERS + Self::SOURCE_BARRIERS) * mbarrier::BYTES;

    /// Whether there is a [`SharedMemory::zero`].
    pub const HAS_ZERO: bool = K::FUSED && K::Schedule::PING_PONG;
    const ZERO_BYTES: u32 = if Self::HAS_ZERO { 4 } else { 0 };

    /// Threads that store together, of a consumer: all, or each warp by itself where the CTAs
    /// of a cluster split K.
    const STORING_GROUPS: u32 = if K::CLUSTER.k > 1 { 4 } else { 1 };
    /// Bytes of one vector: an f32 for each column of the tile.
    const VECTOR: u32 = K::BLOCK_N * 4;
    /// Bytes of the bias and the column scales of all storing groups.
    const VECTOR_BYTES: u32 = if K::FUSED {
        2 * Self::VECTOR * K::CONSUMERS * Self::STORING_GROUPS
    } else {
        0
    };

    const STAGING: u32 = Self::PIPELINE_BYTES;
    const EXCHANGE: u32 = Self::STAGING + Self::STAGING_BYTES;
    const VECTORS: u32 = Self::EXCHANGE + Self::EXCHANGE_BYTES;
    const BARRIERS: u32 = Self::VECTORS + Self::VECTOR_BYTES;
    const ZERO: u32 = Self::BARRIERS + Self::BARRIER_BYTES;

    /// Dynamic shared memory of a CTA.
    pub const BYTES: u32 = {
        let bytes = Self::ZERO + Self::ZERO_BYTES;
        assert!(
            bytes <= LIMIT,
            "stages, staging and mbarriers must fit in shared memory"
        );
        assert!(
            !Self::STAGES_C_IN_OPERANDS
                || K::Schedule::KEEPS_LAST_STAGE
                    && !K::FUSED
                    && K::STORES_BY_TMA_ONLY
                    && K::ATOMS == 1
                    && K::PARTS == 1
                    && !K::A_IN_REGISTERS
                    && Self::ROOM_IN_STAGE > 0,
            "C is staged in operands by kernels of plain products that store through TMA alone, where \
             A's rows are one m64 tile after another"
        );
        bytes
    };

    /// The shared memory of this CTA.
    #[inline(always)]
    pub fn of_this_cta() -> Self {
        SharedMemory {
            base: shared::base(),
            kernel: PhantomData,
        }
    }

    /// A's tile of swizzle atom `atom` of `stage`.
    #[inline(always)]
    pub fn a(self, stage: u32, atom: u32) -> OperandTile {
        let stage = self.base + stage * (K::ATOMS * Self::ATOM_BYTES);
        OperandTile(stage + atom * Self::ATOM_BYTES)
    }

    /// B's tile of swizzle atom `atom` of `stage`.
    #[inline(always)]
    pub fn b(self, stage: u32, atom: u32) -> OperandTile {
        OperandTile(self.a(stage, atom).0 + Self::A_BYTES)
    }

    /// The mbarrier that completes when the bytes of `stage` have landed.
    #[inline(always)]
    pub fn full(self, stage: u32) -> Mbarrier {
        Mbarrier(self.base + Self::BARRIERS + mbarrier::BYTES * stage)
    }

    /// The mbarrier that completes when every consumer has released `stage`.
    #[inline(always)]
    pub fn empty(self, stage: u32) -> Mbarrier {
        self.full(K::STAGES + stage)
    }

    /// The order barrier that completes when `consumer` may multiply (CUTLASS:
    /// `OrderedSequenceBarrier`).
    #[inline(always)]
    pub fn order(self, consumer: u32) -> Mbarrier {
        self.full(2 * K::STAGES + consumer)
    }

    /// The mbarrier that completes when the source has landed in the staging of `consumer`.
    #[inline(always)]
    pub fn source(self, consumer: u32) -> Mbarrier {
        self.full(2 * K::STAGES + Self::ORDER_BARRIERS + consumer)
    }

    /// Shared address of a word that is 0 from [`set_up`](super::pipeline::set_up) on, where
    /// there is one ([`SharedMemory::HAS_ZERO`]).
    ///
    /// What a consumer computes with this 0 begins after the load of it. ptxas moves
    /// arithmetic forward across barriers, waits and branches: it put most of an activation
    /// in front of the release of the last stage, and so kept that stage from the other
    /// consumer, which multiplies meanwhile (`docs/perf-log.md`, "An activation in front of
    /// a release").
    #[inline(always)]
    pub fn zero(self) -> u32 {
        self.base + Self::ZERO
    }

    /// Shared address of the bias of `group`, a storing group of `consumer`: an f32 for each
    /// column of the tile.
    #[inline(always)]
    pub fn bias(self, consumer: u32, group: u32) -> u32 {
        let index = consumer * Self::STORING_GROUPS + group;
        self.base + Self::VECTORS + index * (2 * Self::VECTOR)
    }

    /// Shared address of the column scales of `group`, a storing group of `consumer`.
    #[inline(always)]
    pub fn col_scale(self, consumer: u32, group: u32) -> u32 {
        self.bias(consumer, group) + Self::VECTOR
    }

    /// The staging of `consumer`, beside the stages.
    #[inline(always)]
    pub fn staging(self, consumer: u32) -> Staging {
        Staging(self.base + Self::STAGING + consumer * (Self::STAGING_TILES * M64_TILE_BYTES))
    }

    /// Shared address of the exchange.
    #[inline(always)]
    pub fn exchange(self) -> u32 {
        self.base + Self::EXCHANGE
    }
}

/// The tile of A or B in one swizzle atom of a stage.
#[derive(Clone, Copy)]
pub struct OperandTile(u32);

impl OperandTile {
    /// Its shared address.
    #[inline(always)]
    pub fn address(self) -> u32 {
        self.0
    }

    /// The rest of B's tile, from column `first` on, which begins a swizzle atom: a multiple of eight
    /// along K, of 64 along N.
    #[inline(always)]
    pub fn columns<K: KernelTraits>(self, first: u32) -> OperandTile {
        match K::B::MAJOR {
            Major::K => OperandTile(self.0 + first * ROW_BYTES),
            Major::Mn => self.m64(first / 64),
        }
    }

    /// Staging in it, for the one consumer that reads it ([`SharedMemory::STAGES_C_IN_OPERANDS`]).
    #[inline(always)]
    pub fn staging(self) -> Staging {
        Staging(self.0)
    }

    /// The rest of the tile, from m64 tile `index` on.
    #[inline(always)]
    pub fn m64(self, index: u32) -> OperandTile {
        OperandTile(self.0 + index * M64_TILE_BYTES)
    }
}

/// An mbarrier in this CTA's shared memory.
#[derive(Clone, Copy)]
pub struct Mbarrier(u32);

impl Mbarrier {
    /// Its shared address, which the copy engine takes.
    #[inline(always)]
    pub fn address(self) -> u32 {
        self.0
    }

    /// # Safety
    /// See [`mbarrier::init`].
    #[inline(always)]
    pub unsafe fn init(self, arrivals: u32) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::init(self.0, arrivals) }
    }

    /// # Safety
    /// See [`mbarrier::wait`].
    #[inline(always)]
    pub unsafe fn wait(self, parity: u32) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::wait(self.0, parity) }
    }

    /// # Safety
    /// See [`mbarrier::arrive_expecting`].
    #[inline(always)]
    pub unsafe fn arrive_expecting(self, bytes: u32) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::arrive_expecting(self.0, bytes) }
    }

    /// # Safety
    /// See [`mbarrier::arrive_expecting_if`].
    #[inline(always)]
    pub unsafe fn arrive_expecting_if(self, active: bool, bytes: u32) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::arrive_expecting_if(active, self.0, bytes) }
    }

    /// # Safety
    /// See [`mbarrier::arrive_if`].
    #[inline(always)]
    pub unsafe fn arrive_if(self, active: bool) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::arrive_if(active, self.0) }
    }

    /// # Safety
    /// See [`mbarrier::arrive_at_if`].
    #[inline(always)]
    pub unsafe fn arrive_at_if(self, active: bool, rank: u32) {
        // SAFETY: the caller's duty.
        unsafe { mbarrier::arrive_at_if(active, self.0, rank) }
    }
}

/// One consumer's C tiles on their way to memory.
#[derive(Clone, Copy)]
pub struct Staging(u32);

impl Staging {
    /// Tile `index`.
    #[inline(always)]
    pub fn tile(self, index: u32) -> StagedTile {
        StagedTile {
            staging: self.0,
            offset: index * M64_TILE_BYTES,
        }
    }
}

/// 64 rows of 128 bytes of C, in the 128-byte swizzle.
#[derive(Clone, Copy)]
pub struct StagedTile {
    staging: u32,
    offset: u32,
}

impl StagedTile {
    /// Shared address of `row` of 64.
    #[inline(always)]
    pub fn row(self, row: u32) -> u32 {
        self.staging + row * ROW_BYTES + self.offset
    }

    /// Shared address of 16-byte chunk `chunk` of 8 in `row`: the swizzle XORs the
    /// chunk with the row (PTX ISA, "Swizzling Modes").
    #[inline(always)]
    pub fn chunk(self, row: u32, chunk: u32) -> u32 {
        // The offset of the tile is added last, because it is a constant: the tiles then share
        // registers, and `stmatrix` adds it.
        let in_tile = row * ROW_BYTES + ((chunk ^ (row % 8)) * 16);
        self.staging + in_tile + self.offset
    }
}
