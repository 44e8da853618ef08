//! One row of the study.

use crate::measure::regime::Regime;
use crate::problem::shape::GemmShape;
use serde::{Deserialize, Serialize};

/// One product with one kernel in one order: measured, and predicted.
///
/// Flat, so that it is a CSV row too: `docs/study/*.csv` has these columns. A figure that
/// was not measured or predicted is `None`, in a file an empty cell or a missing column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRow {
    /// Name of the GPU.
    pub device: String,
    /// Version of the driver.
    pub driver: String,
    /// The day it was measured, such as `2026-11-21`.
    pub date: String,
    /// SMs that the driver counts.
    pub sms: Option<u32>,
    /// L2 as the driver says, bytes.
    pub l2_bytes: Option<u64>,
    /// Peak of the tensor cores for [`Self::dtype`], TFLOP/s.
    pub peak_tflops: Option<f64>,
    /// Peak bandwidth of the DRAM, bytes a second.
    pub dram_bytes_per_second: Option<f64>,

    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Type of A and B.
    pub dtype: String,
    /// See [`crate::problem::shape::BlasLayout`].
    pub layout: String,

    /// Entry point.
    pub kernel: String,
    /// Rows of the CTA tile.
    pub block_m: u32,
    /// Columns of the CTA tile.
    pub block_n: u32,
    /// BLOCK_K: depth of a k-block.
    pub block_k: u32,
    /// CTAs of a cluster, such as `2x1`; empty without clusters.
    pub cluster: String,
    /// Tile order, by its name on the command line.
    pub order: String,
    /// Schedule, by its name on the command line.
    pub schedule: String,
    /// Rules that pick this order for this product and kernel, joined by `+`: such as
    /// `chooser+cutlass`. The page computes what each rule loses.
    pub picked_by: String,
    /// The model's parameters were fitted on this product.
    pub fitted: bool,

    /// Median time of one product, L2 overwritten before it, µs.
    pub cold_us: Option<f64>,
    /// Standard error of [`Self::cold_us`], relative to it.
    pub cold_error: Option<f64>,
    /// 2·M·N·K over [`Self::cold_us`], TFLOP/s.
    pub cold_tflops: Option<f64>,
    /// Median time of one product among many, back to back, µs.
    pub sustained_us: Option<f64>,
    /// Standard error of [`Self::sustained_us`], relative to it.
    pub sustained_error: Option<f64>,
    /// 2·M·N·K over [`Self::sustained_us`], TFLOP/s.
    pub sustained_tflops: Option<f64>,
    /// Median SM clock in the sustained regime, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Median power in the sustained regime, W.
    pub power_w: Option<f64>,

    /// Bytes that SMs read from L2, counted on the GPU.
    pub l2_read_bytes: Option<f64>,
    /// Share of them that L2 had, 0 to 1.
    pub l2_hit_rate: Option<f64>,
    /// Bytes that crossed between the two partitions of L2.
    pub l2_fabric_bytes: Option<f64>,
    /// Bytes read from DRAM.
    pub dram_read_bytes: Option<f64>,
    /// Bytes written to DRAM.
    pub dram_write_bytes: Option<f64>,

    /// [`Self::l2_read_bytes`] as the model of L2 predicts it.
    pub model_l2_read_bytes: Option<f64>,
    /// [`Self::l2_hit_rate`], predicted.
    pub model_l2_hit_rate: Option<f64>,
    /// [`Self::l2_fabric_bytes`], predicted.
    pub model_l2_fabric_bytes: Option<f64>,
    /// [`Self::dram_read_bytes`], predicted.
    pub model_dram_read_bytes: Option<f64>,
    /// [`Self::dram_write_bytes`], predicted.
    pub model_dram_write_bytes: Option<f64>,
    /// The model's lower bound on the time, µs.
    pub model_us: Option<f64>,
}

/// In [`StudyRow::picked_by`]: the library, with the kernel and the schedule forced.
pub const CHOOSER: &str = "chooser";
/// CUTLASS's heuristic.
pub const CUTLASS: &str = "cutlass";
/// The least time by the model among the orders measured; of equal times, the fewest bytes.
pub const MODEL: &str = "model";
/// The library's tuner.
pub const TUNER: &str = "tuner";

impl StudyRow {
    /// The product.
    pub fn shape(&self) -> GemmShape {
        GemmShape::new(self.m, self.n, self.k)
    }

    /// The time of one product in `regime`, µs.
    pub fn time_us(&self, regime: Regime) -> Option<f64> {
        match regime {
            Regime::Cold => self.cold_us,
            Regime::Sustained => self.sustained_us,
            Regime::Wall => None,
        }
    }

    /// The standard error of [`Self::time_us`], relative to it.
    pub fn time_error(&self, regime: Regime) -> Option<f64> {
        match regime {
            Regime::Cold => self.cold_error,
            Regime::Sustained => self.sustained_error,
            Regime::Wall => None,
        }
    }

    /// Whether `rule` picks the row's order.
    pub fn is_picked_by(&self, rule: &str) -> bool {
        self.picked_by.split('+').any(|name| name == rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_csv() {
        let row = StudyRow {
            device: "GPU".to_owned(),
            m: 8192,
            picked_by: "chooser+cutlass".to_owned(),
            cold_us: Some(12.5),
            ..StudyRow::default()
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(&row).unwrap();
        let text = writer.into_inner().unwrap();
        let read: Vec<StudyRow> = csv::Reader::from_reader(text.as_slice())
            .deserialize()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(read, [row]);
    }

    #[test]
    fn columns_of_what_was_not_measured_may_be_missing() {
        let text = "device,driver,date,m,n,k,dtype,layout,kernel,block_m,block_n,block_k,cluster,order,schedule,picked_by,fitted,cold_us\n\
                    GPU,580,2026-11-21,1,2,3,f16,nn,x,128,256,64,,row,persistent,,false,4.5\n";
        let row: StudyRow = csv::Reader::from_reader(text.as_bytes())
            .deserialize()
            .next()
            .unwrap()
            .unwrap();
        assert_eq!((row.n, row.cold_us, row.sustained_us), (2, Some(4.5), None));
    }
}
