//! [`Divisor`] against the division, where a multiplier could be off by one.

use gpu_kernels::order::Divisor;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0xd171;

/// The largest dividend.
const LAST: u32 = (1 << 31) - 1;

/// Divides the multiples of `value` and their neighbours, near 0, near the largest dividend, and
/// some between.
fn check(value: u32, random: &mut StdRng) {
    let divisor = Divisor::new(value);
    assert_eq!(divisor.value(), value);
    let last = LAST / value;
    let between = [random.random_range(0..=last), random.random_range(0..=last)];
    for quotient in [0, 1, 2, last / 2, last.saturating_sub(1), last]
        .into_iter()
        .chain(between)
    {
        let multiple = u64::from(quotient) * u64::from(value);
        for dividend in [multiple.saturating_sub(1), multiple, multiple + 1] {
            let dividend = dividend.min(LAST.into()) as u32;
            let expected = (dividend / value, dividend % value);
            assert_eq!(divisor.div_rem(dividend), expected, "{dividend} / {value}");
        }
    }
    let expected = (LAST / value, LAST % value);
    assert_eq!(divisor.div_rem(LAST), expected, "{LAST} / {value}");
}

#[test]
fn quotients_and_remainders_are_those_of_the_division() {
    let mut random = StdRng::seed_from_u64(SEED);
    let powers = (0..32).map(|exponent| 1_u32 << exponent);
    let near_powers = powers.flat_map(|power| [power - 1, power, power + 1]);
    let small = 1..=5000;
    for value in near_powers
        .chain(small)
        .chain([LAST, u32::MAX])
        .filter(|&value| value > 0)
    {
        check(value, &mut random);
    }
    for _ in 0..20_000 {
        let bits = random.random_range(1..=32);
        check((random.random::<u32>() >> (32 - bits)).max(1), &mut random);
    }
}

#[test]
fn zero_divides_as_one() {
    assert_eq!(Divisor::new(0), Divisor::ONE);
    assert_eq!(Divisor::ONE.div_rem(LAST), (LAST, 0));
}
