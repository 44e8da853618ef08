//! The data of a page.

use crate::measure::regime::Regime;
use crate::records::comparison::{Comparison, comparisons};
use crate::records::record::Record;
use crate::study::groups::groups;
use crate::study::row::StudyRow;
use crate::study::rules::{RuleRegret, regrets};
use crate::sweep::outcome::{Outcome, Summary, outcomes, summaries};
use crate::sweep::row::SweepRow;
use serde::Serialize;
use tilewise::l2::Limit;
use tilewise::l2::gpu::GPUS;

/// Everything that a page shows.
#[derive(Clone, Debug, Serialize)]
pub struct PageData {
    /// The names of the figures of the explorer's model, in its order.
    pub figures: &'static [&'static str],
    /// The limits that can bind the time, in the order of the figure `bound_by`.
    pub limits: [&'static str; 3],
    /// The model's GPUs, in the order of its table.
    pub gpus: Vec<GpuChoice>,
    /// The initial settings of the explorer's controls.
    pub start: Start,
    /// The study; without rows the page has no such section.
    pub study: Vec<StudyRow>,
    /// What rules for the order lose in the study.
    pub regrets: Vec<RuleRegret>,
    /// The problems of the sweep, in both regimes; without them the page has no such section.
    pub sweep: Vec<Outcome>,
    /// Figures of groups of these problems.
    pub sweep_summaries: Vec<Summary>,
    /// The benchmark's records; without records the page has no such section.
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
            sweep: Vec::new(),
            sweep_summaries: Vec::new(),
            records: Vec::new(),
            comparisons: Vec::new(),
        }
    }
}

impl PageData {
    /// With these rows of the study.
    pub fn with_study(self, rows: Vec<StudyRow>) -> Self {
        PageData {
            regrets: regrets(&groups(&rows)),
            study: rows,
            ..self
        }
    }

    /// With these rows of the sweep, judged by the rule of this build.
    ///
    /// # Errors
    /// A row names no problem.
    pub fn with_sweep(mut self, rows: &[SweepRow]) -> Result<Self, String> {
        for regime in [Regime::Cold, Regime::Sustained] {
            if let Some((outcomes, _)) = outcomes(rows, regime)? {
                self.sweep_summaries.extend(summaries(&outcomes));
                self.sweep.extend(outcomes);
            }
        }
        Ok(self)
    }

    /// With these records of a benchmark.
    pub fn with_records(self, records: Vec<Record>) -> Self {
        PageData {
            comparisons: comparisons(&records),
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
    /// BLOCK_K: depth of a k-block.
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
