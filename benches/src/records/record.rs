//! One measurement, with everything that is needed to judge it.
//!
//! Flat, so that the same fields are a JSON object and a CSV row. Each record names its
//! machine, data and regime, so that a row means the same outside of its table.

use crate::candidates::candidate::{Label, TILEWISE, is_cublaslt, launch_name};
use crate::measure::inputs::DATA;
use crate::measure::machine::Machine;
use crate::measure::peak::peak_tflops;
use crate::measure::regime::Regime;
use crate::measure::stats::{Quartiles, paired_ratios};
use crate::problem::names::output_name;
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Row-major order in [`Record::order`], as [`TileOrder`](gpu_kernels::TileOrder) writes it.
pub const ROW_MAJOR: &str = "row";

/// The outcome of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its result was checked, then it was timed.
    #[default]
    Timed,
    /// Its result was wrong; it was not timed.
    Wrong,
    /// It cannot run this problem; `note` says why.
    Skipped,
    /// It was not run: the figures are those of the model.
    Modelled,
}

/// One candidate on one problem in one regime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the GPU or CPU.
    pub device: String,
    /// CUDA version of the driver; empty on a CPU.
    pub driver: String,
    /// Such as `9.0`; empty on a CPU.
    pub compute_capability: String,
    /// SMs of the GPU.
    pub sms: Option<u32>,
    /// Which code generator made the kernels, and its version.
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
    /// See [`crate::problem::shape::BlasLayout`].
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
    /// Number of classes of lines, where there is more than one
    /// ([`gpu_kernels::kernels::hopper::line_classes`]).
    #[serde(default)]
    pub line_classes: Option<u32>,

    /// How launches follow each other.
    pub regime: Regime,
    /// Products in a CUDA graph, where they were launched from one: sustained and short (see
    /// [`crate::measure::batch`]). Unknown for Triton, whose script always launches from
    /// graphs.
    pub products_per_graph: Option<usize>,
    /// Timed in the same process, interleaved with its group.
    pub interleaved: bool,
    /// The outcome.
    pub status: Status,
    /// Why the candidate was skipped, how its result was wrong, whether a tuned plan was
    /// measured in this run, or why the launches could not be captured into a graph.
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
    /// Time of one product free of the drift between rounds, ms; see
    /// [`crate::measure::stats::levelled`]. `None` where it was not timed in rounds.
    pub levelled_ms: Option<f64>,
    /// Its standard error, relative to it.
    pub levelled_error: Option<f64>,
    /// 2·M·N·K over the median.
    pub tflops: Option<f64>,
    /// Peak used; see [`crate::measure::peak`].
    pub peak_tflops: Option<f64>,
    /// `tflops` over `peak_tflops`.
    pub share_of_peak: Option<f64>,
    /// How much faster than row-major with the same kernel and schedule: ratio
    /// of medians.
    pub speedup_over_row_major: Option<f64>,
    /// How much faster than cuBLASLt: ratio of medians.
    pub speedup_over_cublaslt: Option<f64>,
    /// How much faster than cuBLASLt in the same round: median over the rounds.
    /// `None` where the times do not pair up.
    pub paired_over_cublaslt: Option<f64>,
    /// First quartile of the ratios within a round.
    pub paired_over_cublaslt_q1: Option<f64>,
    /// Third quartile of the ratios within a round.
    pub paired_over_cublaslt_q3: Option<f64>,
    /// Bytes from and to DRAM by the model of [`tilewise::l2`], GB.
    pub modelled_dram_gb: Option<f64>,
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
    /// A record of `label` on `problem`, without times.
    pub fn new(
        machine: &Machine,
        problem: ProblemSpec,
        label: &Label,
        regime: Regime,
        seed: u64,
    ) -> Self {
        let ProblemSpec {
            shape,
            layout,
            dtype,
            output,
        } = problem;
        Record {
            device: machine.device.clone(),
            driver: machine.driver.clone(),
            compute_capability: machine.compute_capability.clone(),
            sms: machine.chip.map(|chip| chip.sms),
            toolchain: machine.toolchain.clone(),
            m: shape.m,
            n: shape.n,
            k: shape.k,
            dtype: dtype.name().to_owned(),
            output: output_name(dtype, output).to_owned(),
            layout: layout.to_string(),
            data: DATA.to_owned(),
            seed,
            implementation: label.implementation.clone(),
            kernel: label.kernel.clone(),
            order: label.order.clone(),
            schedule: label.schedule.clone(),
            ctas: label.ctas,
            line_classes: label.line_classes,
            regime,
            interleaved: true,
            note: label.note.clone(),
            peak_tflops: machine.chip.and_then(|chip| peak_tflops(chip, dtype)),
            ..Record::default()
        }
    }

    /// Adds to the note.
    pub fn add_note(&mut self, note: &str) {
        if !self.note.is_empty() {
            self.note += "; ";
        }
        self.note += note;
    }

    /// Fills in the figures that follow from the times of one product.
    pub fn set_times(&mut self, milliseconds: &[f64]) {
        self.samples = milliseconds.len();
        let Some(quartiles) = Quartiles::of(milliseconds) else {
            return;
        };
        let tflops = self.shape().tflops(quartiles.median);
        self.median_ms = Some(quartiles.median);
        self.q1_ms = Some(quartiles.q1);
        self.q3_ms = Some(quartiles.q3);
        self.tflops = Some(tflops);
        self.share_of_peak = self.peak_tflops.map(|peak| tflops / peak);
    }

    /// Fills in the paired ratios, from this record's times and cuBLASLt's in
    /// the same rounds.
    pub fn set_pairs(&mut self, cublaslt: &[f64], milliseconds: &[f64]) {
        let ratios = paired_ratios(cublaslt, milliseconds);
        self.paired_over_cublaslt = ratios.map(|ratios| ratios.median);
        self.paired_over_cublaslt_q1 = ratios.map(|ratios| ratios.q1);
        self.paired_over_cublaslt_q3 = ratios.map(|ratios| ratios.q3);
    }

    /// How much faster than cuBLASLt: paired where there are pairs, else the
    /// ratio of medians.
    pub fn over_cublaslt(&self) -> Option<f64> {
        self.paired_over_cublaslt.or(self.speedup_over_cublaslt)
    }

    /// The problem's sizes.
    pub fn shape(&self) -> GemmShape {
        GemmShape::new(self.m, self.n, self.k)
    }

    /// Whether two records measure the same problem.
    pub fn same_problem(&self, other: &Record) -> bool {
        self.shape() == other.shape()
            && self.dtype == other.dtype
            && self.output == other.output
            && self.layout == other.layout
    }

    /// Whether the record measures `problem`.
    pub fn is_of(&self, problem: &ProblemSpec) -> bool {
        self.shape() == problem.shape
            && self.dtype == problem.dtype.name()
            && self.output == output_name(problem.dtype, problem.output)
            && self.layout == problem.layout.to_string()
    }

    /// Implementation, kernel, order and schedule, as tables and messages name them.
    pub fn launch_name(&self) -> String {
        launch_name(
            &self.implementation,
            &self.kernel,
            &self.order,
            &self.schedule,
        )
    }

    /// Whether the record is cuBLASLt's.
    pub fn is_cublaslt(&self) -> bool {
        is_cublaslt(&self.implementation)
    }

    /// Whether the record is tilewise's, forced or chosen.
    pub fn is_tilewise(&self) -> bool {
        self.implementation.starts_with(TILEWISE)
    }

    /// Whether the record is of the kernel and the schedule of `other`, in row-major order.
    pub fn is_row_major_of(&self, other: &Record) -> bool {
        self.is_tilewise()
            && other.is_tilewise()
            && self.same_problem(other)
            && self.order == ROW_MAJOR
            && !other.order.is_empty()
            && self.kernel == other.kernel
            && self.schedule == other.schedule
    }
}

/// Fills in both speedups, from the medians of records of the same problem and
/// regime.
pub fn fill_speedups(records: &mut [Record]) {
    let mut groups: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let (shape, regime) = (record.shape(), record.regime);
        let types = (record.dtype.clone(), record.output.clone());
        let key = (shape, types, record.layout.clone(), regime);
        groups.entry(key).or_default().push(at);
    }
    for group in groups.values() {
        let time_of = |is_base: &dyn Fn(&Record) -> bool| {
            let mut members = group.iter().map(|&at| &records[at]);
            members.find(|base| is_base(base))?.median_ms
        };
        let cublaslt = time_of(&Record::is_cublaslt);
        let speedups: Vec<_> = group
            .iter()
            .map(|&at| {
                let record = &records[at];
                let row_major = time_of(&|base| base.is_row_major_of(record));
                let over = |base: Option<f64>| Some(base? / record.median_ms?);
                (at, over(row_major), over(cublaslt))
            })
            .collect();
        for (at, row_major, cublaslt) in speedups {
            records[at].speedup_over_row_major = row_major;
            records[at].speedup_over_cublaslt = cublaslt;
        }
    }
}

/// Records grouped by problem; groups and members keep their first order.
pub fn by_problem(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        let same = |group: &&mut Vec<&Record>| group[0].same_problem(record);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups
}

#[cfg(test)]
pub(crate) mod tests;
