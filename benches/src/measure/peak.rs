//! The arithmetic peak that shares are given of:
//! SMs × highest SM clock × FLOP a clock an SM.
//!
//! The highest clock is the boost limit, which a chip under full load does not
//! hold: an H200's data sheet says 989 TFLOP/s for f16 (at 1.83 GHz), this
//! formula 1070 (at 1.98 GHz).

use gpu_kernels::DType;

/// What the formula needs to know of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Compute capability, (major, minor).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Highest SM clock, kHz.
    pub max_clock_khz: u32,
}

/// Floating-point operations one SM finishes in a clock, dense, accumulating in
/// f32; a fused multiply-add is two. `None` where chips of one compute
/// capability differ.
///
/// f32: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
/// Instructions", doubled. Tensor cores: the architectures' white papers.
pub fn flop_per_clock_per_sm(compute_capability: (u32, u32), dtype: DType) -> Option<u32> {
    use DType::{Bf16, F16, F16x3, F32, Tf32};
    match (compute_capability, dtype) {
        ((7, 5), F32) | ((8, 0), F32) => Some(128),
        ((8, 6 | 7 | 9) | (9, 0) | (10 | 12, _), F32) => Some(256),
        ((7, 5), F16) => Some(1024),
        ((8, 0), F16 | Bf16) => Some(2048),
        ((8, 0), Tf32) => Some(1024),
        ((9, 0), F16 | Bf16) => Some(4096),
        ((9, 0), Tf32) => Some(2048),
        // Three products of f16 for one of f32.
        ((9, 0), F16x3) => Some(4096 / 3),
        _ => None,
    }
}

/// Peak in TFLOP/s; `None` where [`flop_per_clock_per_sm`] has no answer.
pub fn peak_tflops(chip: Chip, dtype: DType) -> Option<f64> {
    let per_clock = flop_per_clock_per_sm(chip.compute_capability, dtype)?;
    Some(f64::from(chip.sms) * f64::from(chip.max_clock_khz) * f64::from(per_clock) / 1e9)
}

/// The formula with its numbers, for the head of a table.
pub fn describe(chip: Chip, dtype: DType) -> String {
    match flop_per_clock_per_sm(chip.compute_capability, dtype).zip(peak_tflops(chip, dtype)) {
        Some((per_clock, peak)) => format!(
            "{} peak {peak:.1} TFLOP/s = {} SMs x {:.3} GHz x {per_clock} FLOP/clk/SM",
            dtype.name(),
            chip.sms,
            f64::from(chip.max_clock_khz) / 1e6,
        ),
        None => format!(
            "{} peak unknown for compute capability {}.{}",
            dtype.name(),
            chip.compute_capability.0,
            chip.compute_capability.1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data sheets' numbers at the data sheets' clocks.
    #[test]
    fn agrees_with_data_sheets() {
        let cases = [
            ((9, 0), 132, 1_830_000, DType::F16, 989.4),
            ((9, 0), 132, 1_830_000, DType::Tf32, 494.7),
            ((9, 0), 132, 1_980_000, DType::F32, 66.9),
            ((8, 0), 108, 1_410_000, DType::Bf16, 312.0),
            ((8, 0), 108, 1_410_000, DType::F32, 19.5),
            ((7, 5), 40, 1_590_000, DType::F16, 65.1),
        ];
        for (compute_capability, sms, max_clock_khz, dtype, expected) in cases {
            let chip = Chip {
                compute_capability,
                sms,
                max_clock_khz,
            };
            let peak = peak_tflops(chip, dtype).unwrap();
            assert!(
                (peak / expected - 1.0).abs() < 0.005,
                "{peak} against {expected}"
            );
        }
    }

    #[test]
    fn an_unknown_chip_has_no_peak() {
        let chip = Chip {
            compute_capability: (8, 6),
            sms: 82,
            max_clock_khz: 1_700_000,
        };
        assert_eq!(peak_tflops(chip, DType::F16), None);
        assert!(describe(chip, DType::F16).contains("unknown"));
    }
}
