//! Hopper kernels whose producers load lines through registers
//! ([`hopper::unaligned`](gpu_kernels::kernels::hopper::unaligned)), which TMA cannot read.

use gpu_kernels::{Family, KernelInfo};

/// Cycles in which the three producers of such a kernel bring one k-block: of 64 columns of B beside
/// 64 rows of A, and of 128. They are 0.57 and 0.90 µs at the highest clock of an H200, for 27
/// products there with each such kernel, cold.
const K_BLOCK: (u64, u64) = (1130, 1780);

/// Cycles for the CTAs of such a kernel that split K to exchange their accumulators, and the further
/// cycles for each of them: 0.9 and 0.1 µs. With the constants of kernels that load through TMA, 333³ nn
/// would be split: it takes 5.74 µs back to back in 64×128 tiles split by two, and 4.99 in 64×64 tiles.
const EXCHANGE: (u64, u64) = (1780, 200);

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

/// Cycles of the exchange at the end of a tile of `kernel`, whose operands are; none where its CTAs do
/// not split K.
pub(super) fn exchange_cycles(kernel: &KernelInfo) -> u64 {
    match kernel.cluster.k {
        0 | 1 => 0,
        parts => EXCHANGE.0 + EXCHANGE.1 * u64::from(parts),
    }
}
