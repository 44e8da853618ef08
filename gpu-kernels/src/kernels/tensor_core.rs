//! Step 3, `tensor_core`: `ldmatrix` and `mma.sync`, with a main loop for sm_80 and one
//! for sm_75.
//!
//! The kernel follows CUTLASS's multistage kernels for Ampere ([`Multistage`]) and its
//! two-stage kernels for Turing ([`Pipelined`]):
//!
//! ```text
//! global ──cp.async──▶ shared, STAGES deep ──ldmatrix──▶ registers, 2 deep ──mma.sync──▶ accumulators
//! global ──ld──▶ registers ──st──▶ shared, 2 deep ──ldmatrix──▶ registers, 2 deep ──mma.sync──▶ accumulators
//! ```
//!
//! - A CTA computes a BLOCK_M×BLOCK_N tile, each warp a WARP_M×WARP_N part.
//! - While the warps multiply the block of one stage, copies for the stage
//!   STAGES − 1 blocks ahead are in flight; inside a block, the fragments of
//!   the next step (one `mma` deep) are loaded while the current step multiplies.
//! - Shared memory is swizzled, see [`layout`].
//! - An operand is copied in 16-byte chunks if it is aligned and contiguous
//!   along the direction that the entry's name gives; any other operand is
//!   copied element by element, into the same place. So every entry computes
//!   every problem, and its name gives the layouts for which it is fast.
//! - Accumulators leave through shared memory as whole lines of C, see
//!   `store`.
//!
//! TF32 fragments are rounded (not truncated) on their way to the tensor core. Elements in two
//! parts ([`f16x3`](crate::f16x3)) come from a packed copy and have a main loop of their own
//! ([`MultistageParts`]).

pub mod copy;
pub mod layout;

mod fragment;
mod main_loop;
mod multistage;
mod multistage_parts;
mod pipelined;
mod ring;
mod store;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;

use crate::dtype::Contiguous;
use crate::dtype::DType;
use crate::dtype::ElementType;
use crate::dtype::Major;
use crate::kernel::{Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

use layout::{Factor, Panel, WARP};
use main_loop::{Blocking, MainLoop};

pub use multistage::Multistage;
pub use multistage_parts::MultistageParts;
pub use pipelined::Pipelined;

/// The tensor-core kernel for elements of type `T`, A contiguous along `A` and
/// B along `B`; a CTA tile of `BM`×`BN`, `BK` deep, in warp tiles of `WM`×`WN`; and the
/// main loop `L`.
#[allow(clippy::type_complexity, reason = "markers only")]
pub struct TensorCore<
    T,
    A,
    B,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    L,
>(PhantomData<(T, A, B, L)>);

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    L: MainLoop,
> Blocking for TensorCore<T, A, B, BM, BN, BK, WM, WN, L>
{
    const DTYPE: DType = T::DTYPE;
    const WARP_TILE: (u32, u32) = (WM, WN);
    const A_PANEL: Panel = Panel {
        factor: Factor::A,
        major: A::MAJOR,
        extent: BM,
        depth: BK,
        element_bytes: T::DTYPE.factor().bytes(),
        mma_chunks: L::MMA_CHUNKS,
        parts: L::PARTS,
    };

    const B_PANEL: Panel = Panel {
        factor: Factor::B,
        major: B::MAJOR,
        extent: BN,
        depth: BK,
        element_bytes: T::DTYPE.factor().bytes(),
        mma_chunks: L::MMA_CHUNKS,
        parts: L::PARTS,
    };
}

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    L: MainLoop,
> TensorCore<T, A, B, BM, BN, BK, WM, WN, L>
{
    const WARPS_M: u32 = BM / WM;
    const WARPS: u32 = Self::WARPS_M * (BN / WN);
    const THREADS: u32 = Self::WARPS * WARP;

    const PIPELINE_BYTES: u32 = L::STAGES * Self::STAGE_BYTES;

    /// Rows of a warp tile whose accumulators are staged at once, in the pipeline's memory.
    const STAGED_ROWS: u32 = {
        let mut rows = WM;
        while rows > 16 && Self::WARPS * 4 * rows * WN > Self::PIPELINE_BYTES {
            rows /= 2;
        }
        rows
    };

    /// (warp, lane, first row, first column) of a thread's warp tile.
    #[inline(always)]
    fn place(thread: u32) -> (u32, u32, u32, u32) {
        let (warp, lane) = (thread / WARP, thread % WARP);
        let (warp_m, warp_n) = (warp % Self::WARPS_M, warp / Self::WARPS_M);
        (warp, lane, warp_m * WM, warp_n * WN)
    }

    /// Checks the assumptions of the arithmetic below and in [`layout`].
    const CHECK: () = {
        assert!(
            !matches!(T::DTYPE, DType::F32),
            "tensor cores multiply f16, bf16 and tf32"
        );
        assert!(
            BM.is_power_of_two() && BN.is_power_of_two() && BK.is_power_of_two(),
            "block sizes are powers of two"
        );
        assert!(BK >= 16, "BLOCK_K is at least 16");
        assert!(
            (WM == 32 || WM == 64) && (WN == 32 || WN == 64),
            "a warp tile is 32 or 64 on each side"
        );
        assert!(
            BM.is_multiple_of(WM) && BN.is_multiple_of(WN),
            "warp tiles cover the CTA tile"
        );
        assert!(Self::THREADS <= 1024, "a CTA has at most 1024 threads");
        assert!(
            Self::STEPS == 2 || Self::STEPS == 4 || Self::STEPS == 8,
            "fragments alternate between two sets of registers: 2, 4 or 8 steps a block"
        );
        assert!(
            L::PARTS == T::DTYPE.parts()
                && (L::PARTS == 1 || matches!(A::MAJOR, Major::K) && matches!(B::MAJOR, Major::K)),
            "elements in parts have a main loop of their own, and are packed along K"
        );
        assert!(L::STAGES >= 2, "copies run at least one block ahead");
        assert!(
            L::HAS_BF16_AND_TF32 || matches!(T::DTYPE, DType::F16),
            "tensor cores multiply bf16 and tf32 from sm_80 on"
        );
        assert!(
            L::CTAS_PER_SM * Self::PIPELINE_BYTES <= L::SM_SHARED_BYTES,
            "the CTAs of an SM share its memory"
        );
        assert!(
            Self::WARPS * 4 * Self::STAGED_ROWS * WN <= Self::PIPELINE_BYTES,
            "accumulators are staged in the pipeline's memory, at least 16 rows at once"
        );
        check_copies(Self::A_PANEL, Self::THREADS, L::MAX_PASSES);
        check_copies(Self::B_PANEL, Self::THREADS, L::MAX_PASSES);
    };
}

/// Checks that the threads copy a panel in whole passes, `max_passes` at most, that keep the
/// swizzle.
const fn check_copies(panel: Panel, threads: u32, max_passes: u32) {
    assert!(
        (panel.bytes()).is_multiple_of(Panel::pass_bytes(threads)),
        "the threads of a CTA copy a panel in whole passes"
    );
    assert!(
        panel.passes(threads) >= 1 && panel.passes(threads) <= max_passes,
        "a thread copies at most as many chunks of a panel as its list has"
    );
    assert!(
        panel.pass_lines(threads) >= 1
            && panel
                .pass_lines(threads)
                .is_multiple_of(panel.swizzle_period()),
        "a pass covers whole periods of the swizzle"
    );
}

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    L: MainLoop,
> Kernel for TensorCore<T, A, B, BM, BN, BK, WM, WN, L>
{
    const INFO: KernelInfo = {
        let () = Self::CHECK;
        KernelInfo {
            a_major: Some(A::MAJOR),
            b_major: Some(B::MAJOR),
            ctas_per_sm: L::CTAS_PER_SM,
            stages: L::STAGES,
            shared_bytes: Self::PIPELINE_BYTES,
            ..KernelInfo::new(
                Family::TensorCore,
                L::ARCH,
                T::DTYPE,
                Block {
                    m: BM,
                    n: BN,
                    k: BK,
                },
                Self::THREADS,
            )
        }
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        use crate::isa::{hint::compute_here, shared, thread};
        use crate::schedule::TileScheduler;
        use copy::{Copier, Source};
        use fragment::Reader;
        use store::{Staging, WarpTile};

        const { Self::CHECK };
        let base = shared::base();
        let thread = thread::thread_index();
        let (_, lane, warp_m, warp_n) = Self::place(thread);
        let a_reader = Reader::new(Self::A_PANEL, warp_m, WM, lane);
        let b_reader = Reader::new(Self::B_PANEL, warp_n, WN, lane);

        let position = thread::cta_position();
        let mut tiles = TileScheduler::new(params.raster, params.batches(), position);
        while let Some(tile) = tiles.next() {
            let (row, col) = (tile.m * BM, tile.n * BN);
            // `compute_here` keeps LLVM from holding the start addresses in registers
            // from tile to tile.
            let thread = compute_here(thread);
            let a = params.a.of_batch(tile.batch, T::DTYPE.factor());
            let a_source = Source::new(Self::A_PANEL, &a, a.row_stride, a.col_stride);
            let b = params.b.of_batch(tile.batch, T::DTYPE.factor());
            let b_source = Source::new(Self::B_PANEL, &b, b.col_stride, b.row_stride);
            let a = Copier::new(
                Self::A_PANEL,
                Self::THREADS,
                thread,
                a_source,
                row,
                params.m,
                params.k,
            )
            .beside(WM * WN / WARP);
            let b = Copier::new(
                Self::B_PANEL,
                Self::THREADS,
                thread,
                b_source,
                col,
                params.n,
                params.k,
            )
            .beside(WM * WN / WARP);
            // SAFETY: all threads of the CTA run the same tiles; the barriers
            // in `accumulate`, and the one below, order the uses of shared memory.
            unsafe {
                let c = L::accumulate::<Self>(a, b, a_reader, b_reader, base, params.k);
                // The same holds for the addresses of the store.
                let (warp, lane, warp_m, warp_n) = Self::place(compute_here(thread));
                let place = WarpTile {
                    row: row + warp_m,
                    col: col + warp_n,
                    height: WM,
                    width: WN,
                };
                let staging = Staging {
                    address: base + warp * (4 * Self::STAGED_ROWS * WN),
                    rows: Self::STAGED_ROWS,
                };
                store::store::<L>(params, tile.batch, place, lane, staging, &c);
                // The next tile's copies overwrite the staged accumulators.
                thread::sync_cta();
            }
        }
    }
}
