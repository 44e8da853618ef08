//! The command line.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use clap::Parser;
use libtest_mimic::{Arguments, Trial};

use crate::random;
use crate::test::Test;

/// GPU tests of tilewise
#[derive(Parser)]
#[command(disable_version_flag = true)]
pub struct Args {
    /// Draws the same data again (default: a new seed, printed)
    #[arg(long, value_name = "N", default_value_t = RandomState::new().hash_one("seed") % 1_000_000_000)]
    #[arg(hide_default_value = true)]
    pub seed: u64,

    /// Only cases whose name contains TEXT, or one of several TEXTs
    #[arg(long = "filter", value_name = "TEXT")]
    pub filters: Vec<String>,

    /// The number of random cases (default: 66000, or 200 with --quick)
    #[arg(long, value_name = "N")]
    pub random: Option<usize>,

    /// The reduced set, for compute-sanitizer
    #[arg(long)]
    pub quick: bool,

    /// Fails where there is no GPU or no kernel, instead of skipping
    #[arg(long)]
    pub require_gpu: bool,

    /// The driver's number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,

    /// A small set, on emulated GPUs
    #[cfg(feature = "emulator")]
    #[arg(long)]
    pub emulated: bool,

    /// Ends the program with an error that names the case when one case has the GPU for
    /// longer than this
    // The longest load every Hopper kernel, which the driver compiles for seconds each, or
    // run under compute-sanitizer, a hundred times slower.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    pub wait_limit: Duration,

    /// Runs the child process of `endless` that has this name.
    #[arg(long, hide = true)]
    pub endless: Option<String>,

    /// What every test program of Rust takes.
    #[command(flatten)]
    pub libtest: Arguments,
}

impl Args {
    /// How many random cases there are.
    pub fn random_cases(&self) -> usize {
        let default = match (self.emulated(), self.quick) {
            (true, _) => random::EMULATED_CASES,
            (_, true) => random::QUICK_CASES,
            _ => random::CASES,
        };
        self.random.unwrap_or(default)
    }

    /// Whether emulated GPUs are asked for.
    pub fn emulated(&self) -> bool {
        #[cfg(feature = "emulator")]
        return self.emulated;
        #[cfg(not(feature = "emulator"))]
        false
    }

    /// SMs of the GPU that tests are made for.
    pub fn sms(&self) -> u32 {
        match self.emulated() {
            #[cfg(feature = "emulator")]
            true => crate::emulated::SMS,
            _ => crate::repeat::SMS,
        }
    }

    /// Whether a case is asked for.
    pub fn selects(&self, test: &Test) -> bool {
        let named = Trial::test(test.name.as_str(), || Ok(()));
        let mut filters = self.filters.iter();
        (test.quick || !self.quick)
            && (filters.len() == 0 || filters.any(|text| test.name.contains(text)))
            && !self.libtest.is_filtered_out(&named)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "not a number of seconds".to_owned())
}
