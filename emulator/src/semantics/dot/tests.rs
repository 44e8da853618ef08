use super::*;
use crate::semantics::convert::f16_from_f32;
use crate::semantics::format::Format;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

const TYPES: [Format; 3] = [Format::F16, Format::Bf16, Format::Tf32];

/// The stored bits of `value`, which `dtype` must have exactly.
fn bits(dtype: Format, value: f32) -> u32 {
    match dtype {
        Format::F16 => f16_from_f32(value).into(),
        Format::Bf16 => value.to_bits() >> 16,
        Format::Tf32 | Format::F32 => value.to_bits(),
    }
}

/// A factor from its elements.
fn factor(dtype: Format, lines: usize, value: impl Fn(usize, usize) -> f32) -> Factor {
    let mut factor = Factor::zeros(dtype, lines);
    for line in 0..lines {
        for k in 0..factor.depth() {
            factor.set(line, k, bits(dtype, value(line, k)));
            assert_eq!(
                factor.value(line, k),
                value(line, k),
                "{dtype:?} has it exactly"
            );
        }
    }
    factor
}

/// One element of D from the products' factors and C.
fn one(dtype: Format, pairs: &[(f32, f32)], c: f32) -> f32 {
    let at = |k: usize| pairs.get(k).copied().unwrap_or_default();
    let a = factor(dtype, 1, |_, k| at(k).0);
    let b = factor(dtype, 8, |line, k| if line == 0 { at(k).1 } else { 0.0 });
    let mut d = [c, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    multiply_add(&a, &b, &mut d);
    let defined = add_any(&a, 0, &b, 0, c);
    assert_eq!(d[0].to_bits(), defined.to_bits(), "one definition");
    d[0]
}

#[test]
fn small_integers_are_exact() {
    let mut random = StdRng::seed_from_u64(1);
    for dtype in TYPES {
        let numbers: Vec<f32> = (0..64 * 16)
            .map(|_| random.random_range(-16..=16) as f32)
            .collect();
        let a = factor(dtype, 64, |line, k| numbers[line * 16 + k]);
        let b = factor(dtype, 24, |line, k| numbers[line * 16 + 15 - k]);
        let mut d: Vec<f32> = (0..64 * 24).map(|i| i as f32).collect();
        multiply_add(&a, &b, &mut d);
        for row in 0..64 {
            for column in 0..24 {
                let sum: f32 = (0..a.depth())
                    .map(|k| a.value(row, k) * b.value(column, k))
                    .sum();
                let i = row * 24 + column;
                assert_eq!(d[i], i as f32 + sum, "{dtype:?} {row} {column}");
            }
        }
    }
}

#[test]
fn terms_keep_25_bits_below_the_largest_exponent() {
    let small = |exponent: i32| {
        let half = exponent / 2;
        (two_to(half), two_to(exponent - half))
    };
    for dtype in [Format::Bf16, Format::Tf32] {
        // Two of 2^-25 are a bit of the sum, though not of f32 at 1.
        assert_eq!(one(dtype, &[small(-25); 2], 1.0), 1.0);
        assert_eq!(one(dtype, &[small(-25); 4], 1.0), 1.0 + f32::EPSILON);
        // Each is truncated before the sum: 4 of half that make nothing.
        assert_eq!(one(dtype, &[small(-26); 8], 1.0), 1.0);
    }
    // f16 has 2^-13 · 2^-12 too.
    assert_eq!(one(Format::F16, &[small(-25); 4], 1.0), 1.0 + f32::EPSILON);
    assert_eq!(one(Format::F16, &[small(-26); 8], 1.0), 1.0);
}

#[test]
fn sums_are_truncated_towards_zero() {
    for sign in [1.0, -1.0] {
        let ulp = (two_to(-12) * sign, two_to(-11));
        let three_quarters = [(ulp.0 * 0.5, ulp.1), (ulp.0 * 0.25, ulp.1)];
        assert_eq!(one(Format::F16, &three_quarters, sign), sign);
        let all = [three_quarters[0], three_quarters[1], three_quarters[1]];
        assert_eq!(one(Format::F16, &all, sign), sign * (1.0 + f32::EPSILON));
    }
}

#[test]
fn a_product_is_aligned_by_the_sum_of_its_exponents() {
    // 1.5 · 1.5 = 2.25 counts as exponent 0, so that 2^-25 stays.
    let tiny = (two_to(-13), two_to(-12));
    let cancelled = [(1.5, 1.5), (-1.5, 1.5), tiny];
    assert_eq!(one(Format::F16, &cancelled, 0.0), two_to(-25));
    // A term of exponent 1 drops it.
    let cancelled = [(2.0, 1.0), (-2.0, 1.0), tiny];
    assert_eq!(one(Format::F16, &cancelled, 0.0), 0.0);
}

#[test]
fn subnormal_f16_factors_count_with_the_lowest_normal_exponent() {
    let subnormal = two_to(-24);
    // Alone: 2^-24 · 2^-24 has exponent -28, and 2^-48 is kept.
    assert_eq!(
        one(Format::F16, &[(subnormal, subnormal)], 0.0),
        two_to(-48)
    );
    // 2^-24 · 1 has exponent -14, whose last bit is 2^-39.
    let below = (two_to(-20), two_to(-20));
    assert_eq!(
        one(Format::F16, &[(subnormal, 1.0), below], 0.0),
        two_to(-24)
    );
    assert_eq!(
        one(Format::F16, &[(two_to(-14), two_to(-10)), below], 0.0),
        two_to(-24) + two_to(-40)
    );
}

#[test]
fn zeros_are_positive_and_do_not_align() {
    assert_eq!(one(Format::F16, &[(-0.0, 1.0)], -0.0).to_bits(), 0);
    assert_eq!(one(Format::Bf16, &[(1.0, 1.0)], -1.0).to_bits(), 0);
    let tiny = (two_to(-60), two_to(-60));
    assert_eq!(
        one(Format::Bf16, &[(0.0, two_to(100)), tiny], 0.0),
        two_to(-120)
    );
}

#[test]
fn special_values_follow_ieee_754() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for dtype in TYPES {
        assert_eq!(one(dtype, &[(inf, 2.0), (1.0, 1.0)], 0.0), inf);
        assert_eq!(one(dtype, &[(inf, -2.0)], 5.0), -inf);
        assert_eq!(one(dtype, &[(1.0, 1.0)], -inf), -inf);
        for (pairs, c) in [
            ([(inf, 0.0), (0.0, 0.0)], 0.0),
            ([(inf, 1.0), (-inf, 1.0)], 0.0),
            ([(inf, 1.0), (0.0, 0.0)], -inf),
            ([(1.0, 1.0), (0.0, 0.0)], nan),
        ] {
            assert_eq!(
                one(dtype, &pairs, c).to_bits(),
                CANONICAL_NAN_F32,
                "{pairs:?} {c}"
            );
        }
    }
}

#[test]
fn what_f32_cannot_hold_is_infinite_or_truncated() {
    let huge = (two_to(64), two_to(63));
    assert_eq!(one(Format::Bf16, &[huge], 0.0), two_to(127));
    assert_eq!(one(Format::Bf16, &[huge; 2], 0.0), f32::INFINITY);
    // Products beyond f32's range may cancel.
    let beyond = (two_to(100), two_to(100));
    assert_eq!(
        one(Format::Bf16, &[beyond, (-beyond.0, beyond.1)], 0.0),
        0.0
    );
    let subnormal = [(two_to(-75), 1.5 * two_to(-74))];
    assert_eq!(one(Format::Bf16, &subnormal, 0.0), f32::from_bits(1));
}

/// A random number of type `dtype` and an exponent up to `range` either way.
fn spread(random: &mut StdRng, dtype: Format, range: i32) -> f32 {
    let significand = 1.0 + f32::from(random.random::<u8>() >> 1) / 128.0;
    let sign = if random.random() { 1.0 } else { -1.0 };
    let range = range.min(if dtype == Format::F16 { 14 } else { 126 });
    match random.random_range(0..16) {
        0 => 0.0,
        _ => sign * significand * two_to(random.random_range(-range..=range)),
    }
}

#[test]
fn the_quick_way_computes_what_the_definition_says() {
    let mut random = StdRng::seed_from_u64(3);
    for dtype in TYPES {
        for range in [0, 3, 14, 44, 60, 126] {
            for c_range in [0, 20, 89, 126] {
                let mut a = Factor::zeros(dtype, 16);
                let mut b = Factor::zeros(dtype, 8);
                for factor in [&mut a, &mut b] {
                    for line in 0..factor.lines() {
                        for k in 0..factor.depth() {
                            factor.set(line, k, bits(dtype, spread(&mut random, dtype, range)));
                        }
                    }
                }
                let c: Vec<f32> = (0..16 * 8)
                    .map(|_| spread(&mut random, Format::F32, c_range))
                    .collect();
                let mut d = c.clone();
                multiply_add(&a, &b, &mut d);
                for row in 0..16 {
                    for column in 0..8 {
                        let i = row * 8 + column;
                        let defined = add_any(&a, row, &b, column, c[i]);
                        assert_eq!(
                            d[i].to_bits(),
                            defined.to_bits(),
                            "{dtype:?} {range} {c_range}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn results_stay_within_the_bound() {
    let mut random = StdRng::seed_from_u64(4);
    for dtype in TYPES {
        for range in [0, 3, 14] {
            let mut a = Factor::zeros(dtype, 1);
            let mut b = Factor::zeros(dtype, 8);
            for _ in 0..500 {
                for factor in [&mut a, &mut b] {
                    for line in 0..factor.lines() {
                        for k in 0..factor.depth() {
                            factor.set(line, k, bits(dtype, spread(&mut random, dtype, range)));
                        }
                    }
                }
                let c = spread(&mut random, Format::F32, 3);
                let mut d = [c; 8];
                multiply_add(&a, &b, &mut d);
                for (column, d) in d.into_iter().enumerate() {
                    let exact = (0..a.depth())
                        .map(|k| f64::from(a.value(0, k)) * f64::from(b.value(column, k)))
                        .fold(f64::from(c), |sum, product| sum + product);
                    let bound = error_bound(&a, 0, &b, column, c);
                    assert!(
                        (f64::from(d) - exact).abs() <= bound,
                        "{dtype:?} {d} {exact} {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_negated_factor_negates_the_product() {
    let mut a = factor(Format::F16, 1, |_, k| k as f32);
    let b = factor(Format::F16, 8, |line, _| line as f32);
    a.negate();
    let mut d = [0.0; 8];
    multiply_add(&a, &b, &mut d);
    assert_eq!(d[..3], [0.0, -120.0, -240.0]);
}
