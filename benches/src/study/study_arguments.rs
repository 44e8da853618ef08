//! The options of `study`.

use crate::measure::watch::{WaitArgs, seconds};
use crate::problem::names::{KernelChoice, parse_schedule};
use crate::problem::shape::GemmShape;
use clap::Args;
use gpu_kernels::{Schedule, TileOrder};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `study`.
#[derive(Clone, Debug, Args)]
pub struct StudyArgs {
    /// Shapes, MxNxK or one number for a cube, separated by commas. [default: 16 shapes of all kinds]
    #[arg(long, value_delimiter = ',')]
    pub shapes: Vec<GemmShape>,
    /// Entry points, separated by commas.
    /// [default: hopper_f16_ak_bn_128x256x64,hopper_f16_ak_bn_128x128x64]
    #[arg(long, value_delimiter = ',')]
    pub kernels: Vec<KernelChoice>,
    /// Tile orders, as `bench` has them; the choices of the library and of CUTLASS are
    /// measured too. [default: 12 orders of all kinds]
    #[arg(long, value_delimiter = ',')]
    pub orders: Vec<TileOrder>,
    /// Schedules.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = parse_schedule,
        default_value = "grid1d"
    )]
    pub schedules: Vec<Schedule>,
    /// Seconds of launches of each candidate in the sustained regime, in slices of 0.2.
    #[arg(long, default_value = "0.6", value_parser = seconds)]
    pub sustain: Duration,
    /// Also measure the order that the library's tuner finds for each product and kernel.
    #[arg(long)]
    pub tune: bool,
    /// Measure few products and orders for a short time, to check that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// Where to write the rows. [default: docs/study/GPU-DATE.csv; with --from, nowhere]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the page with these rows.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Measure nothing: read rows that were measured before, and predict and report them
    /// anew. The rows of several files are one study.
    #[arg(long, value_name = "CSV")]
    pub from: Vec<PathBuf>,
    /// Count no bytes.
    #[arg(long)]
    pub no_ncu: bool,
    /// Path of Nsight Compute's `ncu`. [default: from PATH or the toolkit's usual folders]
    #[arg(long, value_name = "PATH", conflicts_with = "no_ncu")]
    pub ncu: Option<PathBuf>,
    /// Seed of the inputs, and of the order in which candidates take turns.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Launch everything once and print the launches, for `ncu`.
    #[arg(long, hide = true)]
    pub launch_once: bool,
}
