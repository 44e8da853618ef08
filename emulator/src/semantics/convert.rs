//! Conversions between element types (PTX ISA, "Data Movement and Conversion
//! Instructions: cvt").
//!
//! Subnormal numbers are converted, not flushed, because no kernel uses `.ftz`. A NaN
//! becomes the canonical NaN of the type, in which all bits but the sign are set; the
//! sign and the payload are lost. TF32 is the exception.

/// The NaN that f32 instructions produce.
pub const CANONICAL_NAN_F32: u32 = 0x7fff_ffff;

/// The NaN that f16 and bf16 instructions produce.
pub const CANONICAL_NAN_16: u16 = 0x7fff;

/// Bits of an f32's significand that TF32 lacks.
const TF32_DROPPED_BITS: u32 = 13;

/// `cvt.f32.f16`, exact.
pub fn f32_from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = u32::from(bits >> 10 & 0x1f);
    let fraction = u32::from(bits & 0x3ff);
    match (exponent, fraction) {
        (0x1f, 0) => f32::from_bits(sign | 0x7f80_0000),
        (0x1f, _) => f32::from_bits(CANONICAL_NAN_F32),
        // Zero or subnormal: a multiple of 2⁻²⁴, and normal as an f32.
        (0, _) => f32::from_bits(sign | (fraction as f32 * 2_f32.powi(-24)).to_bits()),
        _ => f32::from_bits(sign | (exponent + (127 - 15)) << 23 | fraction << 13),
    }
}

/// `cvt.rn.f16.f32`: to nearest even, overflow to infinity.
pub fn f16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return CANONICAL_NAN_16;
    }
    let exponent = (magnitude >> 23) as i32 - 127;
    if exponent > 15 {
        return sign | 0x7c00;
    }
    if exponent >= -14 {
        // A carry out of the fraction raises the exponent, up to infinity.
        let rebiased = magnitude - ((127 - 15) << 23);
        return sign | round_to_even(rebiased, 13) as u16;
    }
    // The result is subnormal: count multiples of 2⁻²⁴.
    let significand = magnitude & 0x7f_ffff | 0x80_0000;
    let dropped = (-1 - exponent) as u32;
    if dropped > 24 {
        // The value is below half of the smallest subnormal; so is every f32 subnormal.
        return sign;
    }
    sign | round_to_even(significand, dropped) as u16
}

/// bf16 to f32, exact: bfloat16 is the upper half of an f32. There is no conversion
/// instruction that would replace a NaN.
pub fn f32_from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// `cvt.rn.bf16.f32`, as each half of `cvt.rn.bf16x2.f32`: to nearest even,
/// overflow to infinity.
pub fn bf16_from_f32(value: f32) -> u16 {
    if value.is_nan() {
        CANONICAL_NAN_16
    } else {
        round_to_even(value.to_bits(), 16) as u16
    }
}

/// `cvt.rna.tf32.f32`: to nearest, ties away from zero, overflow to infinity.
/// Returns an f32 whose low 13 bits are 0.
///
/// A NaN loses those bits and is not replaced, because `ptxas` compiles the instruction,
/// for sm_90, to an addition, a selection and a mask. So a NaN whose payload lies only in
/// those bits becomes an infinity.
pub fn tf32_from_f32(value: f32) -> u32 {
    let half = match value.is_finite() {
        true => 1 << (TF32_DROPPED_BITS - 1),
        false => 0,
    };
    (value.to_bits() + half) >> TF32_DROPPED_BITS << TF32_DROPPED_BITS
}

/// What TMA writes to shared memory for an f32 of a TFLOAT32 map: to nearest even, overflow to
/// infinity. The low 13 bits of the result are 0, those of the one NaN too.
pub fn tf32_by_tma(value: f32) -> u32 {
    let kept = if value.is_nan() {
        CANONICAL_NAN_F32 >> TF32_DROPPED_BITS
    } else {
        round_to_even(value.to_bits(), TF32_DROPPED_BITS)
    };
    kept << TF32_DROPPED_BITS
}

/// The TF32 number that the tensor cores see in any 32 bits: they do not read
/// the low 13 (PTX ISA, "Alternate floating-point data formats").
pub fn tf32_operand(bits: u32) -> f32 {
    f32::from_bits(bits >> TF32_DROPPED_BITS << TF32_DROPPED_BITS)
}

/// `cvt.rn.f16x2.f32`: two values, `low` in the low half.
pub fn f16x2_from_f32(low: f32, high: f32) -> u32 {
    pack(f16_from_f32(low), f16_from_f32(high))
}

/// `cvt.rn.bf16x2.f32`: two values, `low` in the low half.
pub fn bf16x2_from_f32(low: f32, high: f32) -> u32 {
    pack(bf16_from_f32(low), bf16_from_f32(high))
}

/// Two 16-bit elements as a register holds them.
pub fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// The two 16-bit elements of a register, the low half first.
pub fn unpack(register: u32) -> [u16; 2] {
    [register as u16, (register >> 16) as u16]
}

/// `bits` without its `dropped` (1 to 31) lowest, rounded to nearest even.
fn round_to_even(bits: u32, dropped: u32) -> u32 {
    let kept = bits >> dropped;
    let rest = bits & ((1 << dropped) - 1);
    let half = 1 << (dropped - 1);
    kept + u32::from(rest > half || (rest == half && kept & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    /// The value of f16 bits, by the definition of the format.
    fn defined(bits: u16) -> f64 {
        let exponent = i32::from(bits >> 10 & 0x1f);
        let fraction = f64::from(bits & 0x3ff) / 1024.0;
        let magnitude = match exponent {
            0 => fraction * 2_f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
        };
        if bits >> 15 == 1 {
            -magnitude
        } else {
            magnitude
        }
    }

    #[test]
    fn every_f16_means_what_the_format_defines_and_comes_back() {
        for bits in 0..=u16::MAX {
            let value = f32_from_f16(bits);
            if bits & 0x7fff > 0x7c00 {
                assert_eq!(value.to_bits(), CANONICAL_NAN_F32, "{bits:#x}");
                assert_eq!(f16_from_f32(value), CANONICAL_NAN_16);
            } else {
                assert_eq!(f64::from(value), defined(bits), "{bits:#x}");
                assert_eq!(value.is_sign_negative(), bits >> 15 == 1, "{bits:#x}");
                assert_eq!(f16_from_f32(value), bits, "{bits:#x}");
            }
        }
    }

    #[test]
    fn f16_rounds_to_the_nearest_and_ties_to_even() {
        for bits in 0..0x7bff_u16 {
            let (below, above) = (f32_from_f16(bits), f32_from_f16(bits + 1));
            // This is exact, because two neighbours differ in their last bit only.
            let middle = (below + above) / 2.0;
            let even = bits + (bits & 1);
            for sign in [1.0, -1.0] {
                let negative = if sign < 0.0 { 0x8000 } else { 0 };
                assert_eq!(f16_from_f32(sign * middle), negative | even, "{bits:#x}");
                assert_eq!(f16_from_f32(sign * middle.next_down()), negative | bits);
                assert_eq!(f16_from_f32(sign * middle.next_up()), negative | (bits + 1));
            }
        }
    }

    #[test]
    fn f16_overflows_and_underflows_where_ieee_754_does() {
        assert_eq!(f16_from_f32(65504.0), 0x7bff);
        assert_eq!(f16_from_f32(65520_f32.next_down()), 0x7bff);
        assert_eq!(f16_from_f32(65520.0), 0x7c00);
        assert_eq!(f16_from_f32(f32::NEG_INFINITY), 0xfc00);
        let smallest = 2_f32.powi(-24);
        assert_eq!(f16_from_f32(smallest / 2.0), 0, "a tie, to even");
        assert_eq!(f16_from_f32((smallest / 2.0).next_up()), 1);
        assert_eq!(f16_from_f32(-f32::from_bits(1)), 0x8000);
    }

    #[test]
    fn bf16_rounds_to_the_nearest_and_ties_to_even() {
        for bits in (0..0x7f80_u16).chain(0x8000..0xff80) {
            let exact = f32_from_bf16(bits).to_bits();
            assert_eq!(bf16_from_f32(f32::from_bits(exact)), bits);
            assert_eq!(bf16_from_f32(f32::from_bits(exact + 0x7fff)), bits);
            let tie = bf16_from_f32(f32::from_bits(exact + 0x8000));
            assert_eq!(tie, bits + (bits & 1), "{bits:#x}");
            assert_eq!(bf16_from_f32(f32::from_bits(exact + 0x8001)), bits + 1);
        }
        assert_eq!(bf16_from_f32(f32::MAX), 0x7f80);
        assert_eq!(bf16_from_f32(-f32::NAN), CANONICAL_NAN_16);
    }

    #[test]
    fn tf32_rounds_to_the_nearest_and_ties_away_from_zero() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..100_000 {
            let kept = random.random::<u32>() >> 13 << 13;
            if kept & 0x7f80_0000 == 0x7f80_0000 {
                continue;
            }
            let next = kept + 0x2000;
            for (low, expected) in [(0, kept), (0xfff, kept), (0x1000, next), (0x1fff, next)] {
                let value = f32::from_bits(kept | low);
                assert_eq!(tf32_from_f32(value), expected, "{value:e}");
                assert_eq!(tf32_operand(kept | low).to_bits(), kept);
            }
        }
        assert_eq!(tf32_from_f32(f32::MAX), f32::INFINITY.to_bits());
        assert_eq!(
            tf32_from_f32(f32::NEG_INFINITY),
            f32::NEG_INFINITY.to_bits()
        );
        // An H200 gave these results; the last NaN lies next to infinity.
        for (nan, kept) in [
            (0xffb9_01fd, 0xffb9_0000),
            (0x7fc0_1a52, 0x7fc0_0000),
            (0x7fff_ffff, 0x7fff_e000),
            (0xff80_0001, 0xff80_0000),
        ] {
            assert_eq!(tf32_from_f32(f32::from_bits(nan)), kept, "{nan:#x}");
        }
    }

    #[test]
    fn tma_rounds_tf32_to_the_nearest_and_ties_to_even() {
        let [even, odd] = [0x3f80_0000, 0x3f80_2000];
        for (bits, expected) in [
            (even | 0x0fff, even),
            (even | 0x1000, even),
            (even | 0x1001, odd),
            (odd | 0x0fff, odd),
            (odd | 0x1000, odd + 0x2000),
            // Subnormal numbers, and overflow: an H200 gave these results.
            (0x0000_1000, 0),
            (0x0000_1fff, 0x0000_2000),
            (0x007f_ffff, 0x0080_0000),
            (0x7f7f_efff, 0x7f7f_e000),
            (0xff7f_ffff, 0xff80_0000),
            (0x7f80_0001, 0x7fff_e000),
            (0xffff_ffff, 0x7fff_e000),
        ] {
            assert_eq!(tf32_by_tma(f32::from_bits(bits)), expected, "{bits:#x}");
        }
    }

    #[test]
    fn packed_conversions_put_the_first_value_into_the_low_half() {
        assert_eq!(f16x2_from_f32(1.0, -2.0), 0xc000_3c00);
        assert_eq!(bf16x2_from_f32(1.0, -2.0), 0xc000_3f80);
        assert_eq!(unpack(0xc000_3f80), [0x3f80, 0xc000]);
    }
}
