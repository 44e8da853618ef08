//! The command line.

use crate::choice::{self, KernelChoice};
use crate::order::OrderArgs;
use crate::page::PageArgs;
use crate::shape::{Layout, Shape};
use crate::study::StudyArgs;
use crate::suite::{self, Suite};
use crate::watch::WaitArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gpu_kernels::{DType, OutputType, Schedule, TileOrder};
use std::path::PathBuf;
use std::time::Duration;
use tilewise::Tuner;

/// Measures tilewise, or multiplies two files with it.
#[derive(Debug, Parser)]
#[command(name = "tilewise-bench", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What this program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare kernels, tile orders and schedules with each other, with
    /// cuBLASLt and with Triton.
    Bench(Box<BenchArgs>),
    /// Time a launch on the host, against the driver's bare launch of the same
    /// kernel.
    HostCost(HostCostArgs),
    /// Draw the order of tiles, and print what the model says of it.
    Order(OrderArgs),
    /// Write the HTML page from files: rows of the study, records of a benchmark.
    Page(PageArgs),
    /// Measure tile orders against each other and against the model of L2.
    Study(Box<StudyArgs>),
    /// C = A·B for .npy files.
    Matmul(MatmulArgs),
}

/// Where to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The first GPU; an error without one.
    Gpu,
    /// The library's CPU device.
    Cpu,
}

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

/// Options of `host-cost`.
#[derive(Debug, Args)]
pub struct HostCostArgs {
    /// The f16 problem; small, so that the GPU keeps up with the host.
    #[arg(long, default_value = "128x128x128")]
    pub shape: Shape,
    /// Family or entry point. [default: chosen by the library]
    #[arg(long)]
    pub kernel: Option<KernelChoice>,
    /// Timed launches of each.
    #[arg(long, default_value_t = 10_000)]
    pub launches: usize,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Seed of the inputs, and of the order of launches.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// Options of `matmul`.
#[derive(Debug, Args)]
pub struct MatmulArgs {
    /// A, M×K: f32 or f16, in C or Fortran order.
    pub a: PathBuf,
    /// B, K×N, of the same type.
    pub b: PathBuf,
    /// Where to write C, M×N, in the type of A and B and in C order.
    #[arg(long)]
    pub out: PathBuf,
    /// Where to multiply. [default: the first GPU, else the CPU]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,
    /// Family or entry point. [default: chosen by the library]
    #[arg(long)]
    pub kernel: Option<KernelChoice>,
    /// Tile order. [default: chosen by the library]
    #[arg(long)]
    pub order: Option<TileOrder>,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Files of 16-bit unsigned integers hold bfloat16; write C so too.
    #[arg(long)]
    pub bf16: bool,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("'{text}' is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::Path;

    fn bench(arguments: &[&str]) -> Result<BenchArgs, String> {
        let all = ["tilewise-bench", "bench"].iter().chain(arguments);
        match Cli::try_parse_from(all)
            .map_err(|error| error.to_string())?
            .command
        {
            Command::Bench(args) => Ok(*args),
            other => unreachable!("the arguments say bench, not {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        let args = bench(&[]).unwrap();
        assert_eq!(args.dtypes(), [DType::F16]);
        assert_eq!(args.layouts(), [Layout::NN]);
        assert_eq!(args.shapes(&[]), Shape::DEFAULT);
        assert!(args.wants_triton());
        assert_eq!(args.regimes, [RegimeChoice::Cold, RegimeChoice::Sustained]);
        assert_eq!(args.sustain, Duration::from_secs(1));
        assert!(args.shapes.is_empty() && args.forces_nothing());
    }

    #[test]
    fn lists_are_split_at_commas() {
        let args = bench(&[
            "--shapes=64x32x16,128",
            "--dtypes=bf16,f32",
            "--orders=row,grouped:4",
            "--schedules=grid1d,persistent",
            "--layouts=nt,tn",
            "--regimes=cold",
            "--sustain=0.25",
            "--wait-limit=2.5",
        ])
        .unwrap();
        assert_eq!(
            args.shapes,
            [Shape::new(64, 32, 16), Shape::new(128, 128, 128)]
        );
        assert_eq!(args.dtypes, [DType::Bf16, DType::F32]);
        assert_eq!(
            args.orders,
            [TileOrder::RowMajor, TileOrder::GroupedM { size: 4 }]
        );
        assert_eq!(args.schedules, [Schedule::Grid1d, Schedule::Persistent]);
        assert!(!args.forces_nothing());
        assert_eq!(args.regimes, [RegimeChoice::Cold]);
        assert_eq!(args.sustain, Duration::from_millis(250));
        assert_eq!(args.wait.wait_limit, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_suite_is_measured_whole_or_in_part() {
        let whole = bench(&["--suite=hopper"]).unwrap();
        assert_eq!(whole.dtypes(), [DType::F16, DType::Bf16]);
        assert_eq!(whole.layouts(), Layout::ALL);
        assert_eq!(whole.shapes(&[]), suite::HOPPER.shapes());
        assert!(!whole.wants_triton());
        let part = bench(&[
            "--suite=hopper",
            "--layouts=nn",
            "--dtypes=f16",
            "--triton",
            "--smoke",
        ])
        .unwrap();
        assert_eq!(part.dtypes(), [DType::F16]);
        assert_eq!(part.layouts(), [Layout::NN]);
        assert_eq!(part.shapes(&[]), suite::HOPPER.smoke_shapes());
        assert!(part.wants_triton());
    }

    #[test]
    fn a_suite_forces_nothing() {
        for forced in [
            "--kernels=hopper",
            "--orders=row",
            "--schedules=grid1d",
            "--shapes=64",
        ] {
            let message = bench(&["--suite=hopper", forced]).unwrap_err();
            assert!(message.contains("cannot be used with"), "{message}");
        }
        let message = bench(&["--triton"]).unwrap_err();
        assert!(message.contains("--suite"), "{message}");
    }

    #[test]
    fn tuning_is_asked_for() {
        assert!(bench(&[]).unwrap().tuner().is_none());
        let args = bench(&["--tune", "--tune-budget=0.5", "--tune-cache=here.json"]).unwrap();
        assert_eq!(args.tune_budget, Duration::from_millis(500));
        let tuner = args.tuner().unwrap();
        assert_eq!(tuner.cache_file(), Some(Path::new("here.json")));
        for arguments in [["--tune-cache=here.json"].as_slice(), &["--tune", "--ncu"]] {
            assert!(bench(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn wrong_values_name_what_is_accepted() {
        for (argument, expected) in [
            ("--orders=zigzag", "grouped:SIZE"),
            ("--dtypes=f8", "bf16"),
            ("--shapes=4x4", "MxNxK"),
            ("--sustain=-1", "seconds"),
            ("--wait-limit=0", "more than 0"),
            ("--kernels=fast", "tensor_core"),
            ("--suite=volta", "hopper"),
        ] {
            let message = bench(&[argument]).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
