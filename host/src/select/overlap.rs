//! Whether a launch may start while the kernel before it in the stream still runs
//! ("programmatic stream serialization", `gpu_kernels::isa::dependency`).
//!
//! An overlapping launch sets itself up while the other one ends, and so saves 0.6 µs between
//! two launches. But its CTAs go to whichever SMs are free, one after the other, where a launch on
//! an idle GPU is spread over all GPCs at once. Launches that are limited by their loads lose more
//! by that than they save. The limits below follow from 158 products on an H200, each in CUDA
//! graphs of 48 launches with the same operands and with operands that L2 cannot hold
//! (`docs/perf-log.md`, "Where an overlapping launch puts its CTAs").

use gpu_kernels::{Family, KernelInfo};

use crate::problem::Target;

/// Launches up to this many cycles, by [`cost`](super::cost), overlap: 78 of the 81 measured are
/// faster for it, by 8 % in the mean.
const SHORT_CYCLES: u64 = 16_000;

/// No launch of more cycles overlaps. Larger products run at the power limit, where overlapping
/// lost up to 6 %.
const MOST_CYCLES: u64 = 44_000;

/// Elements of the largest tile whose loads limit the kernel: 64×128 and 128×64.
const SMALL_TILE: u32 = 64 * 128;

/// Whether a launch of `ctas` CTAs (along x and y) of `kernel`, estimated at `cycles`, is faster
/// if it overlaps the launch before it.
pub(crate) fn pays(kernel: &KernelInfo, ctas: (u32, u32), cycles: u64, target: &Target) -> bool {
    if kernel.family != Family::Hopper {
        // The other families do not wait for the launch before them.
        return false;
    }
    if cycles <= SHORT_CYCLES {
        return true;
    }
    // Where SMs stay idle, the CTAs of two launches alternate between them.
    let ctas = u64::from(ctas.0) * u64::from(ctas.1);
    let fills_the_gpu = 6 * ctas > 5 * u64::from(target.sms);
    let limited_by_loads =
        kernel.cluster.ctas() == 1 && kernel.block.m * kernel.block.n <= SMALL_TILE;
    cycles <= MOST_CYCLES && fills_the_gpu && !limited_by_loads
}
