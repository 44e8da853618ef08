//! `tilewise-bench bench`: with a GPU the measurements, without one the model and the CPU
//! device.

use crate::candidates::candidate::Label;
use crate::candidates::cublaslt::CublasLt;
use crate::candidates::triton::{self, TritonJob};
use crate::error::Error;
use crate::measure::inputs::DATA;
use crate::measure::machine::{self, DeviceChoice, Machine};
use crate::measure::peak;
use crate::measure::power::Monitor;
use crate::measure::regime::Regime;
use crate::measure::watch::Watch;
use crate::modelled::orders::{self, ModelledProblem};
use crate::modelled::selection::H200;
use crate::page::html;
use crate::problem::names::{self, KernelChoice};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::records::comparison::comparisons;
use crate::records::files;
use crate::records::record::{self, Record, Status};
use crate::runner::bench_arguments::BenchArgs;
use crate::runner::run::Runner;
use crate::tables::{comparison_table, invariance_cost, record_tables, suite_summary, tuning_gain};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tilewise::Device;

/// Shapes of a smoke run on a GPU.
const SMALL: [GemmShape; 2] = [GemmShape::new(512, 768, 256), GemmShape::new(255, 257, 129)];

/// Runs the command; prints tables, writes files.
///
/// # Errors
/// A GPU was asked for and there is none, the device failed, or a file cannot
/// be written. What was measured before is printed and written all the same.
pub fn run(args: &BenchArgs) -> Result<(), Error> {
    if let Some(path) = &args.html {
        html::module(path)?;
    }
    if args.device == Some(DeviceChoice::Cpu) {
        return without_gpu(args, "The CPU was asked for.");
    }
    let output = Output::new(args);
    let watch = Watch::new(&args.wait, {
        let output = output.clone();
        move || output.print()
    });
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = machine::open(args.device)?;
    if device.is_gpu() {
        let result = on_gpu(args, &device, &watch, &output);
        watch.close();
        return result;
    }
    watch.rest();
    let reason = match Device::gpu(0) {
        Err(error) => error.to_string(),
        Ok(gpu) => format!("this build has no kernel for {}", gpu.name()),
    };
    without_gpu(args, &format!("No GPU to measure on: {reason}."))
}

/// The records so far and the texts made of them, which the run prints at its end, or the
/// watchdog that ends the run.
#[derive(Clone)]
struct Output {
    records: Arc<Mutex<Vec<Record>>>,
    /// The title of the summary and its groups; `None` where kernels, orders and schedules
    /// are compared.
    summary: Option<(String, Vec<suite_summary::ProblemGroup>)>,
    tune: bool,
    batch_invariant: bool,
    /// The files that are written.
    files: Vec<String>,
}

impl Output {
    fn new(args: &BenchArgs) -> Output {
        let files = [&args.json, &args.csv, &args.html].into_iter().flatten();
        Output {
            records: Arc::default(),
            summary: args.only_choice().then(|| {
                let title = match &args.suite {
                    Some(suite) => format!("suite {suite}"),
                    None => "--choice".to_owned(),
                };
                let problems = args.problems(&SMALL);
                (title, suite_summary::groups(args.suite.as_ref(), &problems))
            }),
            tune: args.tune,
            batch_invariant: args.batch_invariant,
            files: files.map(|path| path.display().to_string()).collect(),
        }
    }

    fn keep(&self, records: &[Record]) {
        let mut kept = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = records.to_vec();
    }

    /// The tables of the records, and the names of the files.
    fn text(&self) -> String {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.is_empty() {
            return String::new();
        }
        let mut text = comparison_table::render(&comparisons(&records));
        text += &format!(
            "{}\n{}\n",
            record_tables::render(&records),
            record_tables::LEGEND
        );
        if let Some((title, groups)) = &self.summary {
            text += &suite_summary::render(title, groups, &records);
        }
        if self.batch_invariant {
            text += &invariance_cost::render(&records);
        }
        if self.tune {
            text += &tuning_gain::render(&records);
        }
        if !self.files.is_empty() {
            text += &format!("{} rows in {}\n", records.len(), self.files.join(", "));
        }
        text
    }

    fn print(&self) {
        print!("{}", self.text());
    }
}

fn on_gpu(args: &BenchArgs, device: &Device, watch: &Watch, output: &Output) -> Result<(), Error> {
    watch.begin(Duration::ZERO, "opening cuBLASLt");
    let cublaslt = match args.no_peers {
        true => Err("--no-peers".to_owned()),
        false => CublasLt::open(device, args.cublaslt.as_deref(), &args.python),
    };
    watch.rest();
    let triton = match args.wants_triton() {
        true => triton::probe(&args.python),
        false if args.no_peers => Err("--no-peers".to_owned()),
        false => Err("no --triton".to_owned()),
    };
    watch.begin(Duration::ZERO, "clocks and power");
    print_head(args, device);
    match &cublaslt {
        Ok(library) => println!(
            "{}, best of its first 8 heuristics: {}",
            library.version,
            library.path.display()
        ),
        Err(reason) => println!("cuBLASLt not measured: {reason}"),
    }
    if let Err(reason) = &triton {
        println!("Triton not measured: {reason}");
    }

    let problems = args.problems(&SMALL);
    let mut runner = Runner::new(args, device, cublaslt.ok(), watch)?;
    let mut records = Vec::new();
    let mut save = |records: &mut [Record]| save(args, records, output);
    let result = runner.run(&problems, &mut records, &mut save);
    if args.ncu {
        return result;
    }
    watch.rest();
    if result.is_ok() && triton.is_ok() {
        with_triton(args, &problems, &Machine::of(device), &mut records);
    }
    // Before the tables, which show the speedups that this fills in.
    let saved = save(&mut records);
    output.print();
    watch.begin(Duration::ZERO, "closing cuBLASLt");
    result.and(saved)
}

/// The machine, once, above all tables.
fn print_head(args: &BenchArgs, device: &Device) {
    let machine = Machine::of(device);
    println!(
        "{}  compute capability {}  driver CUDA {}  kernels by {}",
        machine.device, machine.compute_capability, machine.driver, machine.toolchain
    );
    if let Some(chip) = machine.chip {
        for dtype in args.dtypes() {
            println!("{}", peak::describe(chip, dtype));
        }
    }
    println!("inputs {} from seed {}", DATA, args.seed);
    let monitor = device.gpu_info().map(|info| Monitor::start(info.ordinal));
    if let Some(Err(reason)) = monitor.map(|monitor| monitor.map(Monitor::finish)) {
        println!("no clocks and power: {reason}");
    }
}

/// Adds Triton's records, which its own process measures.
pub(super) fn with_triton(
    args: &BenchArgs,
    problems: &[ProblemSpec],
    machine: &Machine,
    records: &mut Vec<Record>,
) {
    let job = TritonJob {
        python: &args.python,
        problems,
        regimes: &args.regimes,
        seed: args.seed,
        sustain: args.sustain(),
        cold: args.single_samples(),
    };
    let outcome = match job.run() {
        Ok(outcome) => outcome,
        Err(reason) => return println!("Triton not measured: {reason}"),
    };
    if let Some(trouble) = &outcome.trouble {
        println!("Triton's process: {trouble}");
    }
    let record = |case: usize, kernel: &str, regime| {
        let label = Label {
            kernel: kernel.to_owned(),
            ..Label::of(format!("Triton {}", outcome.version))
        };
        let problem = problems.get(case)?;
        Some(Record {
            interleaved: false,
            ..Record::new(machine, *problem, &label, regime, args.seed)
        })
    };
    for timed in &outcome.timed {
        records.extend(
            record(timed.case, &timed.config, timed.regime).map(|mut record| {
                record.relative_error = Some(timed.relative_error);
                record.set_times(&timed.milliseconds);
                record
            }),
        );
    }
    for (case, reason) in &outcome.skipped {
        records.extend(record(*case, "", Regime::Cold).map(|record| Record {
            status: Status::Skipped,
            note: reason.clone(),
            ..record
        }));
    }
}

fn without_gpu(args: &BenchArgs, reason: &str) -> Result<(), Error> {
    println!("{reason}");
    if args.tune {
        println!("--tune: without a GPU there is nothing to measure.");
    }
    let modelled = args.problems(&[GemmShape::new(4096, 4096, 4096)]);
    let placements = names::placements(&args.orders, &args.schedules);
    let products: Vec<ModelledProblem> = modelled
        .into_iter()
        .map(|problem| {
            let kernels = match args.kernels.as_slice() {
                [] if args.only_choice() => &[],
                [] => KernelChoice::defaults(problem.dtype),
                chosen => chosen,
            };
            let nothing_forced = args.forces_nothing();
            ModelledProblem::new(problem, kernels, &placements, nothing_forced, &H200)
        })
        .collect();
    print!("{}", orders::comparison(&products, &H200));
    println!(
        "\nBlock loads and L2 traffic that the orders would cause on an {}. Modelled, not measured.\n\
         Tiles are of a CTA, or of a cluster, which loads its blocks of B once.",
        H200.name
    );
    for product in &products {
        print!("{}", product.table());
    }

    let device = Device::cpu();
    println!(
        "\nThe library's CPU device, timed: {}",
        Machine::of(&device).device
    );
    let mut records = Vec::new();
    let (watch, output) = (Watch::idle(), Output::new(args));
    let mut runner = Runner::new(args, &device, None, &watch)?;
    let shapes = if args.smoke { 1 } else { usize::MAX };
    let problems = args.problems_at(&GemmShape::CPU[..GemmShape::CPU.len().min(shapes)]);
    let mut save = |records: &mut [Record]| save(args, records, &output);
    let result = runner.run(&problems, &mut records, &mut save);
    print!("{}", record_tables::render(&records));
    result
}

/// Fills in the figures that need other records, and writes the files that were asked for.
fn save(args: &BenchArgs, records: &mut [Record], output: &Output) -> Result<(), Error> {
    record::fill_speedups(records);
    output.keep(records);
    if let Some(path) = &args.json {
        files::write_json(records, path)?;
    }
    if let Some(path) = &args.csv {
        files::write_csv(records, path)?;
    }
    if let Some(path) = &args.html {
        html::write_records(records, path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
