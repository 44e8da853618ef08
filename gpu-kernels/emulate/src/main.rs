//! `tilewise-emulate`: one product, on the CPU, by the kernel that a GPU would run.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use gpu_kernels::emulator::{Counts, Instruction, Options};
use gpu_kernels::{Block, DType, KernelInfo, OutputType, Schedule, TileOrder};
use indicatif::{ProgressBar, ProgressStyle};
use tilewise::l2;
use tilewise_bench::choice::{
    KernelChoice, parse_dtype, parse_output, parse_schedule, schedule_name,
};
use tilewise_bench::shape::{Layout, Shape};
use tilewise_emulate::{Case, Outcome, Values, pick, run_watched};

/// Runs a kernel on the CPU, checks what it does, compares its product with f64, and
/// counts.
#[derive(Parser)]
#[command(name = "tilewise-emulate")]
struct Arguments {
    /// A family (naive, tiled, tensor_core, hopper), of which the library's rule
    /// picks one, or an entry point
    #[arg(long, default_value = "hopper")]
    kernel: KernelChoice,
    /// MxNxK, or one number for a cube
    #[arg(long, default_value = "512x512x512")]
    shape: Shape,
    /// f16, bf16, tf32 or f32
    #[arg(long, default_value = "f16", value_parser = parse_dtype)]
    dtype: DType,
    /// How A and B are stored: nn, nt, tn or tt [default: as the kernel reads them
    /// best, nt for a family]
    #[arg(long)]
    layout: Option<Layout>,
    /// Type of C: input or f32
    #[arg(long, default_value = "input", value_parser = parse_output)]
    output: OutputType,
    /// A CTA's tile, MxNxK [default: the rule's]
    #[arg(long)]
    block: Option<Shape>,
    /// row, col, grouped:SIZE or groupedn:SIZE [default: the rule's]
    #[arg(long)]
    order: Option<TileOrder>,
    /// grid2d, grid1d, persistent or stream-k [default: the rule's]
    #[arg(long, value_parser = parse_schedule)]
    schedule: Option<Schedule>,
    /// Simulated SMs
    #[arg(long, default_value_t = 8)]
    sms: u32,
    /// Host threads [default: one a core; one for stream-k, whose CTAs wait for each
    /// other, so that a seed does the same again]
    #[arg(long)]
    workers: Option<usize>,
    /// Integers from -4 to 4, whose sums are exact, instead of uniform numbers
    #[arg(long)]
    integers: bool,
    /// The order of events: 0 for the plain one, any other for a random one that is
    /// the same each time
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run this many orders of events, from that seed on
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Check nothing but the result: faster
    #[arg(long)]
    no_checks: bool,
    /// Capacity of the L2 that the requests are run through, MiB
    #[arg(long, default_value_t = 50)]
    l2: u64,
    /// Write the requests to L2, in the order of time, to this file, as CSV
    #[arg(long)]
    trace: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let case = case(arguments)?;
    let KernelInfo { name, threads, .. } = case.kernel;
    println!(
        "{name}: {} {}, order {}, {}, on {} simulated SMs",
        arguments.shape,
        case.kernel.input.name(),
        case.order,
        schedule_name(case.schedule),
        arguments.sms
    );
    let last = arguments.seed.saturating_add(arguments.schedules - 1);
    let mut outcome = None;
    for seed in arguments.seed..=last {
        let begin = Instant::now();
        let progress = progress(&case, seed);
        let result = run_watched(&case, &options(arguments, case.schedule, seed), &|ctas| {
            progress.inc(ctas.into());
        });
        progress.finish_and_clear();
        let done = result.map_err(|error| failure(&error.to_string(), seed))?;
        println!(
            "seed {seed}: right, by {} CTAs of {threads} threads; largest error {:.2e}; {:.2} s",
            done.ctas,
            done.largest_error,
            begin.elapsed().as_secs_f64()
        );
        outcome.get_or_insert(done);
    }
    let Some(Outcome { counts, .. }) = outcome else {
        return Ok(());
    };
    print_counts(&counts, arguments.l2 << 20);
    match &arguments.trace {
        Some(path) => write_trace(path, &counts)
            .map_err(|error| format!("cannot write {}: {error}", path.display())),
        None => Ok(()),
    }
}

/// The case that the arguments describe.
fn case(arguments: &Arguments) -> Result<Case, String> {
    let size = |name: &str, extent: usize| {
        u32::try_from(extent).map_err(|_| format!("{name} is {extent}, accepted: below 2^32"))
    };
    let Shape { m, n, k } = arguments.shape;
    let (m, n, k) = (size("M", m)?, size("N", n)?, size("K", k)?);
    let block = match arguments.block {
        Some(Shape { m, n, k }) => Some(Block {
            m: size("the block's M", m)?,
            n: size("the block's N", n)?,
            k: size("the block's K", k)?,
        }),
        None => None,
    };
    let wish = pick::Wish {
        kernel: match arguments.kernel {
            KernelChoice::Entry(name) => pick::Kernel::Entry(name),
            KernelChoice::Family(family) => pick::Kernel::Family(family, arguments.dtype),
        },
        block,
        order: arguments.order,
        schedule: arguments.schedule,
        output: arguments.output,
        stored: arguments
            .layout
            .map(|layout| (layout.a_transposed, layout.b_transposed)),
        sms: arguments.sms.max(1),
    };
    let mut case = wish.pick(m, n, k)?;
    if arguments.integers {
        case.values = Values::Integers;
    }
    Ok(case)
}

fn options(arguments: &Arguments, schedule: Schedule, seed: u64) -> Options {
    let defaults = Options::default();
    let workers = match schedule {
        Schedule::StreamK => 1,
        _ => defaults.workers,
    };
    Options {
        checks: !arguments.no_checks,
        seed,
        slots: arguments.sms.max(1),
        workers: arguments.workers.unwrap_or(workers),
        trace: true,
        ..defaults
    }
}

fn progress(case: &Case, seed: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} CTAs {elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(case.ctas().into())
        .with_style(style)
        .with_message(format!("seed {seed}"))
}

/// What went wrong, and how to see it again.
fn failure(message: &str, seed: u64) -> String {
    format!("{message}\n\nseed {seed} does the same again: --seed {seed} --schedules 1")
}

fn print_counts(counts: &Counts, l2_bytes: u64) {
    println!("\n{:>14}  instruction (by thread)", "executed");
    for &instruction in Instruction::ALL {
        let executed = counts.executed(instruction);
        if executed > 0 {
            println!("{executed:>14}  {}", instruction.name());
        }
    }
    let reads = counts.requests.iter().filter(|request| !request.writes);
    let replayed = l2::replay(
        reads.map(|request| (request.address, request.bytes.into())),
        l2_bytes,
    );
    println!();
    for (number, what) in [
        (counts.global_read_bytes, "bytes read from global memory"),
        (counts.global_written_bytes, "bytes written to it"),
        (counts.tensor_operations, "tensor-core operations"),
        (counts.shared_accesses, "accesses of warps to shared memory"),
        (counts.bank_conflicts, "cycles more, for bank conflicts"),
        (replayed.requests, "reads of L2: TMA boxes, or lines"),
        (replayed.hits, "of them hits in L2"),
        (replayed.dram_read_bytes, "bytes read from DRAM"),
    ] {
        println!("{number:>14}  {what}");
    }
}

/// Writes all, or nothing.
fn write_trace(path: &Path, counts: &Counts) -> std::io::Result<()> {
    let mut text = Vec::new();
    writeln!(text, "time,cta,access,address,bytes")?;
    for request in &counts.requests {
        let access = if request.writes { "write" } else { "read" };
        let (time, cta, address) = (request.time, request.cta, request.address);
        writeln!(text, "{time},{cta},{access},{address:#x},{}", request.bytes)?;
    }
    fs::write(path, text)?;
    println!("\n{} requests in {}", counts.requests.len(), path.display());
    Ok(())
}
