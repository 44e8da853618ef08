//! The GPU tests: one program, run by `cargo test` and carried to machines
//! with a GPU by `cargo xtask bundle`.
//!
//! Every kernel of the library, with every element type, in all layouts, tile
//! orders, schedules and around the edges of its tiles, against f64; guard
//! bands around every operand; tuning; the errors that need a GPU. Without a GPU
//! every case is skipped and the program ends well.
//!
//! A failing case prints one line with its name and the seed; both together
//! replay it.

mod args;
mod arrangement;
mod case;
mod cases;
mod errors;
mod guarded;
mod large;
mod own;
mod reference;
mod tune;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use gpu_kernels::entry::KERNELS;
use tilewise::select::Catalog;
use tilewise::{DType, Device, Error, Family, KernelInfo};

use args::{Args, USAGE};
use case::{Case, Failure, Outcome};
use large::Large;

/// What one test does.
enum Work {
    Product(Case),
    Repeat(Case),
    Large(&'static KernelInfo, Large),
    Error(fn(&Device) -> Result<(), String>),
    /// Of the test program itself, without a GPU.
    Own(fn() -> Result<(), String>),
}

/// One line of `--list`.
struct Test {
    name: String,
    /// The kernel it needs, by which tests are grouped: compiling a kernel in
    /// the driver takes longer than many cases.
    kernel: Option<&'static KernelInfo>,
    quick: bool,
    work: Work,
}

/// What came of a test.
enum Verdict {
    Passed(f64),
    /// Passed, by being refused.
    Refused,
    Skipped(&'static str),
    Failed(String),
    /// Nothing after it can be trusted.
    DeviceLost(String),
}

#[derive(Default)]
struct Counts {
    passed: usize,
    /// Of the passed, those the library refused, as it should.
    refused: usize,
    failed: usize,
    skipped: usize,
    /// Largest error over the largest accepted.
    worst: f64,
}

/// Failures of a group that get a line of their own.
const MAX_REPORTS: usize = 20;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let args = match Args::parse(words.into_iter()) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let tests: Vec<Test> = all_tests()
        .into_iter()
        .filter(|test| args.selects(&test.name, test.quick))
        .collect();
    if args.list {
        let names: String = tests.iter().map(|test| test.name.clone() + "\n").collect();
        // Whoever reads may have read enough.
        let _ = std::io::stdout().write_all(names.as_bytes());
        return ExitCode::SUCCESS;
    }
    run_all(&args, &tests)
}

fn all_tests() -> Vec<Test> {
    let own = own::CASES.into_iter().map(|(name, run)| Test {
        name: name.into(),
        kernel: None,
        quick: false,
        work: Work::Own(run),
    });
    let errors = errors::CASES.into_iter().chain(tune::CASES);
    let errors = errors.map(|(name, run, quick)| Test {
        name: name.into(),
        kernel: None,
        quick,
        work: Work::Error(run),
    });
    let mut tests: Vec<Test> = own.chain(errors).collect();
    // The kernels that pack are tested with those that read what they packed.
    let products = |kernel: &&KernelInfo| kernel.family != Family::Pack;
    for kernel in KERNELS.iter().filter(products) {
        tests.extend(cases::of_kernel(kernel).into_iter().map(|planned| {
            let name = planned.case.to_string();
            let (name, work) = if planned.repeat {
                (format!("{name}/repeat"), Work::Repeat(planned.case))
            } else {
                (name, Work::Product(planned.case))
            };
            Test {
                name,
                kernel: Some(kernel),
                quick: planned.quick,
                work,
            }
        }));
        if is_first_of_family(kernel) {
            tests.extend(Large::ALL.map(|large| Test {
                name: format!("{}/large/{}", kernel.name, large.name()),
                kernel: Some(kernel),
                quick: false,
                work: Work::Large(kernel, large),
            }));
        }
    }
    tests.extend(cases::unforced().into_iter().map(|planned| Test {
        name: planned.case.to_string(),
        kernel: None,
        quick: planned.quick,
        work: Work::Product(planned.case),
    }));
    tests
}

/// The first f16 kernel of each family stands for it where cases are large.
fn is_first_of_family(kernel: &KernelInfo) -> bool {
    let first = |family: Family| {
        KERNELS
            .iter()
            .find(|other| other.family == family && other.input == DType::F16)
    };
    first(kernel.family).is_some_and(|first| first.name == kernel.name)
}

fn run_all(args: &Args, tests: &[Test]) -> ExitCode {
    let device = Device::gpu(args.device);
    let start = Instant::now();
    let mut total = Counts::default();
    match &device {
        Ok(device) => println!("{} cases on {device}, seed {}", tests.len(), args.seed),
        Err(error) => println!("{} cases without a GPU: {error}", tests.len()),
    }
    'groups: for group in tests.chunk_by(|a, b| group_name(a) == group_name(b)) {
        let started = Instant::now();
        let mut counts = Counts::default();
        let mut reason = None;
        for test in group {
            let verdict = test.run(device.as_ref().ok(), args.seed);
            let (failure, lost) = match verdict {
                Verdict::Passed(share) => {
                    counts.passed += 1;
                    counts.worst = counts.worst.max(share);
                    continue;
                }
                Verdict::Refused => {
                    counts.passed += 1;
                    counts.refused += 1;
                    continue;
                }
                Verdict::Skipped(why) => {
                    counts.skipped += 1;
                    reason = Some(why);
                    continue;
                }
                Verdict::Failed(why) => (why, false),
                Verdict::DeviceLost(why) => (why, true),
            };
            counts.failed += 1;
            if lost || counts.failed <= MAX_REPORTS {
                println!(
                    "FAILED --seed {} --filter '{}': {failure}",
                    args.seed, test.name
                );
            }
            if lost {
                println!("the device has failed; the rest is not run");
                total.add(&counts);
                break 'groups;
            }
        }
        counts.print(
            group_name(&group[0]),
            reason,
            started.elapsed().as_secs_f64(),
        );
        total.add(&counts);
    }
    println!(
        "{} passed, {} failed, {} skipped in {:.1} s (seed {})",
        total.passed,
        total.failed,
        total.skipped,
        start.elapsed().as_secs_f64(),
        args.seed
    );
    let usable = device.is_ok() && KERNELS.iter().any(is_built);
    if args.require_gpu && !usable {
        println!("nothing ran on a GPU, and --require-gpu asks for it");
        return ExitCode::FAILURE;
    }
    if total.failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The first part of a name: the kernel, or what has none.
fn group_name(test: &Test) -> &str {
    test.name.split('/').next().unwrap_or_default()
}

fn is_built(kernel: &KernelInfo) -> bool {
    (Catalog::embedded().is_built)(kernel.name)
}

impl Test {
    fn run(&self, device: Option<&Device>, seed: u64) -> Verdict {
        if let Some(why) = device.and_then(|device| self.why_impossible(device)) {
            return Verdict::Skipped(why);
        }
        let outcome = match (&self.work, device) {
            (Work::Own(run), _) => run().map(|()| Outcome::Right(0.0)).map_err(Failure::Wrong),
            (_, None) => return Verdict::Skipped("no GPU"),
            (Work::Product(case), Some(device)) => case.run(device, seed),
            (Work::Repeat(case), Some(device)) => {
                let walks = case.kernel.map(cases::walks).unwrap_or_default();
                case.repeat(device, seed, &walks)
            }
            (Work::Large(kernel, large), Some(device)) => {
                match large::run(device, seed, kernel, *large) {
                    Ok(true) => Ok(Outcome::Right(0.0)),
                    Ok(false) => return Verdict::Skipped("too little device memory"),
                    Err(failure) => Err(failure),
                }
            }
            (Work::Error(run), Some(device)) => run(device)
                .map(|()| Outcome::Right(0.0))
                .map_err(Failure::Wrong),
        };
        match outcome {
            Ok(Outcome::Right(share)) => Verdict::Passed(share),
            Ok(Outcome::Refused) => Verdict::Refused,
            Err(Failure::Wrong(why)) => Verdict::Failed(why),
            // An error of the driver, as a fault in a kernel is, stays with the context.
            Err(Failure::Error(error @ Error::Driver { .. })) => {
                Verdict::DeviceLost(error.to_string())
            }
            Err(Failure::Error(error)) => Verdict::Failed(error.to_string()),
        }
    }

    /// What this build or this device lacks for the test.
    fn why_impossible(&self, device: &Device) -> Option<&'static str> {
        let info = device.gpu_info()?;
        let (major, minor) = info.compute_capability;
        match (self.kernel, &self.work) {
            (Some(kernel), _) if !kernel.arch.runs_on(major, minor) => {
                Some("for another compute capability")
            }
            (Some(kernel), _) if kernel.shared_bytes > info.shared_bytes_per_cta => {
                Some("needs more shared memory")
            }
            (Some(kernel), _) if !is_built(kernel) => Some("not in this build"),
            (None, Work::Product(_) | Work::Error(_)) if !KERNELS.iter().any(is_built) => {
                Some("no kernel in this build")
            }
            (None, Work::Product(case)) if case.input == DType::Tf32 && major < 8 => {
                Some("no TF32 on this device")
            }
            _ => None,
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.refused += other.refused;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.worst = self.worst.max(other.worst);
    }

    fn print(&self, group: &str, skip_reason: Option<&str>, seconds: f64) {
        let mut parts = Vec::new();
        if self.passed > 0 {
            parts.push(format!("{} passed", self.passed));
        }
        if self.refused > 0 {
            parts.push(format!("{} of them refusals", self.refused));
        }
        if self.failed > 0 {
            parts.push(format!("{} FAILED", self.failed));
        }
        if let Some(reason) = skip_reason {
            parts.push(format!("{} skipped ({reason})", self.skipped));
        }
        if self.passed > 0 {
            parts.push(format!("{seconds:.1} s"));
        }
        if self.worst > 0.0 {
            parts.push(format!("errors up to {:.2} of the bound", self.worst));
        }
        println!("{group}: {}", parts.join(", "));
    }
}
