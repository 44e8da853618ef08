//! Triton as a peer: our script `triton.py` in a Python process of its own,
//! with the tutorial's algorithm and this harness's regimes. It cannot be
//! interleaved with candidates of this process; records say so.

use crate::measure::regime::Regime;
use crate::problem::names::output_name;
use crate::problem::spec::ProblemSpec;
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
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

/// What came back.
#[derive(Debug, Default)]
pub struct TritonOutcome {
    /// Triton's version.
    pub version: String,
    /// TimedCase cases.
    pub timed: Vec<TimedCase>,
    /// Cases not timed, and why.
    pub skipped: Vec<(usize, String)>,
    /// Why the process ended early, if it did.
    pub trouble: Option<String>,
}

/// Whether `python` has Triton and PyTorch.
///
/// # Errors
/// It has not, or there is no such Python: why, as text.
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
        // Triton reads the source of its kernels from a file.
        let mut script = (tempfile::Builder::new().suffix(".py"))
            .tempfile()
            .map_err(|error| format!("no temporary file: {error}"))?;
        script
            .write_all(SCRIPT.as_bytes())
            .map_err(|error| format!("{}: {error}", script.path().display()))?;
        let child = Command::new(self.python)
            .arg(script.path())
            .arg(job)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.python.display()))?;
        Ok(collect(child, budget + GRACE))
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

/// Reads the script's lines until it ends or `limit` is up.
fn collect(mut child: Child, limit: Duration) -> TritonOutcome {
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        for line in stdout
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines())
        {
            if line.is_err() || sender.send(line).is_err() {
                break;
            }
        }
    });
    // Read on a thread too: a full pipe would stop the script.
    let stderr = child.stderr.take();
    let complaints = std::thread::spawn(move || {
        stderr
            .and_then(|err| std::io::read_to_string(err).ok())
            .unwrap_or_default()
    });
    let mut outcome = TritonOutcome::default();
    let deadline = Instant::now() + limit;
    let ended = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => outcome.add(&line.unwrap_or_default()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(mpsc::RecvTimeoutError::Timeout) => break false,
        }
    };
    if !ended {
        // Fails only if it has just ended by itself.
        let _ = child.kill();
    }
    let status = child.wait();
    let _ = reader.join();
    let complaints = complaints.join().unwrap_or_default();
    outcome.trouble = match status {
        _ if !ended => Some(format!("ended after {} s", limit.as_secs())),
        Ok(status) if status.success() => None,
        Ok(status) => {
            let last = complaints.lines().last().unwrap_or_default();
            Some(format!("{status}: {last}"))
        }
        Err(error) => Some(error.to_string()),
    };
    outcome
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
        let child = Command::new("sh")
            .args(["-c", r#"echo '{"version": "9"}'; echo broken >&2; exit 3"#])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let outcome = collect(child, GRACE);
        assert_eq!(outcome.version, "9");
        assert!(outcome.trouble.unwrap().contains("broken"));
    }
}
