//! The options of `sweep`.

use crate::measure::watch::{WaitArgs, seconds};
use crate::problem::suite::{Draw, MOST, Random, Suite};
use crate::runner::bench_arguments::BenchArgs;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Seed of the problems.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Number of problems.
    #[arg(long, default_value_t = 300, value_parser = count)]
    pub count: usize,

    /// Seconds of launches of each candidate in the sustained regime; 0 leaves it out.
    #[arg(long, default_value = "0.1", value_parser = seconds)]
    pub sustain: Duration,

    /// Write the rows as CSV.
    #[arg(long, value_name = "CSV")]
    pub csv: Option<PathBuf>,

    /// Measure nothing, and report on rows that were measured before.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["seed", "count", "sustain", "csv"])]
    pub from: Vec<PathBuf>,

    /// Problems to list: those on which the rule loses most.
    #[arg(long, default_value_t = 12)]
    pub worst: usize,

    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
}

fn count(text: &str) -> Result<usize, String> {
    let in_range = |count: &usize| (1..=MOST).contains(count);
    let count = text.parse().ok().filter(in_range);
    count.ok_or_else(|| format!("the count '{text}' is not a whole number from 1 to {MOST}"))
}

impl SweepArgs {
    /// The options of `bench` that measure the sweep.
    pub fn bench(&self) -> BenchArgs {
        let mut bench = BenchArgs {
            suite: Some(Suite::Random(Random {
                seed: self.seed,
                count: self.count,
                draw: Draw::Sweep,
            })),
            every_kernel: true,
            sustain: self.sustain,
            wait: self.wait.clone(),
            ..BenchArgs::default()
        };
        if self.sustain.is_zero() {
            bench.regimes.truncate(1);
        }
        bench
    }
}
