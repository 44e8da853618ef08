//! Hints to the compiler, as `asm!` without an instruction.

#![cfg_attr(
    not(target_arch = "nvptx64"),
    allow(unused_mut, reason = "the host has registers to spare")
)]

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// `value`, computed where it stands. LLVM moves everything that a loop does
/// not change out of the loop, and a kernel with several paths in its main loop
/// then holds the addresses of all paths in registers at once. It does not
/// move what comes out of an `asm!`, even an empty one.
#[inline(always)]
pub fn compute_here(mut value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: no instruction.
    unsafe {
        asm!("// {}", inout(reg32) value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// As [`compute_here`], 64 bits.
#[inline(always)]
pub fn compute_here_u64(mut value: u64) -> u64 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: no instruction.
    unsafe {
        asm!("// {}", inout(reg64) value, options(nomem, nostack, preserves_flags));
    }
    value
}
