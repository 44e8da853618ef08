//! The options of `bench`.

use super::{DeviceChoice, seconds};
use crate::choice::{self, KernelChoice};
use crate::shape::{Layout, Shape};
use crate::suite::{self, Suite};
use crate::watch::WaitArgs;
use clap::{Args, ValueEnum};
use gpu_kernels::{DType, OutputType, Schedule, TileOrder};
use std::path::PathBuf;
use std::time::Duration;
use tilewise::Tuner;

/// A regime to measure; see [`crate::regime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RegimeChoice {
    /// L2 overwritten before each launch.
    Cold,
    /// Back to back until clocks and power settle.
    Sustained,
}

/// Options of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Shapes, MxNxK or one number for a cube, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub shapes: Vec<Shape>,

    /// A list of problems by name (hopper), measured with nothing forced and
    /// summed up at the end; --dtypes and --layouts measure a part of it.
    #[arg(
        long,
        value_parser = suite::parse,
        conflicts_with_all = ["shapes", "kernels", "orders", "schedules"]
    )]
    pub suite: Option<&'static Suite>,

    /// In a suite too, time the library's choice against row-major order, same
    /// kernel and schedule; it is done otherwise, where nothing is forced.
    #[arg(long, requires = "suite")]
    pub row_major: bool,

    /// Measure Triton in a suite too; it is measured otherwise, if there.
    #[arg(long, requires = "suite", conflicts_with = "no_peers")]
    pub triton: bool,

    /// Types of A and B: f16, bf16, tf32, f32. [default: the suite's, else f16]
    #[arg(long, value_delimiter = ',', value_parser = choice::parse_dtype)]
    pub dtypes: Vec<DType>,

    /// Families (naive, tiled, tensor_core, hopper) or entry points.
    /// [default: the families made for the type]
    #[arg(long, value_delimiter = ',')]
    pub kernels: Vec<KernelChoice>,

    /// Tile orders: row, col, grouped:SIZE, groupedn:SIZE, serpentine:SIZE,
    /// serpentinen:SIZE, morton, hilbert.
    /// [default: row-major against the library's choice]
    #[arg(long, value_delimiter = ',')]
    pub orders: Vec<TileOrder>,

    /// Schedules: grid2d, grid1d, persistent, stream-k (hopper only).
    /// [default: persistent against grid1d]
    #[arg(long, value_delimiter = ',', value_parser = choice::parse_schedule)]
    pub schedules: Vec<Schedule>,

    /// Storage of A and B, each n (row-major) or t (its transpose is
    /// row-major): nn, nt, tn, tt. [default: all in a suite, else nn]
    #[arg(long, value_delimiter = ',')]
    pub layouts: Vec<Layout>,

    /// Type of C: input (as A and B) or f32.
    #[arg(long, value_parser = choice::parse_output, default_value = "input")]
    pub output: OutputType,

    /// Regimes to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cold,sustained"
    )]
    pub regimes: Vec<RegimeChoice>,

    /// Seconds of launches of each candidate in the sustained regime.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub sustain: Duration,

    /// Seed of the inputs, and of the order in which candidates take turns.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,

    /// Also measure what the library's tuner finds, and what the choice without
    /// it loses. Its times are not those of the tables: it has its own launches.
    #[arg(long, conflicts_with = "ncu")]
    pub tune: bool,

    /// Seconds that the tuner may measure each problem.
    #[arg(long, default_value = "1", value_parser = seconds, requires = "tune")]
    pub tune_budget: Duration,

    /// File of what the tuner remembers. [default: the library's]
    #[arg(long, requires = "tune")]
    pub tune_cache: Option<PathBuf>,

    /// Measure neither cuBLASLt nor Triton.
    #[arg(long)]
    pub no_peers: bool,

    /// Path of libcublasLt; asked for before $TILEWISE_CUBLASLT and the usual places.
    #[arg(long)]
    pub cublaslt: Option<PathBuf>,

    /// Python that has Triton and PyTorch.
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// Write the records as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,

    /// Write the records as CSV.
    #[arg(long)]
    pub csv: Option<PathBuf>,

    /// Write a page with the records, and an explorer of tile orders, as one HTML file.
    #[arg(long, conflicts_with = "ncu")]
    pub html: Option<PathBuf>,

    /// Launch every candidate once, in a printed order, and time nothing: for
    /// profilers such as Nsight Compute.
    #[arg(long)]
    pub ncu: bool,

    /// Where to run. [default: the first GPU, else the CPU]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,

    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,

    /// Small shapes and few samples: does everything still run?
    #[arg(long)]
    pub smoke: bool,
}

impl BenchArgs {
    /// Types asked for, the suite's, or f16.
    pub fn dtypes(&self) -> Vec<DType> {
        match (self.dtypes.as_slice(), self.suite) {
            ([], Some(suite)) => suite.dtypes.to_vec(),
            ([], None) => vec![DType::F16],
            (dtypes, _) => dtypes.to_vec(),
        }
    }

    /// Layouts asked for, all of them in a suite, or `nn`.
    pub fn layouts(&self) -> Vec<Layout> {
        match (self.layouts.as_slice(), self.suite) {
            ([], Some(_)) => Layout::ALL.to_vec(),
            ([], None) => vec![Layout::NN],
            (layouts, _) => layouts.to_vec(),
        }
    }

    /// Shapes asked for, the suite's, or the default list; `small` in a smoke
    /// run without a suite.
    pub fn shapes(&self, small: &[Shape]) -> Vec<Shape> {
        match (self.suite, self.shapes.as_slice(), self.smoke) {
            (Some(suite), _, true) => suite.smoke_shapes(),
            (Some(suite), _, false) => suite.shapes(),
            (None, [], true) => small.to_vec(),
            (None, [], false) => Shape::DEFAULT.to_vec(),
            (None, shapes, _) => shapes.to_vec(),
        }
    }

    /// Whether kernel, order and schedule are left to the library.
    pub fn forces_nothing(&self) -> bool {
        self.kernels.is_empty() && self.orders.is_empty() && self.schedules.is_empty()
    }

    /// Whether row-major order is timed beside the library's choice.
    pub fn compares_choice(&self) -> bool {
        self.forces_nothing() && (self.row_major || self.suite.is_none())
    }

    /// Whether Triton is to be measured, if it is there.
    pub fn wants_triton(&self) -> bool {
        !self.no_peers && (self.triton || self.suite.is_none())
    }

    /// Launches of each candidate in the sustained regime; short in a smoke run.
    pub fn sustain(&self) -> Duration {
        self.shortened(self.sustain)
    }

    /// The tuner asked for; in a smoke run it is quick.
    pub fn tuner(&self) -> Option<Tuner> {
        let tuner = || match &self.tune_cache {
            Some(file) => Tuner::with_cache_file(file),
            None => Tuner::new(),
        };
        let budget = self.shortened(self.tune_budget);
        self.tune.then(|| self.wait.limited(tuner().budget(budget)))
    }

    fn shortened(&self, time: Duration) -> Duration {
        match self.smoke {
            true => time.min(Duration::from_millis(50)),
            false => time,
        }
    }
}

#[cfg(test)]
mod tests;
