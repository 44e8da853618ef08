//! Arithmetic that Rust's operators do not name (PTX ISA, "Floating Point
//! Instructions").

/// `fma.rn.f32`: `a · b + c`, rounded once. Rust never fuses `a * b + c` by itself.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    instruction!(
        ptx = {
            let value: f32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) value, in(reg32) a, in(reg32) b, in(reg32) c,
                     options(pure, nomem, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::poison::used(a).mul_add(machine::poison::used(b), c)
    )
}

/// [`fma`] of values that stay in registers as their bits, for many accumulators: where an
/// operand of an `asm!` is an f32, LLVM 7 (rust-cuda) copies it between two kinds of
/// register, and both may be occupied.
#[inline(always)]
pub fn fma_bits(a: f32, b: f32, c: f32) -> f32 {
    instruction!(
        ptx = {
            let [a, b, c] = [a, b, c].map(f32::to_bits);
            let value: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) value, in(reg32) a, in(reg32) b, in(reg32) c,
                     options(pure, nomem, nostack, preserves_flags));
            }
            f32::from_bits(value)
        },
        emulated = fma(a, b, c)
    )
}
