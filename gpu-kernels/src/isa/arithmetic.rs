//! Arithmetic for which Rust has no operator (PTX ISA, "Floating Point
//! Instructions").

/// `fma.rn.f32`: `a · b + c`, rounded once. Rust never fuses `a * b + c` by itself.
///
/// The operands of the `asm!` are the bits, because LLVM 7 (rust-cuda) copies an f32
/// operand to another register class, and a kernel with many accumulators has no
/// registers for the copies.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
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
        emulated = machine::poison::used(a).mul_add(machine::poison::used(b), c)
    )
}

/// `mad.wide.u32`: `a · b + c`, in one instruction where an addition of 64 bits takes two.
#[inline(always)]
pub fn multiply_add_wide(a: u32, b: u32, c: u64) -> u64 {
    instruction!(
        ptx = {
            let value: u64;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("mad.wide.u32 {}, {}, {}, {};", out(reg64) value, in(reg32) a, in(reg32) b, in(reg64) c,
                     options(pure, nomem, nostack, preserves_flags));
            }
            value
        },
        emulated = u64::from(a) * u64::from(b) + c
    )
}

/// `ex2.approx.ftz.f32`: 2^x, with a relative error of at most 2⁻²² (PTX ISA, "ex2").
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("ex2.approx.ftz.f32 {}, {};", out(reg32) value, in(reg32) x.to_bits(),
                     options(pure, nomem, nostack, preserves_flags));
            }
            f32::from_bits(value)
        },
        emulated = machine::poison::used(x).exp2()
    )
}

/// `rcp.approx.ftz.f32`: 1/x, with a relative error of at most 2⁻²³ (PTX ISA, "rcp").
#[inline(always)]
pub fn reciprocal(x: f32) -> f32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("rcp.approx.ftz.f32 {}, {};", out(reg32) value, in(reg32) x.to_bits(),
                     options(pure, nomem, nostack, preserves_flags));
            }
            f32::from_bits(value)
        },
        emulated = machine::poison::used(x).recip()
    )
}
