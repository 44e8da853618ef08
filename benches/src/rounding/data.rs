//! Ten kinds of data on which products in f32 round differently.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

/// A kind of data. A line is a row of A or a column of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Uniform in [−1, 1).
    Uniform,
    /// Uniform in [0, 1): errors of one sign add up.
    Positive,
    /// Standard normal.
    Normal,
    /// Log-normal with a random sign: few elements make up a sum.
    LogNormal,
    /// Random mantissas and signs, exponents uniform over 40 binary orders.
    Wide,
    /// Normal, and each line scaled by a power of two from 2⁻⁴⁵ to 2⁴⁵.
    LineScales,
    /// 1 + 2⁻¹²·uniform: all bits of nearly equal elements matter.
    NearOne,
    /// Pairs of nearly opposite elements, so that sums cancel.
    Cancelling,
    /// Uniform, times 2⁻¹³⁰ in A, which makes most of its elements subnormal, and 2¹⁰⁰ in B.
    Subnormal,
    /// Uniform, nine in ten elements zero.
    Sparse,
}

impl Data {
    /// All kinds.
    pub const ALL: [Data; 10] = [
        Data::Uniform,
        Data::Positive,
        Data::Normal,
        Data::LogNormal,
        Data::Wide,
        Data::LineScales,
        Data::NearOne,
        Data::Cancelling,
        Data::Subnormal,
        Data::Sparse,
    ];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Data::Uniform => "uniform",
            Data::Positive => "positive",
            Data::Normal => "normal",
            Data::LogNormal => "log-normal",
            Data::Wide => "wide",
            Data::LineScales => "line-scales",
            Data::NearOne => "near-one",
            Data::Cancelling => "cancelling",
            Data::Subnormal => "subnormal",
            Data::Sparse => "sparse",
        }
    }

    /// `lines` lines of `depth` elements, line after line. `operand` is 0 for A and 1 for B.
    pub fn lines(self, lines: usize, depth: usize, operand: usize, seed: u64) -> Vec<f32> {
        let mut random = StdRng::seed_from_u64(seed ^ (operand as u64) << 63);
        let mut elements = Vec::with_capacity(lines * depth);
        for _ in 0..lines {
            let scale: i32 = random.random_range(-45..=45);
            let mut last = 0.0;
            for k in 0..depth {
                last = self.element(operand, k, scale, last, &mut random);
                elements.push(last as f32);
            }
        }
        elements
    }

    /// Element `k` of a line, after `last`.
    fn element(self, operand: usize, k: usize, scale: i32, last: f64, random: &mut StdRng) -> f64 {
        let uniform = random.random_range(-1.0..1.0);
        match self {
            Data::Uniform => uniform,
            Data::Positive => random.random_range(0.0..1.0),
            Data::Normal => normal(random),
            Data::LogNormal => (2.0 * normal(random)).exp() * uniform.signum(),
            Data::Wide => {
                (1.0 + uniform.abs()) * uniform.signum() * two_to(random.random_range(-20..20))
            }
            Data::LineScales => normal(random) * two_to(scale),
            Data::NearOne => 1.0 + two_to(-12) * uniform,
            // One operand has pairs, the other has equal elements for them.
            Data::Cancelling if operand == 0 && k % 2 == 1 => -last * (1.0 + two_to(-16) * uniform),
            Data::Cancelling if k % 2 == 1 => last,
            Data::Cancelling => uniform,
            Data::Subnormal => uniform * two_to(if operand == 0 { -130 } else { 100 }),
            Data::Sparse if random.random_bool(0.9) => 0.0,
            Data::Sparse => uniform,
        }
    }
}

fn two_to(exponent: i32) -> f64 {
    2.0_f64.powi(exponent)
}

/// A standard normal number, by Box and Muller's method.
fn normal(random: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (TAU * random.random::<f64>()).cos()
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Data::ALL.into_iter().find(|data| data.name() == text);
        found.ok_or_else(|| {
            let names = Data::ALL.map(Data::name).join(", ");
            format!("no kind of data; accepted: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for data in Data::ALL {
            assert_eq!(data.to_string().parse(), Ok(data));
        }
        assert!(
            "nothing"
                .parse::<Data>()
                .unwrap_err()
                .contains("line-scales")
        );
    }

    #[test]
    fn data_is_finite_and_comes_again() {
        for data in Data::ALL {
            let lines = data.lines(3, 100, 0, 7);
            assert_eq!(lines, data.lines(3, 100, 0, 7), "{data}");
            assert_ne!(lines, data.lines(3, 100, 1, 7), "{data}");
            assert!(lines.iter().all(|x| x.is_finite()), "{data}");
            assert!(lines.iter().any(|x| *x != 0.0), "{data}");
        }
    }

    #[test]
    fn pairs_cancel() {
        let (a, b) = (
            Data::Cancelling.lines(1, 2, 0, 1),
            Data::Cancelling.lines(1, 2, 1, 1),
        );
        let sum = a[0] * b[0] + a[1] * b[1];
        assert!(sum.abs() < 1e-4 * (a[0] * b[0]).abs() && sum != 0.0);
    }
}
