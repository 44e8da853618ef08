//! Conversions between element types (PTX ISA, "Data Movement and Conversion
//! Instructions: cvt").
//!
//! `asm!` has no register class for 16-bit floats, so a 16-bit float is the low
//! half of a `u32` here.

/// `cvt.f32.f16`, exact.
#[inline(always)]
pub fn f32_from_f16(bits: u32) -> f32 {
    instruction!(
        ptx = {
            let value: f32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("cvt.f32.f16 {}, {};", out(reg32) value, in(reg16) bits as u16,
                     options(pure, nomem, nostack, preserves_flags));
            }
            value
        },
        emulated = semantics::convert::f32_from_f16(bits as u16)
    )
}

/// `cvt.rn.f16.f32`: rounds to nearest even; overflow gives infinity.
#[inline(always)]
pub fn f16_from_f32(value: f32) -> u32 {
    instruction!(
        ptx = {
            let bits: u16;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("cvt.rn.f16.f32 {}, {};", out(reg16) bits, in(reg32) value,
                     options(pure, nomem, nostack, preserves_flags));
            }
            bits as u32
        },
        emulated = semantics::convert::f16_from_f32(machine::poison::used(value)).into()
    )
}

/// `cvt.rna.tf32.f32`, sm_80: rounds to nearest, ties away from zero (the only
/// rounding to TF32 before sm_90). The result is an f32 whose low 13 bits are 0.
#[inline(always)]
pub fn tf32_from_f32(value: f32) -> u32 {
    instruction!(
        ptx = {
            let bits: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("cvt.rna.tf32.f32 {}, {};", out(reg32) bits, in(reg32) value,
                     options(pure, nomem, nostack, preserves_flags));
            }
            bits
        },
        emulated = machine::poison::keep(value, semantics::convert::tf32_from_f32)
    )
}

/// bf16 to f32, exact: bfloat16 is the upper half of an f32.
#[inline(always)]
pub fn f32_from_bf16(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// f32 to bf16, to nearest even. It is computed in integer arithmetic, because
/// `cvt.rn.bf16.f32` needs sm_90 and even the packed form needs sm_80. NaN stays NaN
/// (quiet).
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        (bits >> 16) | 0x40
    } else {
        rounded
    }
}

/// `cvt.rn.f16x2.f32`: converts two values, `low` to the low half.
#[inline(always)]
pub fn f16x2_from_f32(low: f32, high: f32) -> u32 {
    instruction!(
        ptx = {
            let bits: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("cvt.rn.f16x2.f32 {}, {}, {};", out(reg32) bits, in(reg32) high, in(reg32) low,
                     options(pure, nomem, nostack, preserves_flags));
            }
            bits
        },
        emulated = {
            let [low, high] = [low, high].map(machine::poison::used);
            semantics::convert::f16x2_from_f32(low, high)
        }
    )
}

/// `cvt.rn.bf16x2.f32` (sm_80): converts two values, `low` to the low half.
#[inline(always)]
pub fn bf16x2_from_f32(low: f32, high: f32) -> u32 {
    instruction!(
        ptx = {
            let bits: u32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!("cvt.rn.bf16x2.f32 {}, {}, {};", out(reg32) bits, in(reg32) high, in(reg32) low,
                     options(pure, nomem, nostack, preserves_flags));
            }
            bits
        },
        emulated = {
            let [low, high] = [low, high].map(machine::poison::used);
            semantics::convert::bf16x2_from_f32(low, high)
        }
    )
}
