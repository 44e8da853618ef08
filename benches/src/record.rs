//! One measurement, with all that is needed to judge it.
//!
//! Flat, so that the same fields are a JSON object and a CSV row. Each record
//! names its machine, data and regime: a row cut from a table still says what
//! it is.

use crate::shape::Shape;
use serde::{Deserialize, Serialize};

/// How launches follow each other; see [`crate::regime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// L2 overwritten before each launch; short.
    Cold,
    /// Back to back for a second and more: clocks and power settle.
    Sustained,
    /// Wall time of a call, on the CPU device.
    Wall,
}

impl Regime {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Regime::Cold => "cold",
            Regime::Sustained => "sustained",
            Regime::Wall => "wall",
        }
    }
}

/// What came of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its result was checked, then it was timed.
    Timed,
    /// Its result was wrong; it was not timed.
    Wrong,
    /// It cannot run this problem; `note` says why.
    Skipped,
}

/// One candidate on one problem in one regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the GPU or CPU.
    pub device: String,
    /// CUDA version of the driver; empty on a CPU.
    pub driver: String,
    /// Such as `9.0`; empty on a CPU.
    pub compute_capability: String,
    /// SMs of the GPU.
    pub sms: Option<u32>,
    /// Which device toolchain built the kernels.
    pub toolchain: String,

    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Type of A and B.
    pub dtype: String,
    /// Type of C.
    pub output: String,
    /// See [`crate::shape::Layout`].
    pub layout: String,
    /// Distribution of the inputs.
    pub data: String,
    /// Seed of the inputs.
    pub seed: u64,

    /// `tilewise`, `cuBLASLt` or `Triton`, with the peer's version.
    pub implementation: String,
    /// Entry point, algorithm or configuration.
    pub kernel: String,
    /// Tile order; empty for peers.
    pub order: String,
    /// Schedule; empty for peers.
    pub schedule: String,
    /// CTAs launched.
    pub ctas: Option<u64>,

    /// How launches follow each other.
    pub regime: Regime,
    /// Timed in the same process, interleaved with its group.
    pub interleaved: bool,
    /// What came of it.
    pub status: Status,
    /// Why it was skipped, or how it was wrong.
    pub note: String,
    /// Samples behind the quartiles: launches (cold, wall) or slices of many
    /// launches (sustained).
    pub samples: usize,
    /// Median time of one product, ms.
    pub median_ms: Option<f64>,
    /// First quartile, ms.
    pub q1_ms: Option<f64>,
    /// Third quartile, ms.
    pub q3_ms: Option<f64>,
    /// 2·M·N·K over the median.
    pub tflops: Option<f64>,
    /// Peak used; see [`crate::peak`].
    pub peak_tflops: Option<f64>,
    /// `tflops` over `peak_tflops`.
    pub share_of_peak: Option<f64>,
    /// How much faster than row-major with the same kernel and schedule: ratio
    /// of medians.
    pub speedup_over_row_major: Option<f64>,
    /// How much faster than cuBLASLt: ratio of medians.
    pub speedup_over_cublaslt: Option<f64>,
    /// Relative error in the Frobenius norm over the sampled elements.
    pub relative_error: Option<f64>,

    /// Median SM clock while it ran, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Median power of the GPU while it ran, W.
    pub power_w: Option<f64>,
    /// Highest temperature while it ran, °C.
    pub temperature_c: Option<u32>,
    /// NVML's throttle reasons while it ran, joined by `+`.
    pub throttle: String,
}

impl Record {
    /// The problem's sizes.
    pub fn shape(&self) -> Shape {
        Shape::new(self.m, self.n, self.k)
    }

    /// Whether two records measure the same problem.
    pub fn same_problem(&self, other: &Record) -> bool {
        self.shape() == other.shape()
            && self.dtype == other.dtype
            && self.output == other.output
            && self.layout == other.layout
    }

    /// Whether the record is cuBLASLt's.
    pub fn is_cublaslt(&self) -> bool {
        self.implementation.starts_with("cuBLASLt")
    }
}

/// Fills in both speedups, from the medians of records of the same problem and
/// regime.
pub fn fill_speedups(records: &mut [Record]) {
    let speedup = |record: &Record, is_base: &dyn Fn(&Record) -> bool, all: &[Record]| {
        let base = all.iter().find(|base| {
            base.same_problem(record) && base.regime == record.regime && is_base(base)
        })?;
        Some(base.median_ms? / record.median_ms?)
    };
    let filled: Vec<_> = records
        .iter()
        .map(|record| {
            let over_row_major = |base: &Record| {
                !record.order.is_empty()
                    && base.order == "row"
                    && base.implementation == record.implementation
                    && base.kernel == record.kernel
                    && base.schedule == record.schedule
            };
            (
                speedup(record, &over_row_major, records),
                speedup(record, &Record::is_cublaslt, records),
            )
        })
        .collect();
    for (record, (row_major, cublaslt)) in records.iter_mut().zip(filled) {
        record.speedup_over_row_major = row_major;
        record.speedup_over_cublaslt = cublaslt;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A timed record of a 4096-cube on a made-up GPU.
    pub(crate) fn sample(implementation: &str, order: &str, median_ms: f64) -> Record {
        Record {
            device: "Test GPU, \"quoted\"".to_owned(),
            driver: "13.0".to_owned(),
            compute_capability: "9.0".to_owned(),
            sms: Some(132),
            toolchain: "rustc 1.95".to_owned(),
            m: 4096,
            n: 4096,
            k: 4096,
            dtype: "f16".to_owned(),
            output: "f16".to_owned(),
            layout: "nn".to_owned(),
            data: "uniform [-1, 1)".to_owned(),
            seed: 42,
            implementation: implementation.to_owned(),
            kernel: "kernel".to_owned(),
            order: order.to_owned(),
            schedule: "persistent".to_owned(),
            ctas: Some(132),
            regime: Regime::Cold,
            interleaved: true,
            status: Status::Timed,
            note: String::new(),
            samples: 30,
            median_ms: Some(median_ms),
            q1_ms: Some(median_ms * 0.99),
            q3_ms: Some(median_ms * 1.01),
            tflops: Some(Shape::new(4096, 4096, 4096).tflops(median_ms)),
            peak_tflops: Some(1070.5),
            share_of_peak: Some(0.5),
            speedup_over_row_major: None,
            speedup_over_cublaslt: None,
            relative_error: Some(2e-4),
            sm_clock_mhz: Some(1755.0),
            power_w: Some(612.3),
            temperature_c: Some(55),
            throttle: "SW_POWER_CAP".to_owned(),
        }
    }

    #[test]
    fn speedups_are_ratios_of_medians() {
        let mut records = [
            sample("tilewise", "row", 0.3),
            sample("tilewise", "grouped:8", 0.25),
            sample("cuBLASLt 13.0", "", 0.2),
        ];
        fill_speedups(&mut records);
        assert_eq!(records[0].speedup_over_row_major, Some(1.0));
        assert_eq!(records[1].speedup_over_row_major, Some(0.3 / 0.25));
        assert_eq!(records[1].speedup_over_cublaslt, Some(0.2 / 0.25));
        assert_eq!(records[2].speedup_over_row_major, None);
        assert_eq!(records[2].speedup_over_cublaslt, Some(1.0));
    }

    #[test]
    fn other_problems_regimes_and_schedules_are_no_base() {
        let grouped = sample("tilewise", "grouped:8", 0.25);
        let mut other_shape = sample("cuBLASLt 13.0", "", 0.2);
        other_shape.k = 512;
        let mut other_regime = sample("cuBLASLt 13.0", "", 0.2);
        other_regime.regime = Regime::Sustained;
        let mut other_schedule = sample("tilewise", "row", 0.3);
        other_schedule.schedule = "grid1d".to_owned();
        let mut records = [grouped, other_shape, other_regime, other_schedule];
        fill_speedups(&mut records);
        assert_eq!(records[0].speedup_over_row_major, None);
        assert_eq!(records[0].speedup_over_cublaslt, None);
    }
}
