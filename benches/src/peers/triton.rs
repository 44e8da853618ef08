//! Triton as a peer: our script `triton.py` in a Python process of its own,
//! with the tutorial's algorithm and this harness's regimes. It cannot be
//! interleaved with candidates of this process; records say so.

use crate::cli::{BenchArgs, RegimeChoice};
use crate::record::Regime;
use crate::workload::Problem;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
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
enum Line {
    Version { version: String },
    Timed(Timed),
    Skipped { case: usize, skipped: String },
}

/// A timed case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Timed {
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
pub struct Outcome {
    /// Triton's version.
    pub version: String,
    /// Timed cases.
    pub timed: Vec<Timed>,
    /// Cases not timed, and why.
    pub skipped: Vec<(usize, String)>,
    /// Why the process ended early, if it did.
    pub trouble: Option<String>,
}

#[derive(Serialize)]
struct Case {
    m: usize,
    n: usize,
    k: usize,
    dtype: &'static str,
    output: &'static str,
    a_transposed: bool,
    b_transposed: bool,
}

#[derive(Serialize)]
struct Job {
    cases: Vec<Case>,
    regimes: Vec<Regime>,
    seed: u64,
    sustain_s: f64,
    cold_s: f64,
    budget_s: f64,
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

/// Times `problems`; see the module's head. Blocks until the process ends.
///
/// # Errors
/// The process could not be started.
pub fn run(args: &BenchArgs, problems: &[Problem]) -> Result<Outcome, String> {
    let job = serde_json::to_string(&job(args, problems)).map_err(|error| error.to_string())?;
    // Triton reads the source of its kernels from a file.
    let script = std::env::temp_dir().join(format!("tilewise-triton-{}.py", std::process::id()));
    std::fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let spawned = Command::new(&args.python)
        .arg(&script)
        .arg(job)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let outcome = match spawned {
        Ok(child) => Ok(collect(child, budget(problems.len()) + GRACE)),
        Err(error) => Err(format!("{}: {error}", args.python.display())),
    };
    // Left behind, it would be a small file in the temporary folder.
    let _ = std::fs::remove_file(&script);
    outcome
}

fn budget(cases: usize) -> Duration {
    BUDGET.min(CASE * cases as u32)
}

fn job(args: &BenchArgs, problems: &[Problem]) -> Job {
    let case = |problem: &Problem| Case {
        m: problem.shape.m,
        n: problem.shape.n,
        k: problem.shape.k,
        dtype: problem.dtype.name(),
        output: crate::choice::output_name(problem.dtype, problem.output),
        a_transposed: problem.layout.a_transposed,
        b_transposed: problem.layout.b_transposed,
    };
    let regime = |choice: &RegimeChoice| match choice {
        RegimeChoice::Cold => Regime::Cold,
        RegimeChoice::Sustained => Regime::Sustained,
    };
    Job {
        cases: problems.iter().map(case).collect(),
        regimes: args.regimes.iter().map(regime).collect(),
        seed: args.seed,
        sustain_s: args.sustain().as_secs_f64(),
        cold_s: if args.smoke { 0.0 } else { 0.25 },
        budget_s: budget(problems.len()).as_secs_f64(),
    }
}

/// Reads the script's lines until it ends or `limit` is up.
fn collect(mut child: Child, limit: Duration) -> Outcome {
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
    let mut outcome = Outcome::default();
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

impl Outcome {
    /// Takes one line of output. Lines that are not ours (libraries print too)
    /// are passed over.
    fn add(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Line::Version { version }) => self.version = version,
            Ok(Line::Timed(timed)) => self.timed.push(timed),
            Ok(Line::Skipped { case, skipped }) => self.skipped.push((case, skipped)),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_lines_are_understood() {
        let mut outcome = Outcome::default();
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
