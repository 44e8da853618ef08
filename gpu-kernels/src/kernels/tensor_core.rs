//! Step 3, `tensor_core`: `cp.async` stages, `ldmatrix` and `mma.sync`, from
//! sm_80 on.
//!
//! The kernel follows CUTLASS's multistage kernels for Ampere:
//!
//! ```text
//! global ──cp.async──▶ shared, STAGES deep ──ldmatrix──▶ registers, 2 deep ──mma.sync──▶ accumulators
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
//! TF32 fragments are rounded (not truncated) on their way to the tensor core.

pub mod copy;
pub mod layout;

mod fragment;
mod pipeline;
mod store;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;

use crate::dtype::Contiguous;
use crate::dtype::DType;
use crate::dtype::ElementType;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

use layout::{Factor, Panel, WARP};

/// The tensor-core kernel for elements of type `T`, A contiguous along `A` and
/// B along `B`; a CTA tile of `BM`×`BN`, `BK` deep, in warp tiles of `WM`×`WN`.
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
    const STAGES: u32,
>(PhantomData<(T, A, B)>);

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    const STAGES: u32,
> TensorCore<T, A, B, BM, BN, BK, WM, WN, STAGES>
{
    /// A's block of a stage.
    const A_PANEL: Panel = Panel {
        factor: Factor::A,
        major: A::MAJOR,
        extent: BM,
        depth: BK,
        element_bytes: T::DTYPE.bytes(),
    };

    /// B's block of a stage.
    const B_PANEL: Panel = Panel {
        factor: Factor::B,
        major: B::MAJOR,
        extent: BN,
        depth: BK,
        element_bytes: T::DTYPE.bytes(),
    };

    const WARPS_M: u32 = BM / WM;
    const THREADS: u32 = Self::WARPS_M * (BN / WN) * WARP;

    /// Steps of a block, each one `mma` deep.
    const STEPS: u32 = BK / Self::A_PANEL.step_depth();

    const STAGE_BYTES: u32 = Self::A_PANEL.bytes() + Self::B_PANEL.bytes();
    const PIPELINE_BYTES: u32 = STAGES * Self::STAGE_BYTES;

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
        assert!(STAGES >= 2, "copies run at least one block ahead");
        assert!(
            Self::PIPELINE_BYTES <= 163 * 1024,
            "sm_80 has 163 KB of shared memory a CTA"
        );
        assert!(
            BM * BN * 4 <= Self::PIPELINE_BYTES,
            "accumulators are staged in the pipeline's memory"
        );
        check_copies(Self::A_PANEL, Self::THREADS);
        check_copies(Self::B_PANEL, Self::THREADS);
    };
}

/// Checks that the threads copy a panel in whole passes that keep the swizzle.
const fn check_copies(panel: Panel, threads: u32) {
    assert!(
        (panel.bytes()).is_multiple_of(Panel::pass_bytes(threads)),
        "the threads of a CTA copy a panel in whole passes"
    );
    assert!(
        panel.passes(threads) >= 1 && panel.passes(threads) <= MAX_PASSES,
        "a thread copies 1 to 16 chunks of a panel"
    );
    assert!(
        panel.pass_lines(threads) >= 1
            && panel
                .pass_lines(threads)
                .is_multiple_of(panel.swizzle_period()),
        "a pass covers whole periods of the swizzle"
    );
}

/// Chunks a thread copies per panel, at most: the length of the unrolled list.
const MAX_PASSES: u32 = 16;

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    const STAGES: u32,
> Kernel for TensorCore<T, A, B, BM, BN, BK, WM, WN, STAGES>
{
    const INFO: KernelInfo = {
        let () = Self::CHECK;
        KernelInfo {
            a_major: Some(A::MAJOR),
            b_major: Some(B::MAJOR),
            stages: STAGES,
            shared_bytes: Self::PIPELINE_BYTES,
            ..KernelInfo::new(
                Family::TensorCore,
                Arch::Sm80,
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
        use crate::order::TileGrid;
        use crate::schedule::TileScheduler;
        use copy::{Copier, Source};
        use fragment::Reader;
        use store::WarpTile;

        const { Self::CHECK };
        let base = shared::base();
        let thread = thread::thread_index();
        let (_, lane, warp_m, warp_n) = Self::place(thread);
        let a_reader = Reader::new(Self::A_PANEL, warp_m, WM, lane);
        let b_reader = Reader::new(Self::B_PANEL, warp_n, WN, lane);

        let grid = TileGrid::cover(params.m, params.n, BM, BN);
        let position = thread::cta_position();
        let (schedule, order) = (params.schedule, params.order);
        let mut tiles = TileScheduler::new(schedule, order, grid, params.batches(), position);
        while let Some(tile) = tiles.next() {
            let (row, col) = (tile.m * BM, tile.n * BN);
            // `compute_here` keeps LLVM from holding the start addresses in registers
            // from tile to tile.
            let thread = compute_here(thread);
            let a = params.a.of_batch(tile.batch, T::DTYPE);
            let a_source = Source::new(Self::A_PANEL, &a, a.row_stride, a.col_stride);
            let b = params.b.of_batch(tile.batch, T::DTYPE);
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
                let c = Self::accumulate(a, b, a_reader, b_reader, base, params.k);
                // The same holds for the addresses of the store.
                let (warp, lane, warp_m, warp_n) = Self::place(compute_here(thread));
                let place = WarpTile {
                    row: row + warp_m,
                    col: col + warp_n,
                    height: WM,
                    width: WN,
                };
                let staging = base + warp * (4 * WM * WN);
                store::store(params, tile.batch, place, lane, staging, &c);
                // The next tile's copies overwrite the staged accumulators.
                thread::sync_cta();
            }
        }
    }
}
