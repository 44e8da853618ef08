//! The command line.

mod bench;

use crate::choice::KernelChoice;
use crate::order::OrderArgs;
use crate::page::PageArgs;
use crate::shape::Shape;
use crate::study::StudyArgs;
use crate::watch::WaitArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gpu_kernels::TileOrder;
use std::path::PathBuf;
use std::time::Duration;

pub use bench::{BenchArgs, RegimeChoice};

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

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["-1", "soon", "inf"] {
            assert!(seconds(text).unwrap_err().contains("seconds"), "{text}");
        }
    }
}
