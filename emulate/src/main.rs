//! `tilewise-emulate`: one product, on the CPU, by the kernel that a GPU would run.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use gpu_kernels::{Block, DType, KernelInfo, OutputType, Schedule, TileOrder};
use indicatif::{ProgressBar, ProgressStyle};
use tilewise::emulator::{EmulatedGpu, Estimate, Progress};
use tilewise_benches::modelled::selection::H200;
use tilewise_benches::problem::names::{
    KernelChoice, parse_dtype, parse_output, parse_schedule, schedule_name,
};
use tilewise_benches::problem::shape::{BlasLayout, GemmShape};
use tilewise_emulate::{Case, Outcome, Values, limits, pick, run};

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
    shape: GemmShape,
    /// f16, bf16, tf32, f16x3 or f32
    #[arg(long, default_value = "f16", value_parser = parse_dtype)]
    dtype: DType,
    /// How A and B are stored: nn, nt, tn or tt [default: as the kernel reads them
    /// best, nt for a family]
    #[arg(long)]
    layout: Option<BlasLayout>,
    /// Type of C: input or f32
    #[arg(long, default_value = "input", value_parser = parse_output)]
    output: OutputType,
    /// A CTA's tile, MxNxK [default: the rule's]
    #[arg(long)]
    block: Option<GemmShape>,
    /// row, col, grouped:SIZE, groupedn:SIZE, serpentine:SIZE, serpentinen:SIZE, morton
    /// or hilbert; several, with commas between, are compared [default: the rule's]
    #[arg(long, value_delimiter = ',')]
    order: Vec<TileOrder>,
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
    /// Refuse a product that would take longer than this, seconds
    #[arg(long, default_value_t = 3600.0)]
    time_limit: f64,
    /// Memory of the emulated GPU, MiB; each byte takes nine of this machine's
    #[arg(long, default_value_t = 1024)]
    memory_limit: u64,
    /// Capacity of the L2 that the requests are run through, KiB; an H200's unless given
    #[arg(long, default_value_t = H200.target.l2_bytes >> 10)]
    l2: u64,
    /// Write the requests to L2, in the order of time, to this file, as CSV
    #[arg(long)]
    trace: Option<PathBuf>,
}

fn main() -> ExitCode {
    match compare_or_count(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare_or_count(arguments: &Arguments) -> Result<(), String> {
    let orders = &arguments.order;
    if orders.len() < 2 {
        let case = case(arguments, orders.first().copied())?;
        let done = emulate(arguments, &case)?;
        report::print_counts(&done.counts, arguments.l2 << 10);
        return match &arguments.trace {
            Some(path) => report::write_trace(path, &done.counts)
                .map_err(|error| format!("cannot write {}: {error}", path.display())),
            None => Ok(()),
        };
    }
    if arguments.trace.is_some() {
        return Err("--trace writes one order's requests, and --order names several".into());
    }
    let mut rows = Vec::new();
    for &order in orders {
        let case = case(arguments, Some(order))?;
        rows.push((order, emulate(arguments, &case)?.counts));
    }
    report::print_orders(&rows, arguments.l2 << 10);
    Ok(())
}

/// Prints the estimate for `case`, then runs it in every order of events that the arguments
/// request. Returns the outcome of the first run.
fn emulate(arguments: &Arguments, case: &Case) -> Result<Outcome, String> {
    let KernelInfo { name, threads, .. } = *case.kernel();
    println!(
        "{name}: {} {}, order {}, {}, on {} simulated SMs",
        arguments.shape,
        case.kernel().input.name(),
        case.choice.order,
        schedule_name(case.choice.schedule),
        arguments.sms
    );
    let gpu = gpu(arguments, arguments.seed)?;
    let estimate = Estimate::of(&case.choice, &case.problem(), &gpu);
    println!(
        "{} CTAs, {} tiles, {} k-blocks in all: about {} and {} of memory",
        estimate.ctas,
        estimate.tiles,
        estimate.k_blocks,
        limits::in_words(estimate.time),
        limits::mebibytes(estimate.host_bytes)
    );
    limits::check(&estimate, &gpu).map_err(|error| error.to_string())?;
    let mut first = None;
    for index in 0..arguments.schedules {
        let seed = arguments.seed.wrapping_add(index);
        let begin = Instant::now();
        let bar = progress(&estimate, seed);
        let ended = bar.clone();
        let gpu = EmulatedGpu {
            seed,
            progress: Some(Progress::new(move |ctas| ended.inc(ctas.into()))),
            ..gpu.clone()
        };
        let result = run(case, &gpu);
        bar.finish_and_clear();
        let done = result.map_err(|error| failure(&error.to_string(), seed))?;
        println!(
            "seed {seed}: right, by {} CTAs of {threads} threads; largest error {:.2e}; {:.2} s",
            estimate.ctas,
            done.largest_error,
            begin.elapsed().as_secs_f64()
        );
        first.get_or_insert(done);
    }
    Ok(first.expect("--schedules is 1 at least"))
}

/// The case that the arguments describe, with this order of tiles.
fn case(arguments: &Arguments, order: Option<TileOrder>) -> Result<Case, String> {
    let size = |name: &str, extent: usize| {
        u32::try_from(extent).map_err(|_| format!("{name} is {extent}, accepted: below 2^32"))
    };
    let GemmShape { m, n, k } = arguments.shape;
    let (m, n, k) = (size("M", m)?, size("N", n)?, size("K", k)?);
    let block = match arguments.block {
        Some(GemmShape { m, n, k }) => Some(Block {
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
        order,
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

/// The GPU that the arguments describe.
fn gpu(arguments: &Arguments, seed: u64) -> Result<EmulatedGpu, String> {
    let time_limit = Duration::try_from_secs_f64(arguments.time_limit);
    let time_limit =
        time_limit.map_err(|error| format!("--time-limit {}: {error}", arguments.time_limit))?;
    let sms = arguments.sms.max(1);
    Ok(EmulatedGpu {
        sms,
        memory_bytes: arguments.memory_limit.saturating_mul(1 << 20),
        time_limit,
        checks: !arguments.no_checks,
        seed,
        slots: sms,
        workers: arguments.workers,
        trace: true,
        ..EmulatedGpu::default()
    })
}

/// A progress bar of the CTAs that have ended, with the elapsed and the estimated time.
fn progress(estimate: &Estimate, seed: u64) -> ProgressBar {
    let template = "{bar:30} {pos}/{len} CTAs, {elapsed} of {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let about = limits::in_words(estimate.time);
    let bar = ProgressBar::new(estimate.ctas)
        .with_style(style)
        .with_message(format!("about {about}, seed {seed}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The error message, and how to reproduce the error.
fn failure(message: &str, seed: u64) -> String {
    format!("{message}\n\nseed {seed} does the same again: --seed {seed} --schedules 1")
}
