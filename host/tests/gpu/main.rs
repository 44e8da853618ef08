//! The GPU tests: one program, run by `cargo test` and carried to machines
//! with a GPU by `cargo xtask bundle`.
//!
//! The program tests every kernel of the library against f64, with every element type, in
//! all layouts, tile orders and schedules, and around the edges of its tiles. It also tests
//! as many random products as the command line asks for, guard bands around every operand,
//! bitwise repeats, batch-invariant results, CUDA graphs, memory and streams that the library does not own, tuning,
//! the errors that need a GPU, and kernels that never end. Without a GPU, every case is
//! skipped and the program succeeds.
//!
//! Tests run on all cores and take turns with the device ([`shared`]). A
//! failing case prints one line with its name and the seed; both together
//! replay it. libtest-mimic lists, selects and runs the tests and gives the exit code,
//! with the options of every test program of Rust; [`args`] adds the seed, the reduced
//! set and the limit of each wait, and [`report`] counts by kernel and by kind.

mod args;
mod arrangement;
mod by_gpc;
mod capture;
mod case;
mod cases;
mod chain;
mod compare;
#[path = "../common/driver.rs"]
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
mod endless;
mod epilogue;
mod epilogue_cases;
mod errors;
mod eviction;
mod f16x3;
mod foreign;
mod graph;
mod guarded;
mod invariant;
mod large;
mod operands;
mod own;
mod random;
mod reference;
mod repeat;
mod report;
mod shared;
mod test;
mod tune;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use gpu_kernels::entry::KERNELS;
use libtest_mimic::Trial;
use tilewise::{Device, build_info};
use tilewise_watchdog::Watchdog;

use args::Args;
use report::Report;
use shared::Shared;
use test::{Test, Verdict, all_tests, is_built};

/// More tests than this are shown as a character each, not a line each.
const MANY: usize = 200;

fn main() -> ExitCode {
    let mut args = Args::parse();
    if let Some(name) = &args.endless {
        return endless::child(name, args.device);
    }
    let mut tests = all_tests(&args);
    tests.retain(|test| args.selects(test));
    args.libtest.quiet |= args.libtest.format.is_none() && tests.len() > MANY;
    if args.libtest.list {
        let named = |test: Test| Trial::test(test.name, || Ok(()));
        return libtest_mimic::run(&args.libtest, tests.into_iter().map(named).collect())
            .exit_code();
    }
    run_all(&args, tests)
}

fn run_all(args: &Args, tests: Vec<Test>) -> ExitCode {
    let device = open(args);
    let (cases, seed) = (tests.len(), args.seed);
    match &device {
        Ok(device) => {
            let device = device.device();
            println!("{cases} cases on {device}, {}, seed {seed}", compiler());
        }
        Err(error) => println!("{cases} cases without a GPU, {}: {error}", compiler()),
    }
    let device = device.ok();
    let report = Arc::new(Report::new(seed));
    let mut trials = Vec::new();
    for test in tests {
        if device.is_none() && test.needs_device() {
            // Skipped cases are only counted, because 39,000 marks would be no help.
            let _ = report.add(&test, Verdict::Skipped("no GPU"));
            continue;
        }
        let report = Arc::clone(&report);
        // The GPU, which all threads share; or an emulated one of the case's own.
        let device = match args.emulated() {
            true => open(args).ok(),
            false => device.clone(),
        };
        trials.push(Trial::ignorable_test(test.name.clone(), move || {
            report.add(&test, test.run(device.as_ref(), seed))
        }));
    }
    let conclusion = libtest_mimic::run(&args.libtest, trials);
    report.finish();
    let usable = device.is_some() && (args.emulated() || KERNELS.iter().any(is_built));
    if let Some(device) = device {
        device.close();
    }
    if args.require_gpu && !usable {
        println!("nothing ran on a GPU, and --require-gpu asks for it");
        return ExitCode::FAILURE;
    }
    if args.require_gpu && cases == 0 {
        println!("no case has such a name, and --require-gpu asks for one");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Opens the GPU; or an emulated one, another at each call.
fn open(args: &Args) -> Result<Shared, tilewise::Error> {
    #[cfg(feature = "emulator")]
    if args.emulated {
        return emulated::device(args.seed).map(Shared::new);
    }
    let watchdog = Watchdog::new(|| {
        println!("the rest is not run (--wait-limit SECONDS allows more)");
    });
    let opening = watchdog.arm(args.wait_limit, "opening the GPU");
    let device = Device::gpu(args.device);
    drop(opening);
    Ok(Shared::watched(device?, watchdog, args.wait_limit))
}

/// The compiler of the kernels. Results depend on it, so the program prints it.
fn compiler() -> String {
    let build = build_info();
    match (build.code_generator, build.toolchain) {
        (Some(generator), Some(toolchain)) => {
            format!("kernels by {} ({toolchain})", generator.name())
        }
        _ => "no kernels in this build".to_owned(),
    }
}
