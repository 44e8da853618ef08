//! The options of `sweep`.

use crate::measure::regime::Regime;
use crate::measure::watch::{WaitArgs, seconds};
use crate::problem::suite::Suite;
use crate::runner::bench_arguments::BenchArgs;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The problems, as `bench --suite` has them.
    #[arg(long, default_value = "sweep:1:300")]
    pub suite: Suite,

    /// Seconds of launches of each candidate in the sustained regime; 0 leaves it out.
    #[arg(long, default_value = "0.1", value_parser = seconds)]
    pub sustain: Duration,

    /// Write the rows as CSV.
    #[arg(long, value_name = "CSV")]
    pub csv: Option<PathBuf>,

    /// Write a page with the outcome of every problem.
    #[arg(long, value_name = "HTML", conflicts_with = "menu")]
    pub page: Option<PathBuf>,

    /// Measure nothing, and report on rows that were measured before.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["suite", "sustain", "csv"])]
    pub from: Vec<PathBuf>,

    /// Measure nothing, and list the tiles that would be worth a kernel on these problems, by
    /// the estimate of the cost model.
    #[arg(long, conflicts_with_all = ["from", "csv"])]
    pub menu: bool,

    /// Measure nothing, and write what the library would choose on an H200 as CSV, without times.
    #[arg(long, requires = "csv", conflicts_with_all = ["from", "menu", "page", "sustain"])]
    pub choices: bool,

    /// Measure nothing, and list the problems of these rows that --choices of another build wrote and for
    /// which this build chooses another launch on an H200.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["from", "menu", "page", "sustain", "csv", "suite"])]
    pub against: Option<PathBuf>,

    /// Problems to list, those on which the rule loses most; or tiles.
    #[arg(long, default_value_t = 12)]
    pub worst: usize,

    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
}

impl SweepArgs {
    /// The options of `bench` that measure the sweep.
    pub fn bench(&self) -> BenchArgs {
        let mut bench = BenchArgs {
            suite: Some(self.suite),
            every_kernel: true,
            sustain: self.sustain,
            wait: self.wait.clone(),
            ..BenchArgs::default()
        };
        if self.sustain.is_zero() {
            bench.regimes = vec![Regime::Cold];
        }
        bench
    }
}
