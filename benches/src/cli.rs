//! The command line.

use crate::commands::host_cost::HostCostArgs;
use crate::commands::matmul::MatmulArgs;
use crate::commands::page::PageArgs;
use crate::rounding::rounding_arguments::RoundingArgs;
use crate::runner::bench_arguments::BenchArgs;
use crate::study::study_arguments::StudyArgs;
use crate::sweep::sweep_arguments::SweepArgs;
use crate::tile_order::analysis::OrderArgs;
use clap::{Parser, Subcommand};

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
    /// Write the HTML page from files: rows of the study and of the sweep, records of a benchmark.
    Page(PageArgs),
    /// Measure tile orders against each other and against the model of L2.
    Study(Box<StudyArgs>),
    /// Measure every kernel on drawn problems, and what the library's choice loses against
    /// the best of them.
    Sweep(SweepArgs),
    /// Measure the rounding errors of f32 products, in every precision and in cuBLAS.
    Rounding(RoundingArgs),
    /// C = A·B for .npy files.
    Matmul(MatmulArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
