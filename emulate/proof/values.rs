//! Random operands: distributions that show different sides of the arithmetic.

use gpu_kernels::DType;
use half::{bf16, f16};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tilewise_emulator::semantics::convert::CANONICAL_NAN_F32;

/// How elements are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any bits: every exponent, subnormals, infinities, NaN.
    Bits,
    /// Uniform in −1 … 1, as products mostly are.
    Unit,
    /// Exponents far apart, so that most terms are cut off.
    Spread,
    /// Half of them zeros, beside large ones, and a C that is 0 or tiny.
    Sparse,
    /// Integers whose sums are exact.
    Integers,
}

impl Values {
    pub const ALL: [Values; 5] = [
        Values::Bits,
        Values::Unit,
        Values::Spread,
        Values::Sparse,
        Values::Integers,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Values::Bits => "random bits",
            Values::Unit => "uniform in -1..1",
            Values::Spread => "wide exponents",
            Values::Sparse => "half zeros",
            Values::Integers => "integers",
        }
    }

    /// An element of A or B, as the bits that are stored.
    pub fn element(self, dtype: DType, random: &mut StdRng) -> u32 {
        if self == Values::Bits {
            return match dtype.bytes() {
                2 => random.random::<u16>().into(),
                _ => random.random(),
            };
        }
        let widest = if dtype == DType::F16 { 14 } else { 60 };
        let value = match self {
            Values::Bits | Values::Unit => random.random_range(-1.0..1.0),
            Values::Spread => spread(widest, random),
            Values::Sparse if random.random() => 0.0,
            Values::Sparse => spread(widest, random),
            Values::Integers => random.random_range(-8..=8) as f32,
        };
        match dtype {
            DType::F16 | DType::F16x3 => f16::from_f32(value).to_bits().into(),
            DType::Bf16 => bf16::from_f32(value).to_bits().into(),
            DType::Tf32 | DType::F32 => value.to_bits(),
        }
    }

    /// An element of C. A NaN is always the tensor cores' canonical NaN, because the
    /// emulator uses other NaNs to mark the registers of an accumulator that is in use.
    pub fn accumulator(self, random: &mut StdRng) -> f32 {
        match self {
            Values::Bits => match f32::from_bits(random.random()) {
                value if value.is_nan() => f32::from_bits(CANONICAL_NAN_F32),
                value => value,
            },
            Values::Unit => random.random_range(-4.0..4.0),
            Values::Spread => spread(30, random),
            Values::Sparse if random.random() => 0.0,
            Values::Sparse => spread(30, random) * 2_f32.powi(-60),
            Values::Integers => random.random_range(-1000..=1000) as f32,
        }
    }

    /// Stored elements of type `dtype` that fill `bytes` bytes.
    pub fn fill(self, dtype: DType, bytes: usize, random: &mut StdRng) -> Vec<u8> {
        let size = dtype.bytes() as usize;
        let elements = (0..bytes / size).map(|_| self.element(dtype, random));
        elements
            .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
            .collect()
    }

    /// Accumulators, `count` of them.
    pub fn accumulators(self, count: usize, random: &mut StdRng) -> Vec<u8> {
        let values = (0..count).map(|_| self.accumulator(random));
        values.flat_map(f32::to_le_bytes).collect()
    }
}

/// A number with a random significand and an exponent up to `range` either way.
fn spread(range: i32, random: &mut StdRng) -> f32 {
    let significand: f32 = random.random_range(1.0..2.0);
    let sign = if random.random() { 1.0 } else { -1.0 };
    sign * significand * 2_f32.powi(random.random_range(-range..=range))
}

/// The 32-bit words of `bytes`.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks::<4>().0;
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
