//! Triton as a peer: our script `triton.py` in a Python process of its own,
//! with the tutorial's algorithm and this harness's regimes. It cannot be
//! interleaved with candidates of this process; records say so.

use crate::measure::regime::Regime;
use crate::problem::names::output_name;
use crate::problem::spec::ProblemSpec;
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("triton.py");

/// Answers in a fraction of a second, where importing PyTorch takes many.
const ASK: &str = "import importlib.util as u, sys; \
                   sys.exit(not (u.find_spec('triton') and u.find_spec('torch')))";

/// Time a case takes; compiling takes most of it.
const CASE: Duration = Duration::from_secs(8);
/// No new case is started after this long, however many there are.
const BUDGET: Duration = Duration::from_secs(300);
/// What the last case may take beyond that before the process is ended.
const GRACE: Duration = Duration::from_secs(60);

/// One line of the script's output.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum ScriptLine {
    Version { version: String },
    Timed(TimedCase),
    Skipped { case: usize, skipped: String },
}

/// A timed case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TimedCase {
    /// Index of the problem.
    pub case: usize,
    /// Cold or sustained.
    pub regime: Regime,
    /// Times of one product.
    pub milliseconds: Vec<f64>,
    /// Tile, stages and warps that autotuning chose.
    pub config: String,
    /// Relative error over sampled elements.
    pub relative_error: f64,
}

/// The outcome of a run of the script.
#[derive(Debug, Default)]
pub struct TritonOutcome {
    /// Triton's version.
    pub version: String,
    /// TimedCase cases.
    pub timed: Vec<TimedCase>,
    /// Cases not timed, and why.
    pub skipped: Vec<(usize, String)>,
    /// Why the process failed or was ended, if it was.
    pub trouble: Option<String>,
}

/// Whether `python` has Triton and PyTorch.
///
/// # Errors
/// It lacks one of them, or `python` does not run: the reason as text.
pub fn probe(python: &Path) -> Result<(), String> {
    let status = Command::new(python)
        .args(["-c", ASK])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", python.display()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} has no triton and torch", python.display()))
    }
}

/// What the script is asked to do.
pub struct TritonJob<'a> {
    /// Python that has Triton and PyTorch.
    pub python: &'a Path,
    /// Problems to time.
    pub problems: &'a [ProblemSpec],
    /// Regimes to time them in.
    pub regimes: &'a [Regime],
    /// Seed of the inputs.
    pub seed: u64,
    /// Launches of each problem in the sustained regime.
    pub sustain: Duration,
    /// Launches of each problem in the cold regime.
    pub cold: Duration,
}

impl TritonJob<'_> {
    /// Times the problems; see the module's head. Blocks until the process ends.
    ///
    /// # Errors
    /// The process could not be started.
    pub fn run(&self) -> Result<TritonOutcome, String> {
        let budget = BUDGET.min(CASE * self.problems.len() as u32);
        let job = self.as_json(budget).to_string();
        let run = || {
            // Triton reads the source of its kernels from a file.
            let mut script = tempfile::Builder::new().suffix(".py").tempfile()?;
            script.write_all(SCRIPT.as_bytes())?;
            let mut command = Command::new(self.python);
            collect(command.arg(script.path()).arg(job), budget + GRACE)
        };
        run().map_err(|error| format!("{}: {error}", self.python.display()))
    }

    fn as_json(&self, budget: Duration) -> serde_json::Value {
        let case = |problem: &ProblemSpec| {
            json!({
                "m": problem.shape.m,
                "n": problem.shape.n,
                "k": problem.shape.k,
                "dtype": problem.dtype.name(),
                "output": output_name(problem.dtype, problem.output),
                "a_transposed": problem.layout.a_transposed,
                "b_transposed": problem.layout.b_transposed,
            })
        };
        json!({
            "cases": self.problems.iter().map(case).collect::<Vec<_>>(),
            "regimes": self.regimes,
            "seed": self.seed,
            "sustain_s": self.sustain.as_secs_f64(),
            "cold_s": self.cold.as_secs_f64(),
            "budget_s": budget.as_secs_f64(),
        })
    }
}

/// Runs `script` until it ends by itself or `limit` is up, and reads what it printed.
fn collect(script: &mut Command, limit: Duration) -> io::Result<TritonOutcome> {
    // Files and not pipes: a full pipe would stop the script.
    let (mut printed, mut complaints) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = script
        .stdout(printed.try_clone()?)
        .stderr(complaints.try_clone()?)
        .spawn()?;
    let deadline = Instant::now() + limit;
    let mut status = child.try_wait()?;
    while status.is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
        status = child.try_wait()?;
    }
    let mut outcome = TritonOutcome {
        trouble: match status {
            None => {
                child.kill()?;
                child.wait()?;
                Some(format!("ended after {} s", limit.as_secs()))
            }
            Some(status) if status.success() => None,
            Some(status) => {
                let text = text_of(&mut complaints)?;
                let last = text.lines().last().unwrap_or_default();
                Some(format!("{status}: {last}"))
            }
        },
        ..TritonOutcome::default()
    };
    text_of(&mut printed)?
        .lines()
        .for_each(|line| outcome.add(line));
    Ok(outcome)
}

/// The whole text of a file. Bytes that are not UTF-8 are replaced.
fn text_of(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl TritonOutcome {
    /// Takes one line of output. Lines that are not ours (libraries print too)
    /// are passed over.
    fn add(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(ScriptLine::Version { version }) => self.version = version,
            Ok(ScriptLine::Timed(timed)) => self.timed.push(timed),
            Ok(ScriptLine::Skipped { case, skipped }) => self.skipped.push((case, skipped)),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_lines_are_understood() {
        let mut outcome = TritonOutcome::default();
        for line in [
            r#"{"version": "3.6.0"}"#,
            "a warning of some library",
            r#"{"case": 1, "regime": "cold", "milliseconds": [0.5, 0.25], "config": "128x256x64", "relative_error": 2e-4}"#,
            r#"{"case": 2, "skipped": "OutOfMemoryError"}"#,
        ] {
            outcome.add(line);
        }
        assert_eq!(outcome.version, "3.6.0");
        assert_eq!(outcome.timed[0].milliseconds, [0.5, 0.25]);
        assert_eq!(outcome.timed[0].regime, Regime::Cold);
        assert_eq!(outcome.skipped, [(2, "OutOfMemoryError".to_owned())]);
    }

    #[test]
    fn a_missing_python_is_named() {
        let message = probe(Path::new("/no/such/python")).unwrap_err();
        assert!(message.contains("/no/such/python"), "{message}");
    }

    #[test]
    fn a_process_that_fails_says_why() {
        let mut script = Command::new("sh");
        script.args(["-c", r#"echo '{"version": "9"}'; echo broken >&2; exit 3"#]);
        let outcome = collect(&mut script, GRACE).unwrap();
        assert_eq!(outcome.version, "9");
        assert!(outcome.trouble.unwrap().contains("broken"));
    }

    #[test]
    fn a_process_that_does_not_end_is_ended_and_its_lines_count() {
        let mut script = Command::new("sh");
        script.args(["-c", r#"echo '{"version": "9"}'; exec sleep 60"#]);
        let start = Instant::now();
        let outcome = collect(&mut script, Duration::from_millis(300)).unwrap();
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(outcome.version, "9");
        assert!(outcome.trouble.unwrap().contains("ended after"));
    }
}
