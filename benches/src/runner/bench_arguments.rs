//! The options of `bench`.

use crate::measure::machine::DeviceChoice;
use crate::measure::regime::Regime;
use crate::measure::watch::{WaitArgs, seconds};
use crate::problem::names::{self, KernelChoice};
use crate::problem::shape::{BlasLayout, GemmShape};
use crate::problem::spec::{self, ProblemSpec};
use crate::problem::suite::Suite;
use clap::{ArgGroup, Args, FromArgMatches as _};
use gpu_kernels::{DType, OutputType, Schedule, TileOrder};
use std::path::PathBuf;
use std::time::Duration;
use tilewise::Tuner;

/// The group of the flags that measure the library's choice and nothing else.
const ONLY_CHOICE: &str = "only_choice";

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(ONLY_CHOICE).multiple(true))]
pub struct BenchArgs {
    /// Shapes, MxNxK or one number for a cube, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub shapes: Vec<GemmShape>,

    /// A named list of problems, measured with nothing forced and summed up at the end:
    /// hopper; transformer, linear layers at 1 to 8192 tokens; random:SEED:COUNT, dimensions
    /// log-uniform from 64 to 16384, any layout, f16 and bf16; sweep:SEED:COUNT, dimensions from
    /// 1 on, and linear layers at 1 to 512 tokens. --dtypes and --layouts select a part of it.
    #[arg(
        long,
        value_name = "NAME",
        group = ONLY_CHOICE,
        conflicts_with_all = ["shapes", "kernels", "orders", "schedules"]
    )]
    pub suite: Option<Suite>,

    /// Measure the library's own choice of kernel, order and schedule only, as a
    /// suite does, and sum up at the end.
    #[arg(long, group = ONLY_CHOICE, conflicts_with_all = ["kernels", "orders", "schedules"])]
    pub choice: bool,

    /// Also in a suite and with --choice, time the library's choice against row-major order
    /// by the same kernel and schedule. Without them, both are timed whenever nothing is
    /// forced.
    #[arg(long, requires = ONLY_CHOICE)]
    pub row_major: bool,

    /// Also in a suite and with --choice, measure Triton. Without them, it is measured
    /// wherever it is installed.
    #[arg(long, requires = ONLY_CHOICE, conflicts_with = "no_peers")]
    pub triton: bool,

    /// Beside the library's choice, measure every kernel for tensor cores that can run, each in
    /// the order and under the schedule that the library gives it; in the sustained regime,
    /// the dozen that are fastest cold.
    #[arg(long, requires = ONLY_CHOICE, conflicts_with_all = ["kernels", "row_major"])]
    pub every_kernel: bool,

    /// Of --every-kernel, measure so many of those that the library expects to be fastest.
    /// [default: all]
    #[arg(long, requires = "every_kernel", value_name = "COUNT")]
    pub fastest_expected: Option<usize>,

    /// Types of A and B: f16, bf16, tf32, f16x3, f32. [default: the suite's, else f16]
    #[arg(long, value_delimiter = ',', value_parser = names::parse_dtype)]
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

    /// Schedules: grid2d, grid1d, persistent; stream-k, split-k (hopper only).
    /// [default: persistent against grid1d]
    #[arg(long, value_delimiter = ',', value_parser = names::parse_schedule)]
    pub schedules: Vec<Schedule>,

    /// Beside what the library chooses for a kernel of --every-kernel, also measure these numbers of
    /// classes of lines: 1 (none), 2, 4, 8.
    #[arg(long, value_delimiter = ',', requires = "every_kernel")]
    pub line_classes: Vec<u32>,

    /// Storage of A and B, each n (row-major) or t (its transpose is
    /// row-major): nn, nt, tn, tt. [default: the suite's, else nn]
    #[arg(long, value_delimiter = ',')]
    pub layouts: Vec<BlasLayout>,

    /// Type of C: input (as A and B) or f32.
    #[arg(long, value_parser = names::parse_output, default_value = "input")]
    pub output: OutputType,

    /// Regimes to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cold,sustained"
    )]
    pub regimes: Vec<Regime>,

    /// Seconds of launches of each candidate in the sustained regime.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub sustain: Duration,

    /// Seed of the inputs, and of the order in which candidates take turns.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,

    /// Also measure the library's choice for batch-invariant results, whose sums may not depend
    /// on M and N, and how fast it is beside the free choice.
    #[arg(long)]
    pub batch_invariant: bool,

    /// Also measure the plan of the library's tuner, and how much slower the choice without
    /// it is. The tuner times launches of its own; the tables do not show them.
    #[arg(long, conflicts_with = "ncu")]
    pub tune: bool,

    /// Seconds that the tuner may measure each problem.
    #[arg(long, default_value = "1", value_parser = seconds, requires = "tune")]
    pub tune_budget: Duration,

    /// File that the tuner remembers its results in. [default: the library's]
    #[arg(long, requires = "tune")]
    pub tune_cache: Option<PathBuf>,

    /// Measure neither cuBLASLt nor Triton.
    #[arg(long)]
    pub no_peers: bool,

    /// Path of libcublasLt; it goes before $TILEWISE_CUBLASLT and the usual places.
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

    /// Measure small shapes with few samples, to check that everything runs.
    #[arg(long)]
    pub smoke: bool,
}

impl Default for BenchArgs {
    /// What `bench` measures without an option.
    fn default() -> Self {
        let command = BenchArgs::augment_args(clap::Command::new("bench"));
        BenchArgs::from_arg_matches(&command.get_matches_from(["bench"]))
            .expect("every option has a default")
    }
}

impl BenchArgs {
    /// The types that were given, else the suite's, else f16.
    pub fn dtypes(&self) -> Vec<DType> {
        let default = self.suite.as_ref().map_or(&[DType::F16][..], Suite::dtypes);
        given_or(&self.dtypes, default)
    }

    /// The layouts that were given, else the suite's, else `nn`.
    pub fn layouts(&self) -> Vec<BlasLayout> {
        let default = (self.suite.as_ref()).map_or(&[BlasLayout::NN][..], Suite::layouts);
        given_or(&self.layouts, default)
    }

    /// The suite's problems, or the shapes asked for, or the default list, in the order of
    /// measuring. In a smoke run, few of the suite's, and `small` for the default list.
    pub fn problems(&self, small: &[GemmShape]) -> Vec<ProblemSpec> {
        if let Some(suite) = &self.suite {
            return suite.problems(&self.dtypes(), &self.layouts(), self.output, self.smoke);
        }
        self.problems_at(match (self.shapes.as_slice(), self.smoke) {
            ([], true) => small,
            ([], false) => &GemmShape::DEFAULT,
            (shapes, _) => shapes,
        })
    }

    /// `shapes` in every type and layout.
    pub fn problems_at(&self, shapes: &[GemmShape]) -> Vec<ProblemSpec> {
        spec::problems(&self.dtypes(), &self.layouts(), self.output, shapes)
    }

    /// Whether the library's choice alone is measured.
    pub fn only_choice(&self) -> bool {
        self.choice || self.suite.is_some()
    }

    /// Whether kernel, order and schedule are left to the library.
    pub fn forces_nothing(&self) -> bool {
        self.kernels.is_empty() && self.orders.is_empty() && self.schedules.is_empty()
    }

    /// Whether row-major order is timed beside the library's choice.
    pub fn compares_choice(&self) -> bool {
        self.forces_nothing() && (self.row_major || !self.only_choice())
    }

    /// Whether Triton is to be measured, if it is there.
    pub fn wants_triton(&self) -> bool {
        !self.no_peers && (self.triton || !self.only_choice())
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

    /// Time for the samples of each candidate in the cold regime, and on the CPU.
    pub fn single_samples(&self) -> Duration {
        match self.smoke {
            true => Duration::ZERO,
            false => Duration::from_millis(250),
        }
    }

    fn shortened(&self, time: Duration) -> Duration {
        match self.smoke {
            true => time.min(Duration::from_millis(50)),
            false => time,
        }
    }
}

/// What was given, or `default` where nothing was.
fn given_or<T: Clone>(given: &[T], default: &[T]) -> Vec<T> {
    if given.is_empty() { default } else { given }.to_vec()
}

#[cfg(test)]
mod tests;
