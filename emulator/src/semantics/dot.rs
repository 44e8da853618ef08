//! The arithmetic of Hopper's tensor cores: D = A·B + C in f32, from factors of
//! f16, bf16 or TF32.
//!
//! The PTX ISA leaves order and rounding of the sum open ("mma", "Semantics").
//! They have been measured: this module is the "truncated fused dot-product-add"
//! of Xie et al., *MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and
//! Matrix Cores* (arXiv:2511.10909), which agrees with Khattak and Mikaitis,
//! *Accurate Models of NVIDIA Tensor Cores* (arXiv:2512.07004). For each element
//! of D, one instruction's depth (32 bytes along K: 16 elements of 16 bits, 8 of
//! TF32; or 8 elements of f16, `mma.m16n8k8`) is one sum:
//!
//! 1. Products are exact. The exponent of a product is the sum of its factors'
//!    exponents, also where the significands' product is 2 or more. Subnormal
//!    factors count as numbers of their type's lowest exponent (−14 for f16, −126
//!    for the other types); C has an exponent of −126 at least.
//! 2. All products and C are aligned to their largest exponent e, and truncated
//!    towards zero to multiples of 2^(e − [`FRACTION_BITS`]).
//! 3. The truncated terms are added exactly; the sum is truncated towards zero to
//!    f32. Beyond f32's range it is infinite. A sum of zero is +0.
//! 4. A NaN, ∞ · 0 or ∞ − ∞ gives the canonical NaN; else an infinite term
//!    gives that infinity.
//!
//! **What is modelled.** The module models both `mma.sync` and `wgmma` as sm_90
//! computes them. Ampere computes `mma.sync` in halves of that depth, with a fraction
//! bit fewer. On Ampere it was not measured that a product with a zero factor takes no
//! part in step 2, whatever the other factor's exponent.
//!
//! **Bound.** Hardware that adds K products and C in this way, in whatever order and
//! with 23 fraction bits or more, is within (K + 1) · 2^(e − 23) of the exact sum,
//! plus one unit in the last place of the result: [`error_bound`]. This module is within
//! the bound too.

use super::convert::CANONICAL_NAN_F32;
use super::factor::{Factor, lowest_power, two_to};

/// Bits below the largest exponent that a term keeps: 25 on sm_90.
pub const FRACTION_BITS: i32 = 25;

/// Columns of D computed side by side.
const LANES: usize = 8;

/// D += A·B: `d` holds D, row by row, in and out.
///
/// # Panics
/// The factors differ in type, `d` does not have a row for each line of `a` with
/// a column for each line of `b`, or those columns are no multiple of 8.
pub fn multiply_add(a: &Factor, b: &Factor, d: &mut [f32]) {
    assert_eq!(a.depth(), b.depth(), "factors of one type");
    assert_eq!(d.len(), a.lines * b.lines, "D has the shape of A·B");
    assert!(b.lines.is_multiple_of(LANES), "columns in eights");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { multiply_add_avx2(a, b, d) };
        return;
    }
    multiply_add_generic(a, b, d);
}

/// [`multiply_add_generic`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_add_avx2(a: &Factor, b: &Factor, d: &mut [f32]) {
    multiply_add_generic(a, b, d);
}

#[inline(always)]
fn multiply_add_generic(a: &Factor, b: &Factor, d: &mut [f32]) {
    match a.depth() {
        8 => multiply_add_depth::<8>(a, b, d),
        depth => {
            assert_eq!(depth, 16, "a factor is 8 or 16 elements deep");
            multiply_add_depth::<16>(a, b, d);
        }
    }
}

/// Row of A, element k at `[k]`.
struct Row<const DEPTH: usize> {
    values: [f32; DEPTH],
    powers: [f32; DEPTH],
    /// Whether its magnitudes are within [`Care`], so that [`add_tame`] is exact.
    tame: bool,
}

/// Eight columns of B, element (k, column) at `[k][column]`.
struct Columns<const DEPTH: usize> {
    values: [[f32; LANES]; DEPTH],
    powers: [[f32; LANES]; DEPTH],
}

#[inline(always)]
fn multiply_add_depth<const DEPTH: usize>(a: &Factor, b: &Factor, d: &mut [f32]) {
    let tame_b = b.powers.iter().all(|&power| Care::FACTOR.is_tame(power));
    let rows: Vec<Row<DEPTH>> = d
        .chunks_exact(b.lines)
        .enumerate()
        .map(|(row, d)| {
            let line = |elements: &[f32]| std::array::from_fn(|k| elements[k * a.lines + row]);
            let powers: [f32; DEPTH] = line(&a.powers);
            let tame_a = powers.iter().all(|&power| Care::FACTOR.is_tame(power));
            Row {
                values: line(&a.values),
                powers,
                tame: tame_a && tame_b && d.iter().all(|&c| Care::C.is_tame(c.abs())),
            }
        })
        .collect();
    for column in (0..b.lines).step_by(LANES) {
        let eight = |elements: &[f32]| {
            std::array::from_fn(|k| {
                let from = &elements[k * b.lines + column..];
                *from.first_chunk().expect("columns in eights")
            })
        };
        let columns = Columns {
            values: eight(&b.values),
            powers: eight(&b.powers),
        };
        for (row, (factors, d)) in rows.iter().zip(d.chunks_exact_mut(b.lines)).enumerate() {
            let d: &mut [f32; LANES] = d[column..].first_chunk_mut().expect("columns in eights");
            if factors.tame {
                add_tame(factors, &columns, d);
            } else {
                for (lane, d) in d.iter_mut().enumerate() {
                    *d = add_any(a, row, b, column + lane, *d);
                }
            }
        }
    }
}

/// The magnitudes that are neither so large nor so small that a sum of products
/// could leave the range in which f32 and i32 compute [`add_tame`] exactly.
struct Care {
    least: f32,
    most: f32,
}

impl Care {
    /// For factors, by their powers: a product's exponent is in −90 … 100.
    const FACTOR: Care = Care {
        least: two_to(-45),
        most: two_to(50),
    };
    /// For C.
    const C: Care = Care {
        least: two_to(-90),
        most: two_to(100),
    };

    #[inline(always)]
    fn is_tame(&self, magnitude: f32) -> bool {
        magnitude == 0.0 || (magnitude >= self.least && magnitude <= self.most)
    }
}

/// Eight columns of a row of D: the sum of tame terms.
///
/// In units of 2^(e − 25) a product is below 2^27 and C below 2^26, so halves of
/// the sum fit an i32, and all steps are exact: the product of two significands
/// of at most 11 bits fits an f32, and scaling by powers of two stays in range.
#[inline(always)]
fn add_tame<const DEPTH: usize>(row: &Row<DEPTH>, columns: &Columns<DEPTH>, d: &mut [f32; LANES]) {
    let mut largest = d.map(power_of_c);
    for (power, powers) in row.powers.iter().zip(&columns.powers) {
        for (largest, column) in largest.iter_mut().zip(powers) {
            let product = power * column;
            // A comparison instead of `max`, which also checks for NaN.
            *largest = if product > *largest {
                product
            } else {
                *largest
            };
        }
    }
    // If all terms are 0, any scale is correct.
    let scales = largest.map(|power| {
        let power = if power > Care::C.least {
            power
        } else {
            Care::C.least
        };
        f32::from_bits(((2 * 127 + FRACTION_BITS as u32) << 23) - power.to_bits())
    });
    let mut halves = [[0_i32; LANES]; 2];
    for lane in 0..LANES {
        // SAFETY: |C · scale| < 2^26.
        halves[0][lane] = unsafe { (d[lane] * scales[lane]).to_int_unchecked() };
    }
    for k in 0..DEPTH {
        for lane in 0..LANES {
            let scaled = row.values[k] * columns.values[k][lane] * scales[lane];
            // SAFETY: |scaled| < 2^27, because its power is at most the
            // largest power, and the scale takes the largest to 2^25.
            halves[2 * k / DEPTH][lane] += unsafe { scaled.to_int_unchecked::<i32>() };
        }
    }
    for lane in 0..LANES {
        let sum = f64::from(halves[0][lane]) + f64::from(halves[1][lane]);
        // The reciprocal of a power of two is exact.
        d[lane] = truncate(sum * f64::from(1.0 / scales[lane]));
    }
}

/// An f64 of f32's normal range, or 0, truncated to f32.
#[inline(always)]
fn truncate(value: f64) -> f32 {
    f64::from_bits(value.to_bits() >> 29 << 29) as f32
}

/// One element of D: the module's definition, step by step, for any values.
fn add_any(a: &Factor, row: usize, b: &Factor, column: usize, c: f32) -> f32 {
    let pairs = || (0..a.depth()).map(|k| (a.value(row, k), b.value(column, k)));
    // Step 4: a sum of infinite terms and zeros.
    let special = pairs()
        .map(|(a, b)| {
            if a.is_finite() && b.is_finite() {
                0.0
            } else {
                a * b
            }
        })
        .fold(if c.is_finite() { 0.0 } else { c }, |sum, term| sum + term);
    if special.is_nan() {
        return f32::from_bits(CANONICAL_NAN_F32);
    }
    if special.is_infinite() {
        return special;
    }
    // Step 1. A term is significand · 2^(exponent - 46).
    let lowest = exponent(lowest_power(a.dtype));
    let products = pairs()
        .filter(|&(a, b)| a != 0.0 && b != 0.0)
        .map(|(a, b)| {
            let (a, b) = (Parts::of(a, lowest), Parts::of(b, lowest));
            Parts {
                significand: a.significand * b.significand,
                exponent: a.exponent + b.exponent,
            }
        });
    let c = Parts::of(c, -126);
    let c = Parts {
        significand: c.significand << 23,
        ..c
    };
    let terms = || products.clone().chain([c]);
    // Steps 2 and 3.
    let largest = terms().map(|term| term.exponent).max().unwrap_or_default();
    let sum: i64 = terms()
        .map(|term| term.truncated(largest - FRACTION_BITS))
        .sum();
    let value = sum as f64 * 2_f64.powi(largest - FRACTION_BITS);
    let lowest_normal = f64::from(f32::MIN_POSITIVE);
    if value.abs() < lowest_normal {
        let unit = 2_f64.powi(-149);
        return ((value / unit).trunc() * unit) as f32;
    }
    // The result is infinite where `value` is too large.
    truncate(value)
}

/// A number, or a product of two.
#[derive(Clone, Copy)]
struct Parts {
    significand: i64,
    exponent: i32,
}

impl Parts {
    /// `value` as significand · 2^(exponent - 23), the exponent at least `lowest`.
    fn of(value: f32, lowest: i32) -> Self {
        let exponent = exponent(value).max(lowest);
        // Exact: at most 24 bits from 2^(exponent - 23) up.
        let magnitude = f64::from(value.abs()) * 2_f64.powi(23 - exponent);
        let significand = magnitude as i64;
        Parts {
            significand: if value < 0.0 {
                -significand
            } else {
                significand
            },
            exponent,
        }
    }

    /// A product, significand · 2^(exponent - 46), in units of 2^`unit`, towards
    /// zero.
    fn truncated(self, unit: i32) -> i64 {
        let dropped = unit - (self.exponent - 46);
        // A significand has 48 bits.
        self.significand / (1 << dropped.min(60))
    }
}

/// The exponent of a finite `value`; of zeros and subnormals, −127.
fn exponent(value: f32) -> i32 {
    (value.to_bits() >> 23 & 0xff) as i32 - 127
}

/// [`power`] of an element of C; of a subnormal one, 0.
#[inline(always)]
fn power_of_c(c: f32) -> f32 {
    f32::from_bits(c.to_bits() & 0x7f80_0000)
}

/// The module's bound on the distance between the exact value of an element of D
/// and the result of any hardware that truncates as described, with 23 or more
/// fraction bits. `c` is the value of the element before the instruction.
pub fn error_bound(a: &Factor, row: usize, b: &Factor, column: usize, c: f32) -> f64 {
    let product = |k| f64::from(a.value(row, k)) * f64::from(b.value(column, k));
    let power =
        |k| f64::from(a.powers[k * a.lines + row]) * f64::from(b.powers[k * b.lines + column]);
    let c_power = f64::from(power_of_c(c));
    let largest = (0..a.depth()).map(power).fold(c_power, f64::max);
    let magnitudes = (0..a.depth())
        .map(product)
        .fold(f64::from(c).abs(), |s, p| s + p.abs());
    // A unit in the last place of a result is at most 2^-23 of it.
    ((a.depth() + 1) as f64 * largest + magnitudes) * 2_f64.powi(-23)
}

#[cfg(test)]
mod tests;
