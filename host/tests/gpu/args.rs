//! The command line.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::random;

/// What one turn with the device may take. The longest load every Hopper kernel, which the
/// driver compiles for seconds each, or run under compute-sanitizer, a hundred times slower.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// What to run, and how.
pub struct Args {
    /// Every case draws its data from this and its own name.
    pub seed: u64,
    /// Run the cases whose name contains one of these; all when empty.
    pub filters: Vec<String>,
    /// Random cases; by default as many as the set should have.
    pub random: Option<usize>,
    /// Run the reduced set for compute-sanitizer.
    pub quick: bool,
    /// Print the names and stop.
    pub list: bool,
    /// Fail, rather than skip, where nothing can run.
    pub require_gpu: bool,
    /// The driver's number of the GPU.
    pub device: usize,
    /// Run a small set on emulated GPUs instead.
    pub emulated: bool,
    /// The longest turn with the device.
    pub wait_limit: Duration,
    /// Be the child process of [`endless`](crate::endless) that has this name.
    pub endless: Option<String>,
}

/// What `--help` prints.
pub const USAGE: &str = "\
GPU tests of tilewise

usage: gpu [FILTER ...] [options]

  FILTER, --filter TEXT  only cases whose name contains TEXT
  --seed N               draw the same data again (default: a new seed, printed)
  --random N             the number of random cases (default: 10000, or 200 with --quick)
  --quick                the reduced set, for compute-sanitizer
  --list                 print the names of the cases and stop
  --require-gpu          fail where there is no GPU or no kernel, instead of skipping
  --device N             the GPU (default: 0)
  --emulated             a small set, on emulated GPUs
  --wait-limit SECONDS   end the program with an error that names the case when one has the
                         GPU for longer than this (default: 300)";

impl Args {
    /// Reads the arguments after the program's name; an error is a message.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args {
            seed: RandomState::new().hash_one("seed") % 1_000_000_000,
            filters: Vec::new(),
            random: None,
            quick: false,
            list: false,
            require_gpu: false,
            device: 0,
            emulated: false,
            wait_limit: WAIT_LIMIT,
            endless: None,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--seed" => args.seed = number(&word, &value()?)?,
                "--device" => args.device = number(&word, &value()?)? as usize,
                "--wait-limit" => args.wait_limit = seconds(&word, &value()?)?,
                "--endless" => args.endless = Some(value()?),
                "--random" => args.random = Some(number(&word, &value()?)? as usize),
                "--filter" => args.filters.push(value()?),
                "--quick" => args.quick = true,
                "--list" => args.list = true,
                "--emulated" if cfg!(feature = "emulator") => args.emulated = true,
                "--emulated" => return Err("built without the feature `emulator`".into()),
                "--require-gpu" => args.require_gpu = true,
                // What `cargo test` passes on to every test program.
                "--nocapture" | "--quiet" | "-q" => {}
                flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}")),
                _ => args.filters.push(word),
            }
        }
        Ok(args)
    }

    /// How many random cases there are.
    pub fn random_cases(&self) -> usize {
        let default = match (self.emulated, self.quick) {
            (true, _) => random::EMULATED_CASES,
            (_, true) => random::QUICK_CASES,
            _ => random::CASES,
        };
        self.random.unwrap_or(default)
    }

    /// SMs of the GPU that tests are made for.
    pub fn sms(&self) -> u32 {
        match self.emulated {
            #[cfg(feature = "emulator")]
            true => crate::emulated::SMS,
            _ => crate::repeat::SMS,
        }
    }

    /// Whether a case is asked for.
    pub fn selects(&self, name: &str, quick: bool) -> bool {
        (quick || !self.quick)
            && (self.filters.is_empty() || self.filters.iter().any(|text| name.contains(text)))
    }
}

fn seconds(flag: &str, text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{flag} {text}: not a number of seconds"))
}

fn number(flag: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{flag} {text}: not a whole number"))
}
