//! What the two main loops have in common: [`Multistage`](super::Multistage) for `cp.async`,
//! [`Pipelined`](super::Pipelined) for GPUs without it. (The names are those of CUTLASS's
//! `MmaMultistage` and `MmaPipelined`.)

use crate::dtype::DType;
use crate::kernel::Arch;

use super::copy::Copier;
use super::fragment::{Accumulators, Reader};
use super::layout::Panel;

/// The constants of one kernel that its main loop works with.
pub trait Blocking {
    /// Element type of A and B.
    const DTYPE: DType;
    /// A's block of a stage.
    const A_PANEL: Panel;
    /// B's block of a stage.
    const B_PANEL: Panel;
    /// WARP_M and WARP_N.
    const WARP_TILE: (u32, u32);

    /// Steps of a block, each one `mma` deep.
    const STEPS: u32 = Self::A_PANEL.depth / Self::A_PANEL.step_depth();
    /// Bytes of a stage: A's panels, then B's.
    const STAGE_BYTES: u32 = Self::A_PANEL.bytes_of_parts() + Self::B_PANEL.bytes_of_parts();
}

/// The main loop of one tile: it brings blocks into a ring of stages in shared memory, loads
/// fragments from there, and multiplies them.
pub trait MainLoop {
    /// The oldest target that has its instructions.
    const ARCH: Arch;
    /// Stages of the ring.
    const STAGES: u32;
    /// CTAs an SM must hold at once.
    const CTAS_PER_SM: u32;
    /// Shared memory of an SM that these CTAs have together, bytes.
    const SM_SHARED_BYTES: u32;
    /// Chunks a thread copies of each panel, at most.
    const MAX_PASSES: u32;
    /// Depth of one `mma`, in chunks of 16 bytes.
    const MMA_CHUNKS: u32;
    /// Parts of the elements that it multiplies.
    const PARTS: u32;
    /// Whether `ARCH` has instructions for bf16 and TF32, besides those for f16.
    const HAS_BF16_AND_TF32: bool;

    /// Runs the main loop of one tile, and returns this lane's accumulators after
    /// all of `k`. Before and after, shared memory is free and no copy is pending.
    ///
    /// # Safety
    /// All threads of the CTA execute it; `base` is the address of `STAGES` stages
    /// of shared memory; the copiers describe live operands.
    unsafe fn accumulate<S: Blocking>(
        a: Copier,
        b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators;
}
