//! Hints to the compiler, as `asm!` without an instruction.

#![cfg_attr(
    not(target_arch = "nvptx64"),
    allow(unused_mut, reason = "the host has registers to spare")
)]

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// Whether the code generator computes whatever a loop over tiles does not change before the loop,
/// and keeps it: LLVM 7 does, in rust-cuda. rustc's LLVM leaves cheap values where they are used.
pub const KEEPS_INVARIANTS: bool = cfg!(all(target_arch = "nvptx64", not(feature = "standalone")));

/// `value`, hidden from LLVM's loop-invariant code motion, so that values computed
/// from it are computed here. LLVM would move everything that a loop does not change
/// out of the loop, and a kernel with several paths in its main loop would then hold
/// the addresses of all paths in registers at once. LLVM does not move the result of
/// an `asm!`, even of an empty one.
#[inline(always)]
pub fn compute_here(mut value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: no instruction.
    unsafe {
        asm!("// {}", inout(reg32) value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// [`compute_here`] where the code generator [keeps](KEEPS_INVARIANTS) what it has computed early;
/// elsewhere `value`.
#[inline(always)]
pub fn compute_late(value: u32) -> u32 {
    if KEEPS_INVARIANTS {
        compute_here(value)
    } else {
        value
    }
}

/// [`compute_late`] for 64 bits.
#[inline(always)]
pub fn compute_late_u64(value: u64) -> u64 {
    if KEEPS_INVARIANTS {
        compute_here_u64(value)
    } else {
        value
    }
}

/// [`compute_here`] for 64 bits.
#[inline(always)]
pub fn compute_here_u64(mut value: u64) -> u64 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: no instruction.
    unsafe {
        asm!("// {}", inout(reg64) value, options(nomem, nostack, preserves_flags));
    }
    value
}
