//! The GPU tests: one program, run by `cargo test` and carried to machines
//! with a GPU by `cargo xtask bundle`.
//!
//! Every kernel of the library, with every element type, in all layouts, tile
//! orders, schedules and around the edges of its tiles, against f64; as many
//! random products as asked for; guard bands around every operand; bitwise
//! repeats; CUDA graphs; tuning; the errors that need a GPU; kernels that never end.
//! Without a GPU every case is skipped and the program ends well.
//!
//! Tests run on all cores and take turns with the device ([`shared`]). A
//! failing case prints one line with its name and the seed; both together
//! replay it.

mod args;
mod arrangement;
mod capture;
mod case;
mod cases;
mod chain;
mod compare;
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
mod endless;
mod errors;
mod graph;
mod guarded;
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

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use gpu_kernels::entry::KERNELS;
use tilewise::{Device, build_info};
use tilewise_watchdog::Watchdog;

use args::{Args, USAGE};
use report::Report;
use shared::Shared;
use test::{Test, all_tests, is_built};

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
    if let Some(name) = &args.endless {
        return endless::child(name, args.device);
    }
    let tests: Vec<Test> = all_tests(&args)
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

fn run_all(args: &Args, tests: &[Test]) -> ExitCode {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let devices = devices(args, threads);
    let cases = tests.len();
    match &devices {
        Ok(devices) => println!(
            "{cases} cases on {}, {}, seed {}",
            devices[0].device(),
            compiler(),
            args.seed
        ),
        Err(error) => println!("{cases} cases without a GPU, {}: {error}", compiler()),
    }
    let devices = devices.unwrap_or_default();
    let mut report = Report::new(args.seed, tests);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (verdicts, judged) = mpsc::channel();
        for thread in 0..threads {
            let (verdicts, next) = (verdicts.clone(), &next);
            let device = devices.get(thread % devices.len().max(1));
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(test) = tests.get(index) else {
                        return;
                    };
                    let verdict = test.run(device, args.seed);
                    verdicts.send((index, verdict)).expect("the report listens");
                }
            });
        }
        drop(verdicts);
        for (index, verdict) in judged {
            report.add(index, verdict);
        }
    });
    let failed = report.finish();
    let usable = !devices.is_empty() && (args.emulated || KERNELS.iter().any(is_built));
    for device in devices {
        device.close();
    }
    if args.require_gpu && !usable {
        println!("nothing ran on a GPU, and --require-gpu asks for it");
        return ExitCode::FAILURE;
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The GPU, which all threads share; or an emulated one for each.
fn devices(args: &Args, _threads: usize) -> Result<Vec<Shared>, tilewise::Error> {
    #[cfg(feature = "emulator")]
    if args.emulated {
        let open = |thread| emulated::device(thread, args.seed).map(Shared::new);
        return (0.._threads).map(open).collect();
    }
    let watchdog = Watchdog::new(|| {
        println!("the rest is not run (--wait-limit SECONDS allows more)");
    });
    let opening = watchdog.arm(args.wait_limit, "opening the GPU");
    let device = Device::gpu(args.device);
    drop(opening);
    Ok(vec![Shared::watched(device?, watchdog, args.wait_limit)])
}

/// What compiled the kernels: results of two compilers are not those of one.
fn compiler() -> String {
    let build = build_info();
    match (build.code_generator, build.toolchain) {
        (Some(generator), Some(toolchain)) => {
            format!("kernels by {} ({toolchain})", generator.name())
        }
        _ => "no kernels in this build".to_owned(),
    }
}
