//! f32 as two f16, for products on the tensor cores that are as exact as f32 products
//! ([`DType::F16x3`](crate::DType)).
//!
//! ```text
//! a line of A (a row) or of B (a column)      a[k] = 2^e · (high[k] + 2⁻¹¹·low[k])
//! one product                                 high·high + 2⁻¹¹·(low·high + high·low)
//! sums of high·high                           64 of K, or 16, in the tensor core; those sums in f32
//! sums of low·high + high·low                 all of K in the tensor core
//! C                                           2^(e of the row + e of the column) · sum
//! ```
//!
//! The idea is Ootomo and Yokota's ("Recovering single precision accuracy from Tensor Cores
//! while surpassing the FP32 theoretical peak performance", arXiv 2203.03341); the name counts
//! the products, as CUTLASS's 3xTF32 and cuBLAS's BF16x9 do.
//!
//! # The error of an element
//!
//! The exponent e of a line puts its largest magnitude into [2¹⁴, 2¹⁵). Let y be a scaled
//! element. Rounding to 11 bits leaves |y − high| ≤ 2⁻¹¹·|y|, or ≤ 2⁻²⁵ where y is below f16's
//! normal numbers. That difference is an f32. As low it is 2¹¹ times as large, so that it has 11
//! bits too unless it is below 2⁻²⁵, and rounding it leaves
//!
//! |y − high − 2⁻¹¹·low| ≤ 2⁻²²·|y| + 2⁻³⁶,
//!
//! where the last term is 2⁻⁵⁰ of the line's largest element. Of a product of two elements,
//! low·low is left out, which is at most 2⁻²² of the product. So each product is off by at most
//! 3·2⁻²² of itself, and by 2⁻⁴⁹ of the product of the largest elements of its lines. These are
//! worst cases: the errors have either sign, and on random data their sum is below the rounding
//! errors of an f32 sum. A sum of few terms may be less exact than in f32, which rounds each
//! product to 2⁻²⁴.
//!
//! The tensor core truncates as it adds, by up to 2⁻²³ of the sum for each of its steps (16 of
//! K). On data of one sign these errors add up, so a sum of high·high stays there for
//! [`PROMOTED`] of K only, or in `tensor_core` kernels for a single step, and is then added to an
//! f32 accumulator (CUTLASS and DeepGEMM call this promotion). The other sums are 2⁻¹¹ of it, and
//! so are their errors.
//!
//! # What is not finite
//!
//! An infinite or NaN element x has high = ±1 and low = x. The low part of one operand is
//! multiplied only with the high part of the other. A high part is zero only where its element
//! is zero: where rounding would give zero, it is the smallest subnormal, and the low part
//! makes up for it. Hence ∞·b is ∞ with the right sign, ∞·0 is NaN, ∞·∞ is ∞, and a sum has an
//! infinity or a NaN exactly where the f32 sum of the same products has one.

use crate::isa::convert::{f16_from_f32, f32_from_f16};

/// The binary exponent of the scale of low parts: their largest are as large as the largest high
/// parts.
const LOW: i32 = 11;

/// Depth of the sums of high parts that stay in the tensor cores in hopper kernels: a k-block. It
/// is the shortest that costs nothing.
pub const PROMOTED: u32 = 64;

/// The binary exponent of a line's largest scaled element.
const TOP: i32 = 14;

/// The sign of an f16.
const SIGN: u32 = 0x8000;

/// 1, as an f16.
const ONE: u32 = 0x3c00;

/// The bits of |`x`|, which are ordered as the magnitudes are; 0 for what is not finite.
#[inline(always)]
pub fn magnitude(x: f32) -> u32 {
    if x.is_finite() { x.abs().to_bits() } else { 0 }
}

/// The exponent of a line whose largest [`magnitude`] is `largest`: from −163 to 113, and 0
/// for a line without finite elements other than zeros.
#[inline(always)]
pub fn exponent(largest: u32) -> i32 {
    let binary = if largest >= 1 << 23 {
        (largest >> 23) as i32 - 127
    } else {
        31 - largest.leading_zeros() as i32 - 149
    };
    if largest == 0 { 0 } else { binary - TOP }
}

/// The parts of `x`, an element of a line with this exponent, as bits of f16: low, high.
#[inline(always)]
pub fn split(x: f32, exponent: i32) -> [u32; 2] {
    // 2^163 is no f32, its root is.
    let half = -exponent / 2;
    let scaled = x * power_of_two(half) * power_of_two(-exponent - half);
    let rounded = f16_from_f32(scaled);
    let sign = x.to_bits() >> 16 & SIGN;
    let is_finite = x.is_finite();
    let high = if !is_finite {
        sign | ONE
    } else if rounded & !SIGN == 0 && x != 0.0 {
        sign | 1
    } else {
        rounded
    };
    let low = if is_finite {
        (scaled - f32_from_f16(high)) * power_of_two(LOW)
    } else {
        x
    };
    [f16_from_f32(low), high]
}

/// What a sum of products of a low and a high part adds to a sum of products of high parts.
#[inline(always)]
pub fn correction(sum: f32) -> f32 {
    sum * power_of_two(-LOW)
}

/// 2^`exponent` · `sum`, rounded once, for a sum of products of parts of two lines and the sum
/// of the exponents of the lines.
#[inline(always)]
pub fn unscaled(sum: f32, exponent: i32) -> f32 {
    // A sum is a multiple of 2⁻⁵⁹, so the first factor leaves it a normal number or overflows
    // for good. It is below 2⁶² for every K, so exponents below −216 give zero.
    let exponent = exponent.max(-216);
    let first = exponent.clamp(-67, 127);
    sum * power_of_two(first) * power_of_two(exponent - first)
}

/// 2^`exponent`, for exponents from −149 to 127.
#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    let normal = ((exponent + 127) as u32) << 23;
    let subnormal = 1 << ((exponent + 149) as u32 & 31);
    f32::from_bits(if exponent >= -126 { normal } else { subnormal })
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    fn value([low, high]: [u32; 2]) -> f64 {
        f64::from(f32_from_f16(low)) * 2.0_f64.powi(-LOW) + f64::from(f32_from_f16(high))
    }

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in -149..=127 {
            assert_eq!(f64::from(power_of_two(exponent)), 2.0_f64.powi(exponent));
        }
    }

    #[test]
    fn the_largest_element_of_a_line_comes_just_below_the_fifteenth_power_of_two() {
        for bits in [1, 2, 3, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x7f7f_ffff] {
            let largest = f64::from(f32::from_bits(bits));
            let scaled = largest * 2.0_f64.powi(-exponent(bits));
            assert!((16384.0..32768.0).contains(&scaled), "{bits:#x}: {scaled}");
        }
        assert_eq!(exponent(0), 0);
        assert_eq!(magnitude(f32::NEG_INFINITY), 0);
        assert_eq!(magnitude(f32::NAN), 0);
    }

    #[test]
    fn two_parts_hold_an_element_to_the_bound() {
        // Lines whose largest element is anything from the least f32 to the greatest, and
        // elements of any size below it.
        let mut bits = 0x1234_5678_u32;
        let mut random = || {
            bits ^= bits << 13;
            bits ^= bits >> 17;
            bits ^= bits << 5;
            bits
        };
        for _ in 0..200_000 {
            let (one, other) = (random() & 0x7fff_ffff, random() & 0x7fff_ffff);
            if one.max(other) >= 0x7f80_0000 {
                continue;
            }
            let exponent = exponent(one.max(other));
            let x = f32::from_bits(one.min(other));
            for x in [x, -x] {
                let parts = split(x, exponent);
                let scaled = f64::from(x) * 2.0_f64.powi(-exponent);
                let bound = scaled.abs() * 2.0_f64.powi(-22) + 2.0_f64.powi(-36);
                let error = (value(parts) - scaled).abs();
                assert!(error <= bound, "{x} · 2^{exponent}: {error} above {bound}");
                assert_eq!(parts[1] & 0x7fff == 0, x == 0.0, "{x} · 2^{exponent}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_lies_in_the_low_part() {
        for x in [f32::INFINITY, f32::NEG_INFINITY] {
            let [low, high] = split(x, 3).map(f32_from_f16);
            assert_eq!((low, high), (x, x.signum()));
        }
        let [low, high] = split(f32::NAN, -163).map(f32_from_f16);
        assert!(low.is_nan() && high.abs() == 1.0);
    }

    #[test]
    fn sums_are_unscaled_with_one_rounding() {
        let sums = [
            1.0,
            -3.0,
            16777215.0,
            2.0_f32.powi(-59),
            2.0_f32.powi(47),
            f32::INFINITY,
        ];
        for sum in sums {
            for exponent in -326..=226 {
                let exact = f64::from(sum) * 2.0_f64.powi(exponent);
                assert_eq!(
                    unscaled(sum, exponent),
                    exact as f32,
                    "{sum} · 2^{exponent}"
                );
            }
        }
        assert!(unscaled(f32::NAN, -326).is_nan());
    }
}
