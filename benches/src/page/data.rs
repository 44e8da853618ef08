//! What a page is given.

use gpu_kernels::Block;
use serde::{Deserialize, Serialize};
use tilewise::l2::Limit;
use tilewise::l2::gpu::GPUS;

use crate::comparison::{self, Comparison};
use crate::record::Record;
use crate::study::groups;
use crate::study::regret::{self, RuleRegret};

/// One product with one kernel in one order: measured, and predicted.
///
/// Flat, so that it is a CSV row too: `docs/study/*.csv` has these columns. What was
/// not measured, or not predicted, is `None`: an empty cell, or no column at all.
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
    /// See [`crate::shape::Layout`].
    pub layout: String,

    /// Entry point.
    pub kernel: String,
    /// Rows of the CTA tile.
    pub block_m: u32,
    /// Columns of the CTA tile.
    pub block_n: u32,
    /// Depth of a step along K.
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

/// All that a page shows.
#[derive(Clone, Debug, Serialize)]
pub struct PageData {
    /// The names of what the explorer's model answers, in its order.
    pub figures: &'static [&'static str],
    /// What can bind the time, in the order of the figure `bound_by`.
    pub limits: [&'static str; 3],
    /// The model's GPUs, in the order of its table.
    pub gpus: Vec<GpuChoice>,
    /// Where the explorer's controls stand at first.
    pub start: Start,
    /// The study; the page has no such section without.
    pub study: Vec<StudyRow>,
    /// What rules for the order lose in the study.
    pub regrets: Vec<RuleRegret>,
    /// The benchmark's records; the page has no such section without.
    pub records: Vec<Record>,
    /// Row-major order against another order, as far as the records say.
    pub comparisons: Vec<Comparison>,
}

impl Default for PageData {
    fn default() -> Self {
        let gpu = |gpu: &tilewise::l2::gpu::Gpu| GpuChoice {
            name: gpu.name,
            sms: gpu.sms,
        };
        PageData {
            figures: &tilewise_explorer::FIGURES,
            limits: tilewise_explorer::LIMITS.map(Limit::name),
            gpus: GPUS.iter().map(gpu).collect(),
            start: Start::default(),
            study: Vec::new(),
            regrets: Vec::new(),
            records: Vec::new(),
            comparisons: Vec::new(),
        }
    }
}

impl PageData {
    /// With these rows of the study.
    pub fn with_study(self, rows: Vec<StudyRow>) -> Self {
        PageData {
            regrets: regret::regrets(&groups::groups(&rows)),
            study: rows,
            ..self
        }
    }

    /// With these records of a benchmark.
    pub fn with_records(self, records: Vec<Record>) -> Self {
        PageData {
            comparisons: comparison::comparisons(&records),
            records,
            ..self
        }
    }
}

/// A GPU that the explorer offers.
#[derive(Clone, Debug, Serialize)]
pub struct GpuChoice {
    /// As on the command line.
    pub name: &'static str,
    /// Its SMs.
    pub sms: u32,
}

/// Settings of the explorer's controls.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// CTA tile, `MxN`.
    pub tile: String,
    /// Depth of a step along K.
    pub block_k: u32,
    /// Bytes of an element of A, B and C.
    pub element_bytes: u32,
    /// Tile order, by its name on the command line.
    pub order: String,
    /// Place of the GPU in [`GPUS`].
    pub gpu: usize,
    /// SMs; with more CTAs than one on each, CTAs.
    pub sms: u32,
}

impl Start {
    /// A CTA tile as [`Self::tile`] and [`Self::block_k`] have it.
    pub fn set_tile(&mut self, block: Block) {
        self.tile = format!("{}x{}", block.m, block.n);
        self.block_k = block.k;
    }
}

impl Default for Start {
    /// A wide product in f16 on the first GPU of the table, in the order that Triton's
    /// tutorial has.
    fn default() -> Self {
        Start {
            m: 4096,
            n: 8192,
            k: 4096,
            tile: "128x256".to_owned(),
            block_k: 64,
            element_bytes: 2,
            order: "grouped:8".to_owned(),
            gpu: 0,
            sms: GPUS[0].sms,
        }
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
