//! Hopper kernels whose producers load lines through registers
//! ([`hopper::unaligned`](gpu_kernels::kernels::hopper::unaligned)), which TMA cannot read.

use gpu_kernels::{Family, KernelInfo};

/// Cycles in which the three producers of such a kernel bring one k-block: of 64 columns of B beside
/// 64 rows of A, and of 128. They are 0.57 and 0.90 µs at the highest clock of an H200, for 27
/// products there with each such kernel, cold.
const K_BLOCK: (u64, u64) = (1130, 1780);

/// Whether the operands of `kernel` are loaded through registers.
pub(super) fn are_loaded_through(kernel: &KernelInfo) -> bool {
    kernel.family == Family::Hopper && !kernel.loads_by_tma
}

/// Cycles of a k-block of `kernel`, whose operands are.
pub(super) fn k_block_cycles(kernel: &KernelInfo) -> u64 {
    match kernel.block.n {
        ..=64 => K_BLOCK.0,
        _ => K_BLOCK.1,
    }
}
