//! A or B of one tensor-core instruction: its elements as f32, and the exponents
//! by which [`dot`](super::dot) aligns their products.

use super::convert::tf32_operand;
use crate::semantics::format::Format;

/// Bytes along K of one instruction, except `mma.m16n8k8` of f16.
const DEPTH_BYTES: usize = 32;

/// A or B of one instruction, decoded.
#[derive(Clone, Debug)]
pub struct Factor {
    pub(super) dtype: Format,
    /// Rows of A, or columns of B.
    pub(super) lines: usize,
    /// Element (line, k) at `k * lines + line`.
    pub(super) values: Vec<f32>,
    /// 2 to the element's exponent, by which terms are aligned; 0 for 0.
    pub(super) powers: Vec<f32>,
}

impl Factor {
    /// Zeros of type `dtype`, `lines` rows of A or columns of B, as deep as one
    /// instruction. [`Format::F32`] is read as TF32, as the tensor cores do.
    pub fn zeros(dtype: Format, lines: usize) -> Self {
        Self::zeros_of_depth(dtype, lines, DEPTH_BYTES / dtype.bytes() as usize)
    }

    /// [`Factor::zeros`] for an instruction with `depth` elements along K, 8 or 16.
    pub fn zeros_of_depth(dtype: Format, lines: usize, depth: usize) -> Self {
        Factor {
            dtype,
            lines,
            values: vec![0.0; lines * depth],
            powers: vec![0.0; lines * depth],
        }
    }

    /// Elements along K.
    pub fn depth(&self) -> usize {
        self.values.len() / self.lines
    }

    /// Rows of A, or columns of B.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The element at (`line`, `k`).
    pub fn value(&self, line: usize, k: usize) -> f32 {
        self.values[k * self.lines + line]
    }

    /// Sets the element at (`line`, `k`) to the value of its stored `bits`; 16-bit types
    /// use the low half.
    pub fn set(&mut self, line: usize, k: usize, bits: u32) {
        let at = k * self.lines + line;
        self.values[at] = match self.dtype {
            Format::F16 => decode_f16(bits as u16),
            Format::Bf16 => f32::from_bits(bits << 16),
            Format::Tf32 | Format::F32 => tf32_operand(bits),
        };
        self.powers[at] = power(self.values[at], lowest_power(self.dtype));
    }

    /// Sets elements (`line`, `k`) and those after it along K to 16 stored bytes.
    pub fn set_along_k(&mut self, line: usize, k: usize, chunk: &[u8; 16]) {
        let at = k * self.lines + line;
        let (values, powers) = self.decode(chunk);
        for i in 0..16 / self.dtype.bytes() as usize {
            self.values[at + i * self.lines] = values[i];
            self.powers[at + i * self.lines] = powers[i];
        }
    }

    /// Sets elements (`line`, `k`) and those of the next lines to 16 stored bytes.
    pub fn set_along_lines(&mut self, line: usize, k: usize, chunk: &[u8; 16]) {
        let count = 16 / self.dtype.bytes() as usize;
        let run = k * self.lines + line..k * self.lines + line + count;
        let (values, powers) = self.decode(chunk);
        self.values[run.clone()].copy_from_slice(&values[..count]);
        self.powers[run].copy_from_slice(&powers[..count]);
    }

    /// Changes the sign of every element (`wgmma`'s `imm-scale` of −1).
    pub fn negate(&mut self) {
        for value in &mut self.values {
            *value = -*value;
        }
    }

    /// The elements of 16 stored bytes, four or eight of them, and their powers.
    fn decode(&self, chunk: &[u8; 16]) -> ([f32; 8], [f32; 8]) {
        let half = |i: usize| u16::from_le_bytes([chunk[2 * i], chunk[2 * i + 1]]);
        let mut values = [0.0; 8];
        match self.dtype {
            Format::F16 => {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = decode_f16(half(i));
                }
            }
            Format::Bf16 => {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = f32::from_bits(u32::from(half(i)) << 16);
                }
            }
            Format::Tf32 | Format::F32 => {
                for (value, bytes) in values.iter_mut().zip(chunk.as_chunks::<4>().0) {
                    *value = tf32_operand(u32::from_le_bytes(*bytes));
                }
            }
        }
        let lowest = lowest_power(self.dtype);
        (values, values.map(|value| power(value, lowest)))
    }
}

/// 2 to an `exponent` of −126 to 127.
pub(super) const fn two_to(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// 2 to the lowest exponent of `dtype`.
#[inline(always)]
pub(super) fn lowest_power(dtype: Format) -> f32 {
    match dtype {
        Format::F16 => two_to(-14),
        Format::Bf16 | Format::Tf32 | Format::F32 => two_to(-126),
    }
}

/// 2 to the exponent of `value`, at least `lowest`; 0 for 0, infinite for a value that
/// is not finite.
#[inline(always)]
fn power(value: f32, lowest: f32) -> f32 {
    let power = f32::from_bits(value.to_bits() & 0x7f80_0000);
    let power = if power > lowest { power } else { lowest };
    if value == 0.0 { 0.0 } else { power }
}

/// [`f32_from_f16`](super::convert::f32_from_f16) without branches, so that it
/// vectorises: a NaN keeps its payload, which no sum shows.
#[inline(always)]
fn decode_f16(bits: u16) -> f32 {
    let shifted = u32::from(bits & 0x7fff) << 13;
    // As an f32 the exponent is 112 too low, also that of subnormals.
    let magnitude = f32::from_bits(shifted) * two_to(112);
    let special = f32::from_bits(shifted | 0x7f80_0000);
    let magnitude = if shifted >= 0x1f << 23 {
        special
    } else {
        magnitude
    };
    f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

    #[test]
    fn chunks_of_memory_are_decoded_as_their_elements() {
        let mut random = StdRng::seed_from_u64(2);
        for dtype in [Format::F16, Format::Bf16, Format::Tf32] {
            let count = 16 / dtype.bytes() as usize;
            for _ in 0..20_000 {
                let mut chunk = [0; 16];
                random.fill_bytes(&mut chunk);
                let element = |i: usize| {
                    let bytes = &chunk[i * 16 / count..(i + 1) * 16 / count];
                    bytes
                        .iter()
                        .rev()
                        .fold(0, |bits, &byte| bits << 8 | u32::from(byte))
                };
                let mut along_k = Factor::zeros(dtype, 8);
                along_k.set_along_k(3, 4, &chunk);
                let mut along_lines = Factor::zeros(dtype, 16);
                along_lines.set_along_lines(8, 5, &chunk);
                for i in 0..count {
                    let mut single = Factor::zeros(dtype, 1);
                    single.set(0, 0, element(i));
                    let expected = single.value(0, 0);
                    for found in [
                        along_k.values.get((4 + i) * 8 + 3).copied(),
                        Some(along_lines.value(8 + i, 5)),
                    ] {
                        let same = found.map(f32::to_bits) == Some(expected.to_bits());
                        assert!(
                            same || dtype == Format::F16 && expected.is_nan(),
                            "{dtype:?} {chunk:x?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn f16_decodes_to_its_value() {
        for bits in 0..=u16::MAX {
            let (fast, defined) = (decode_f16(bits), super::super::convert::f32_from_f16(bits));
            assert!(
                fast.to_bits() == defined.to_bits() || fast.is_nan() && defined.is_nan(),
                "{bits:#x}"
            );
        }
    }
}
