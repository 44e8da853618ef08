//! The constants of one Hopper kernel, which all files here share.
//!
//! ```text
//! C tile BLOCK_M × BLOCK_N     one CTA, one pass over K
//!   m64 tiles                  64 rows each: what one wgmma multiplies; a consumer
//!                              warpgroup accumulates one or two of them, or all of them for
//!                              half of the columns
//! k-block BLOCK_K              one stage of the pipeline
//!   swizzle atoms along K      128 bytes of K each, one or two in a k-block
//! ```

use crate::cluster::Cluster;
use crate::dtype::DType;
use crate::dtype::ElementType;
use crate::dtype::{Contiguous, Major};
use crate::isa::wgmma;
use crate::problem::{GemmParams, MapAddress};

/// Bytes of a row of a swizzle atom: the span of the 128-byte swizzle.
pub const ROW_BYTES: u32 = 128;

/// How the warpgroups of a CTA, and the CTAs of a launch, divide the work: one type for
/// each rung of the ladder, like CUTLASS's `KernelTmaWarpSpecialized…` tags.
pub trait KernelSchedule {
    /// CTAs of a cluster, where all launches have the same.
    const CLUSTER: Cluster = Cluster::NONE;
    /// Whether the form of a launch says how many CTAs share loads, and not [`Self::CLUSTER`].
    const CLUSTER_OF_FORM: bool = false;
    /// Whether the consumers alternate at tiles instead of sharing the rows of each tile.
    const PING_PONG: bool = false;
    /// Whether CTAs share the tiles of the last wave. Such a kernel runs under
    /// [`Schedule::StreamK`](crate::Schedule) alone, because its tile scheduler would
    /// cost the other kernels registers and instructions in the main loop.
    const STREAM_K: bool = false;
    /// Whether every cluster leaves its sums in the workspace, and the kernel stores no C. Such a
    /// kernel runs under [`Schedule::SplitK`](crate::Schedule) alone.
    const LEAVES_SUMS: bool = false;
    /// Whether its consumers may keep the last stage of a tile until they have stored the tile
    /// ([`MainLoop::store`](super::main_loop::MainLoop::store)).
    const KEEPS_LAST_STAGE: bool = false;
    /// Producer warpgroups.
    const PRODUCERS: u32 = 1;
    /// Whether the producer loads through TMA, which needs lines at multiples of 16 bytes.
    const LOADS_BY_TMA: bool = true;
    /// Arrivals that complete a `full` barrier. With TMA there is the producer's, and the bytes
    /// are counted separately.
    const ARRIVALS: u32 = 1;

    /// CTAs of a cluster of this launch.
    #[inline(always)]
    fn cluster(params: &GemmParams) -> Cluster {
        if Self::CLUSTER_OF_FORM {
            params.form.cluster.cluster()
        } else {
            Self::CLUSTER
        }
    }

    /// The kernel, as one thread runs it.
    ///
    /// # Safety
    /// See [`Kernel::run`](crate::kernel::Kernel::run); `K` is a kernel whose
    /// [`KernelTraits::Schedule`] is this type.
    unsafe fn run<K: KernelTraits>(params: &GemmParams, maps: MapAddress);
}

/// The parameters of [`Hopper`](super::Hopper), and the constants that follow from them.
pub trait KernelTraits {
    /// Element type of A and B.
    type Element: ElementType;
    /// The direction in which A is contiguous.
    type A: Contiguous;
    /// The direction in which B is contiguous.
    type B: Contiguous;
    /// One thread's registers for an m64 tile of C, [`KernelTraits::CONSUMER_N`] wide.
    type Accumulator: wgmma::Accumulator;
    /// How CTAs and consumers divide the work.
    type Schedule: KernelSchedule;
    /// Rows of C that a CTA computes.
    const BLOCK_M: u32;
    /// Columns of C that a CTA computes.
    const BLOCK_N: u32;
    /// Depth of a k-block: one or two swizzle atoms.
    const BLOCK_K: u32;
    /// Depth of the pipeline.
    const STAGES: u32;
    /// Whether the kernel takes every [`Form`](crate::Form), or only single products that are
    /// stored as they are. The whole epilogue makes the PTX three times as long, so only
    /// tiles that suit many products have it; and not those with more than 128 accumulators
    /// a thread, which leave no registers for it.
    const FUSED: bool;
    /// Whether C is contiguous along M, and not along N.
    const C_ALONG_M: bool;

    /// CTAs of a cluster, where all launches have the same; with [`KernelSchedule::CLUSTER_OF_FORM`],
    /// `k` alone has a meaning.
    const CLUSTER: Cluster = Self::Schedule::CLUSTER;
    /// Parts of an operand's elements: a k-block takes as many stages, one for each part.
    const PARTS: u32 = Self::Element::DTYPE.parts();
    /// Elements of a row of a swizzle atom: its depth where the operand is contiguous along K.
    const ATOM_K: u32 = ROW_BYTES / Self::Element::DTYPE.factor().bytes();
    /// Whether the consumers load A from shared memory to registers for `wgmma`, which reads
    /// 4-byte elements from shared memory only if they are contiguous along K.
    const A_IN_REGISTERS: bool =
        matches!(Self::A::MAJOR, Major::Mn) && Self::Element::DTYPE.factor().bytes() == 4;
    /// Swizzle atoms along K of a k-block.
    const ATOMS: u32 = Self::BLOCK_K / Self::ATOM_K;

    /// Whether launches may divide the lines of an operand into classes
    /// ([`line_classes`](super::line_classes)). Three consumers with 192 columns have 160 registers
    /// a thread and none to spare: with both operands along K, two of them would be spilled, in
    /// plain products too.
    const HAS_LINE_CLASSES: bool = Self::PARTS == 1
        && !(Self::CONSUMERS == 3
            && Self::BLOCK_N > 128
            && matches!((Self::A::MAJOR, Self::B::MAJOR), (Major::K, Major::K)))
        && Self::Schedule::LOADS_BY_TMA
        && !Self::Schedule::LEAVES_SUMS
        && matches!(
            if Self::C_ALONG_M {
                Self::B::MAJOR
            } else {
                Self::A::MAJOR
            },
            Major::K
        );

    /// Columns of the tile that a consumer computes: all of them, or, of a tile whose rows two
    /// consumers cannot divide, a half.
    const CONSUMER_N: u32 = <Self::Accumulator as wgmma::Accumulator>::N;
    /// Whether each consumer computes all rows of the tile, and its own columns, instead of all
    /// columns of its own rows.
    const DIVIDES_COLUMNS: bool = Self::CONSUMER_N < Self::BLOCK_N;

    /// Consumer warpgroups of a CTA. One warpgroup cannot hold 128×256 accumulators in its
    /// registers, so two share a tile of 128 or 256 rows, or alternate at tiles; three share the
    /// rows of one of 192. With more than 192 columns, three have no registers for that, and two share
    /// its columns.
    const CONSUMERS: u32 = match Self::BLOCK_M {
        _ if Self::DIVIDES_COLUMNS => Self::BLOCK_N / Self::CONSUMER_N,
        64 if !Self::Schedule::PING_PONG => 1,
        192 => 3,
        _ => 2,
    };
    /// Consumers that work on the same tile, and read the same stages.
    const CONSUMERS_PER_TILE: u32 = if Self::Schedule::PING_PONG {
        1
    } else {
        Self::CONSUMERS
    };
    /// m64 tiles that one consumer accumulates.
    const M64_TILES: u32 = match Self::DIVIDES_COLUMNS {
        true => Self::BLOCK_M / 64,
        false => Self::BLOCK_M / 64 / Self::CONSUMERS_PER_TILE,
    };
    /// Bytes of the accumulators of a CTA's tile.
    const ACCUMULATOR_BYTES: u32 = Self::BLOCK_M * Self::BLOCK_N * 4;

    /// Whether C must have elements as wide as those of A and B, and a layout that TMA can store.
    /// With more than 128 accumulators a thread there are no registers for the other store paths,
    /// and widths between multiples of 64 and a C along M have none of them.
    const STORES_BY_TMA_ONLY: bool = !Self::Schedule::LEAVES_SUMS
        && (Self::M64_TILES * Self::CONSUMER_N > 256
            || !Self::CONSUMER_N.is_multiple_of(64)
            || Self::C_ALONG_M);

    /// Refuses at compile time parameters that the kernels cannot run with.
    const VALID: () = {
        // PTX ISA, "wgmma.mma_async": only 16-bit operands can be transposed.
        assert!(match Self::Element::DTYPE {
            DType::F16 | DType::Bf16 => true,
            DType::Tf32 => matches!(Self::B::MAJOR, Major::K),
            DType::F16x3 => matches!((Self::A::MAJOR, Self::B::MAJOR), (Major::K, Major::K)),
            DType::F32 => false,
        });
        assert!(
            Self::PARTS == 1
                || Self::ATOMS == 1
                    && Self::M64_TILES == 1
                    && Self::FUSED
                    && !Self::Schedule::PING_PONG
                    && !Self::Schedule::STREAM_K
                    && Self::BLOCK_K == crate::f16x3::PROMOTED,
            "a consumer has one m64 tile, sums it by k-blocks, and unscales the sums"
        );
        assert!(
            !Self::A_IN_REGISTERS
                || Self::ATOMS == 1
                    && Self::M64_TILES == 1
                    && Self::CLUSTER.ctas() == 1
                    && !Self::Schedule::CLUSTER_OF_FORM
                    && !Self::Schedule::PING_PONG
                    && !Self::Schedule::STREAM_K,
            "with A in registers, a consumer has one m64 tile and shares its stages with no CTA"
        );
        assert!(
            Self::DIVIDES_COLUMNS
                || Self::BLOCK_M == 64 * Self::CONSUMERS_PER_TILE * Self::M64_TILES
                    && Self::M64_TILES <= 2,
            "BLOCK_M is 64, 128, 192 or 256; for ping-pong, 64 or 128"
        );
        assert!(
            !Self::DIVIDES_COLUMNS
                || Self::BLOCK_M == 64 * Self::M64_TILES
                    && Self::M64_TILES as usize <= MAX_M64_TILES
                    && Self::BLOCK_N == 2 * Self::CONSUMER_N
                    && (matches!(Self::B::MAJOR, Major::K) || Self::CONSUMER_N.is_multiple_of(64))
                    && !Self::A_IN_REGISTERS
                    && !Self::FUSED
                    && Self::PARTS == 1
                    && Self::CLUSTER.k == 1
                    && !Self::Schedule::PING_PONG
                    && !Self::Schedule::STREAM_K
                    && !Self::Schedule::LEAVES_SUMS,
            "two consumers divide columns, in plain products; along N, the second half begins with a \
             box of 64 columns"
        );
        assert!(
            // ptxas (C7602): the 104 accumulators of 208 columns need 130 registers, and 512 threads
            // start with 128, whatever `setmaxnreg` gives them later.
            Self::CONSUMERS <= 2 || Self::CONSUMER_N <= 192,
            "accumulators must fit in the registers that 512 threads start with"
        );
        assert!(
            // Of elements in parts there are sums, products and corrections.
            (2 * Self::PARTS - 1) * Self::M64_TILES * Self::CONSUMER_N <= 384,
            "accumulators must fit in a consumer's registers"
        );
        assert!(
            Self::CONSUMER_N.is_multiple_of(16)
                || Self::CONSUMER_N.is_multiple_of(8)
                    && Self::STORES_BY_TMA_ONLY
                    && Self::CLUSTER.k == 1
                    && !Self::Schedule::STREAM_K,
            "accumulators are exchanged, and C is copied, in groups of 16 columns; TMA stores fewer"
        );
        assert!(
            Self::C_ALONG_M || !Self::STORES_BY_TMA_ONLY || Self::Element::DTYPE.bytes() == 2,
            "4-byte elements are stored through TMA alone only along M"
        );
        assert!(!Self::STORES_BY_TMA_ONLY || !Self::FUSED);
        assert!(
            !Self::Schedule::LEAVES_SUMS || !Self::FUSED && !Self::C_ALONG_M && Self::PARTS == 1,
            "the kernel that adds the sums has the epilogue, and stores C along N"
        );
        assert!(!Self::C_ALONG_M || Self::CLUSTER.k == 1);
        assert!(
            !Self::C_ALONG_M
                || Self::Element::DTYPE.bytes() == 2
                || Self::CONSUMER_N.is_multiple_of(32)
        );
        assert!(
            Self::CLUSTER.k == 1 || Self::CLUSTER.sharing() == 1 && Self::M64_TILES == 1,
            "CTAs that split K share no loads, and their consumers have one m64 tile each"
        );
        assert!(
            matches!(Self::CLUSTER.k, 1 | 2 | 4 | 8),
            "CTAs that split K own as many of a consumer's four warps each, or the first four do"
        );
        assert!(
            Self::BLOCK_K == Self::ATOMS * Self::ATOM_K && matches!(Self::ATOMS, 1 | 2),
            "a k-block is one or two swizzle atoms deep"
        );
        assert!(
            Self::STAGES >= 2,
            "one stage cannot overlap loading and multiplying"
        );
    };
}

/// m64 tiles that a consumer accumulates at most.
pub const MAX_M64_TILES: usize = 3;

/// One consumer's accumulators, for its m64 tiles. No code touches those past
/// [`KernelTraits::M64_TILES`], so they take no registers.
pub type Accumulators<K> = [<K as KernelTraits>::Accumulator; MAX_M64_TILES];

/// Columns of a 16-bit C in the last staged tile of a row of `consumer_n` columns; the other
/// tiles have 64.
pub const fn last_cols(consumer_n: u32) -> u32 {
    match consumer_n % 64 {
        0 => 64,
        cols => cols,
    }
}

/// A number of columns for which there is an accumulator.
pub struct Columns<const N: u32>;

/// Maps a number of columns to its accumulator.
pub trait Width {
    /// The registers of one thread for 64 rows.
    type Accumulator: wgmma::Accumulator;
}

macro_rules! widths {
    ($($n:literal)*) => {$(
        impl Width for Columns<$n> {
            type Accumulator = [u32; $n / 2];
        }
    )*};
}

widths! {
    16 32 48 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184 192 200 208 216 224 232 240 248 256
}
