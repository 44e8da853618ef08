//! Step 4, `hopper`: what the H100 and H200 were built for.
//!
//! ```text
//!            global memory
//!                 │ TMA (zero-fills past the edges)
//!   producer ─────┤                 one thread of warpgroup 0
//!                 ▼
//!   ring of STAGES × (A tile, B tile) in shared memory, 128-byte swizzle
//!       full[s]: the bytes have landed      empty[s]: all have read them
//!                 │ wgmma, accumulators in registers
//!   consumers ────┤                 one or two warpgroups
//!                 ▼
//!   staging ── some slabs of C at a time ── TMA store, or masked stores
//! ```
//!
//! The ring's state carries over from tile to tile, so a persistent CTA loads
//! the next tile while it still writes the last one. With clusters, CTAs side by
//! side need the same rows of A, and those above each other the same columns of
//! B: each loads a share and multicasts it to all who need it. Consumers share the
//! rows of a tile, or take turns, one storing while the other multiplies. Where C
//! has fewer tiles than the GPU has SMs, a cluster splits the K of one tile instead. Where
//! tiles are left over after whole waves, the CTAs of some kernels share them by
//! stream-K ([`Schedule::StreamK`](crate::Schedule)).
//!
//! The parts are those of CUTLASS's warp-specialised cooperative and ping-pong
//! kernels and of DeepGEMM; the instructions are specified in the PTX ISA, sections
//! `wgmma`, `cp.async.bulk.tensor`, `mbarrier` and `setmaxnreg`.

use core::marker::PhantomData;

use crate::element::Element;
use crate::kernel::{
    Arch, Block, Cluster, Contiguous, Family, Kernel, KernelInfo, Major, WARPGROUP,
};
use crate::problem::DType;

mod form;

pub use form::{Clusters, Cooperative, Form, PingPong, SplitK, StreamK};

/// Bytes of one row of a stage: the span of the 128-byte swizzle.
const ROW_BYTES: u32 = 128;

/// A slab: 64 rows (or columns) of an operand, one stage deep; or 64 rows of C,
/// as wide.
const SLAB_BYTES: u32 = 64 * ROW_BYTES;

/// Lines of an operand that lies along K which one copy moves, of a tile of
/// `tile` lines that `sharing` CTAs load together, where the operand has
/// `extent`: each CTA its part. A tile that nobody shares is cut to the lines
/// there are, in whole swizzle atoms of 8, for the copy engine takes its time
/// over lines outside the tensor too. The rest of the tile stays as it was, and
/// only reaches rows or columns past the edge of C, which are not stored.
pub const fn box_lines(tile: u32, sharing: u32, extent: u32) -> u32 {
    if sharing > 1 {
        return tile / sharing;
    }
    let whole_atoms = extent.next_multiple_of(8);
    if whole_atoms < tile {
        whole_atoms
    } else {
        tile
    }
}

/// Rows of C that one TMA store writes: those of a warpgroup; or those of a warp,
/// where the CTAs of a cluster split K and each stores the rows of some warps.
pub const fn store_rows(cluster: Cluster) -> u32 {
    if cluster.k > 1 { 16 } else { 64 }
}

/// A number of columns for which there is an accumulator.
pub struct Columns<const N: u32>;

/// Maps a number of columns to its accumulator.
pub trait Width {
    /// The registers of one thread for 64 rows.
    type Accumulator: crate::isa::wgmma::Accumulator;
}

macro_rules! widths {
    ($($n:literal)*) => {$(
        impl Width for Columns<$n> {
            type Accumulator = [u32; $n / 2];
        }
    )*};
}

widths! { 64 128 192 256 }

/// The Hopper kernel. `T` is f16, bf16 or TF32 (which lies along K in both
/// operands); `A` and `B` say how the operands lie; a CTA computes `M`×`N` of C in
/// steps of `K`; the ring holds `STAGES` of them; `F` says what CTAs and
/// consumers do together.
pub struct Hopper<
    T,
    A,
    B,
    const M: u32,
    const N: u32,
    const K: u32,
    const STAGES: u32,
    F = Cooperative,
>(PhantomData<(T, A, B, F)>);

/// The constants of an instantiation, under one name for the parts below.
trait Shape {
    type Element: Element;
    type A: Contiguous;
    type B: Contiguous;
    type Width: Width;
    const M: u32;
    const N: u32;
    /// Depth of one stage: one or two layers.
    const BLOCK_K: u32;
    const STAGES: u32;
    type Form: Form;
    const CLUSTER: Cluster = Self::Form::CLUSTER;
    const STREAM_K: bool = Self::Form::STREAM_K;
    const PING_PONG: bool = Self::Form::PING_PONG;

    /// Depth of one layer of a stage: what a row of the swizzle holds.
    const LAYER: u32 = ROW_BYTES / Self::Element::DTYPE.bytes();
    const LAYERS: u32 = Self::BLOCK_K / Self::LAYER;

    /// Consumer warpgroups. Two share a tile of 128 or 256 rows, because one
    /// cannot hold 128×256 accumulators in its registers; or they take turns.
    const CONSUMERS: u32 = match Self::M {
        64 if !Self::PING_PONG => 1,
        _ => 2,
    };
    /// Those that work on the same tile, and read the same stages.
    const TOGETHER: u32 = if Self::PING_PONG { 1 } else { Self::CONSUMERS };
    /// Slabs of 64 rows that one consumer accumulates.
    const SLABS: u32 = Self::M / 64 / Self::TOGETHER;

    /// Slabs of C that a consumer can have on their way to memory at once: all
    /// of its 16-bit tile if they fit beside the ring, else those of 64 rows, and
    /// at least two, so that one is filled while the other is read.
    const STAGING_SLABS: u32 = {
        let room = Self::SHARED_LIMIT - Self::STAGING - Self::RESERVED;
        let fit = room / (Self::CONSUMERS * SLAB_BYTES);
        let (row, all) = (Self::N / 64, Self::N / 64 * Self::SLABS);
        let wanted = if all <= fit {
            all
        } else if row <= fit {
            row
        } else {
            2
        };
        if wanted < 2 { 2 } else { wanted }
    };
    /// Slabs of a 16-bit C that are filled and sent together, for one barrier and
    /// one fence: a row of them where there is room, else half a row.
    const BATCH: u32 = {
        let row = Self::N / 64;
        if Self::STAGING_SLABS % row == 0 {
            row
        } else if 2 * Self::STAGING_SLABS == row {
            Self::STAGING_SLABS
        } else {
            1
        }
    };

    const A_BYTES: u32 = Self::M / 64 * SLAB_BYTES;
    const B_BYTES: u32 = Self::N / 64 * SLAB_BYTES;
    /// A layer is a tile of A, then one of B.
    const LAYER_BYTES: u32 = Self::A_BYTES + Self::B_BYTES;
    const STAGE_BYTES: u32 = Self::LAYERS * Self::LAYER_BYTES;

    // Offsets in shared memory: ring, staging, sums from the peers along K, barriers.
    const STAGING: u32 = Self::STAGES * Self::STAGE_BYTES;
    const EXCHANGE: u32 = Self::STAGING + Self::CONSUMERS * Self::STAGING_SLABS * SLAB_BYTES;
    const BARRIERS: u32 = Self::EXCHANGE + 2 * Self::SLOTS_BYTES;
    const SHARED_BYTES: u32 = Self::BARRIERS + Self::BARRIER_BYTES;

    const BARRIER_BYTES: u32 = (2 * Self::STAGES + Self::TURNS) * 8;
    /// Barriers by which consumers hand each other the turn to multiply.
    const TURNS: u32 = if Self::PING_PONG { Self::CONSUMERS } else { 0 };
    /// What is in shared memory besides ring and staging.
    const RESERVED: u32 = 2 * Self::SLOTS_BYTES + Self::BARRIER_BYTES;
    /// A CTA of compute capability 9.0 has at most 227 KiB.
    const SHARED_LIMIT: u32 = 227 * 1024;

    /// Whether C has to be of the input type and within TMA's reach. With more
    /// than 128 accumulators a thread there are no registers for other ways out.
    const STORES_BY_TMA_ONLY: bool = Self::SLABS * Self::N > 256;

    /// A CTA's part of a tile's sums, where a cluster splits K.
    const PART_BYTES: u32 = Self::SUMS_BYTES / Self::CLUSTER.k;
    /// What its peers send a CTA for one tile.
    const SLOTS_BYTES: u32 = (Self::CLUSTER.k - 1) * Self::PART_BYTES;

    /// The sums of one tile.
    const SUMS_BYTES: u32 = Self::M * Self::N * 4;
    /// A CTA's slot in the workspace of stream-K: sums, and a line of flags.
    const STREAM_K_BYTES: u32 = if Self::STREAM_K {
        Self::SUMS_BYTES + 128
    } else {
        0
    };

    const VALID: () = {
        // PTX ISA, "wgmma.mma_async": only 16-bit operands can be transposed.
        assert!(match Self::Element::DTYPE {
            DType::F16 | DType::Bf16 => true,
            DType::Tf32 => matches!((Self::A::MAJOR, Self::B::MAJOR), (Major::K, Major::K)),
            DType::F32 => false,
        });
        assert!(
            Self::M == 64 * Self::TOGETHER * Self::SLABS && Self::SLABS <= 2,
            "M is 64, 128 or 256; if the consumers take turns, 64 or 128"
        );
        assert!(
            Self::SLABS * Self::N <= 384,
            "accumulators must fit in a consumer's registers"
        );
        assert!(!Self::STORES_BY_TMA_ONLY || Self::Element::DTYPE.bytes() == 2);
        assert!(Self::CLUSTER.m.is_power_of_two() && Self::CLUSTER.n.is_power_of_two());
        assert!(
            Self::CLUSTER.ctas() <= 8,
            "the largest cluster every Hopper GPU can launch"
        );
        assert!(
            Self::CLUSTER.k == 1 || Self::CLUSTER.sharing() == 1 && Self::M == 64,
            "CTAs that split K share no loads, and have one consumer of one slab"
        );
        assert!(
            matches!(Self::CLUSTER.k, 1 | 2 | 4),
            "CTAs that split K have as many of a consumer's four warps each"
        );
        assert!(
            !Self::STREAM_K || Self::CLUSTER.ctas() == 1,
            "CTAs that wait for each other's sums are each by themselves"
        );
        assert!(
            !Self::PING_PONG || !Self::STREAM_K && Self::CLUSTER.k == 1,
            "only whole tiles can go to the consumers in turn"
        );
        assert!(
            Self::BLOCK_K == Self::LAYERS * Self::LAYER && matches!(Self::LAYERS, 1 | 2),
            "a step is one or two rows of the swizzle deep"
        );
        assert!(Self::M / Self::CLUSTER.n >= 8 && Self::N / Self::CLUSTER.m >= 8);
        assert!(
            Self::STAGES >= 2,
            "one stage cannot overlap loading and multiplying"
        );
        assert!(
            Self::SHARED_BYTES <= Self::SHARED_LIMIT,
            "ring, staging and barriers must fit in shared memory"
        );
    };
}

impl<T, A, B, const M: u32, const N: u32, const K: u32, const STAGES: u32, F> Shape
    for Hopper<T, A, B, M, N, K, STAGES, F>
where
    T: Element,
    A: Contiguous,
    B: Contiguous,
    Columns<N>: Width,
    F: Form,
{
    type Element = T;
    type A = A;
    type B = B;
    type Width = Columns<N>;
    const M: u32 = M;
    const N: u32 = N;
    const BLOCK_K: u32 = K;
    const STAGES: u32 = STAGES;
    type Form = F;
}

impl<T, A, B, const M: u32, const N: u32, const K: u32, const STAGES: u32, F> Kernel
    for Hopper<T, A, B, M, N, K, STAGES, F>
where
    T: Element,
    A: Contiguous,
    B: Contiguous,
    Columns<N>: Width,
    F: Form,
{
    const INFO: KernelInfo = {
        let () = <Self as Shape>::VALID;
        KernelInfo {
            name: "",
            family: Family::Hopper,
            arch: Arch::Sm90a,
            input: T::DTYPE,
            c_by_tma_only: <Self as Shape>::STORES_BY_TMA_ONLY,
            block: Block { m: M, n: N, k: K },
            a_major: Some(A::MAJOR),
            b_major: Some(B::MAJOR),
            cluster: F::CLUSTER,
            ping_pong: F::PING_PONG,
            threads: WARPGROUP * (1 + <Self as Shape>::CONSUMERS),
            ctas_per_sm: 1,
            stages: STAGES,
            shared_bytes: <Self as Shape>::SHARED_BYTES,
            stream_k_bytes: <Self as Shape>::STREAM_K_BYTES,
        }
    };

    #[inline(always)]
    unsafe fn run(params: &crate::problem::GemmParams) {
        // SAFETY: the caller's duty.
        unsafe { device::run::<Self>(params) }
    }
}

mod device;
mod epilogue;
mod fix_up;
mod load;
mod main_loop;
mod ring;
mod split;
