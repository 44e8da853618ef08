//! Arithmetic that Rust's operators do not name (PTX ISA, "Floating Point
//! Instructions").

use core::arch::asm;

/// `fma.rn.f32`: `a · b + c`, rounded once. Rust never fuses `a * b + c` by itself.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    let value: f32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) value, in(reg32) a, in(reg32) b, in(reg32) c,
             options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `value`, but nothing that depends on it can be computed before this point.
#[inline(always)]
pub fn pin(value: u64) -> u64 {
    let pinned: u64;
    // SAFETY: a move between registers. Not `pure`, so it stays where it is.
    unsafe {
        asm!("mov.b64 {}, {};", out(reg64) pinned, in(reg64) value,
             options(nomem, nostack, preserves_flags));
    }
    pinned
}
