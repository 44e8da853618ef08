//! `tilewise-bench bench` on one device: every problem, every candidate, every
//! regime.
//!
//! For each problem: fill the matrices, plan the candidates, check each
//! result, time the right ones in turns, drop everything.

mod timed;

use crate::candidate::{CHOSEN, Candidate, Label, Planned, TILEWISE, TUNED};
use crate::choice::{self, KernelChoice, Placement};
use crate::cli::BenchArgs;
use crate::device::Machine;
use crate::error::Error;
use crate::memory::L2Flush;
use crate::peers::cublaslt::CublasLt;
use crate::record::{Record, Regime, Status};
use crate::turns::Turns;
use crate::watch::{self, Expected, Watch, Watched};
use crate::workload::{Problem, Workload};
use gpu_kernels::{DType, OutputType};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use tilewise::{Device, Element, Output, Tuner, bf16, f16};

/// One run on one device.
pub struct Runner<'a> {
    args: &'a BenchArgs,
    watch: &'a Watch,
    device: Device,
    machine: Machine,
    flush: Option<L2Flush>,
    turns: Turns,
    cublaslt: Option<CublasLt>,
    tuner: Option<Tuner>,
}

/// Writes down what was measured so far.
pub type Save<'s> = &'s dyn Fn(&mut [Record]) -> Result<(), Error>;

/// What was measured, and where it is kept.
struct Rows<'r> {
    records: &'r mut Vec<Record>,
    save: Save<'r>,
}

impl Rows<'_> {
    fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    fn save(&mut self) -> Result<(), Error> {
        (self.save)(self.records)
    }
}

/// A candidate that planned and whose result was right.
struct Checked<T, O> {
    candidate: Box<dyn Candidate<T, O>>,
    relative_error: f64,
    modelled_dram_bytes: Option<u64>,
}

impl<'a> Runner<'a> {
    /// Prepares a run; `cublaslt` is measured beside tilewise where it is given. On the
    /// CPU, `watch` is idle.
    ///
    /// # Errors
    /// No memory for the buffer that empties L2.
    pub fn new(
        args: &'a BenchArgs,
        device: &Device,
        cublaslt: Option<CublasLt>,
        watch: &'a Watch,
    ) -> Result<Self, Error> {
        watch.begin(Duration::ZERO, "a buffer that empties L2");
        let flush = match device.gpu_info() {
            Some(info) => Some(L2Flush::new(device, info.l2_bytes as usize)?),
            None => None,
        };
        Ok(Runner {
            args,
            watch,
            device: device.clone(),
            machine: Machine::of(device),
            flush,
            turns: Turns::new(args.seed),
            cublaslt,
            tuner: args.tuner().filter(|_| device.is_gpu()),
        })
    }

    /// Measures every problem into `records`, and shows them to `save` after each regime of
    /// each: a long run that is ended has left what it measured. What is left to do with
    /// the GPU, such as freeing memory, is watched until somebody says that it rests.
    ///
    /// # Errors
    /// The device or `save` failed. A problem that the device cannot hold is a
    /// skipped record.
    pub fn run(
        &mut self,
        problems: &[Problem],
        records: &mut Vec<Record>,
        save: Save,
    ) -> Result<(), Error> {
        let mut rows = Rows { records, save };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let progress = ProgressBar::new(problems.len() as u64).with_style(style);
        for &problem in problems {
            progress.set_message(format!("{} {}", problem.shape, problem.dtype.name()));
            self.problem(problem, &mut rows)?;
            if !self.args.ncu {
                rows.save()?;
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn problem(&mut self, problem: Problem, rows: &mut Rows) -> Result<(), Error> {
        use OutputType::{F32, Input};
        match (problem.dtype, problem.output) {
            (DType::F32 | DType::Tf32, _) => self.typed::<f32, f32>(problem, rows),
            (DType::F16, Input) => self.typed::<f16, f16>(problem, rows),
            (DType::F16, F32) => self.typed::<f16, f32>(problem, rows),
            (DType::Bf16, Input) => self.typed::<bf16, bf16>(problem, rows),
            (DType::Bf16, F32) => self.typed::<bf16, f32>(problem, rows),
        }
    }

    fn typed<T: Element, O: Output<T>>(
        &mut self,
        problem: Problem,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let copied = watch::copying(problem.bytes());
        self.watch.begin(copied, format!("matrices, {problem}"));
        let mut workload = match Workload::<T, O>::new(&self.device, problem, self.args.seed) {
            Ok(workload) => workload,
            Err(Error::Tilewise(error @ tilewise::Error::OutOfMemory { .. })) => {
                let label = Label::of(TILEWISE);
                rows.push(self.failure(problem, &label, Status::Skipped, error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let candidates = self.candidates(&mut workload, rows)?;
        if self.args.ncu {
            return self.launch_once(candidates, &mut workload);
        }
        let mut checked = self.check(candidates, &mut workload, rows)?;
        if !checked.is_empty() && self.device.is_gpu() {
            self.time_on_gpu(&mut checked, &mut workload, rows)?;
        } else if !checked.is_empty() {
            self.time_on_cpu(&mut checked, &mut workload, rows)?;
        }
        // Candidates and matrices are dropped from here on.
        self.watch.begin(copied, format!("freeing, {problem}"));
        Ok(())
    }

    /// Plans every candidate; those that cannot run become skipped records.
    fn candidates<T: Element, O: Output<T>>(
        &mut self,
        workload: &mut Workload<T, O>,
        rows: &mut Rows,
    ) -> Result<Vec<Box<dyn Candidate<T, O>>>, Error> {
        let problem = workload.problem;
        let mut all: Vec<Box<dyn Candidate<T, O>>> = Vec::new();
        for kernel in self.kernels(problem.dtype) {
            self.begin_planning(problem, kernel, Placement::default());
            // A kernel that cannot run at all is said once, not once an order.
            if let Err(error) = Planned::new(&self.device, kernel, Placement::default(), workload) {
                rows.push(self.not_run(problem, kernel, Placement::default(), &error));
                continue;
            }
            for placement in self.placements(kernel) {
                self.begin_planning(problem, kernel, placement);
                match Planned::new(&self.device, kernel, placement, workload) {
                    // Two ways to force one thing are one candidate.
                    Ok(planned)
                        if all
                            .iter()
                            .any(|other| other.label().same_launch(planned.label())) => {}
                    Ok(planned) => all.push(Box::new(planned)),
                    Err(error) => rows.push(self.not_run(problem, kernel, placement, &error)),
                }
            }
        }
        if let Some(tuner) = &mut self.tuner {
            let limit = self.args.tune_budget + watch::TUNING;
            self.watch.begin_within(limit, format!("tuning, {problem}"));
            match Planned::tuned(&self.device, tuner, workload) {
                // Beside the chosen one, even where they launch the same.
                Ok(planned) => all.push(Box::new(planned)),
                Err(error) => {
                    self.watch.end_if_timed_out(&error);
                    let (label, note) = (Label::of(TUNED), error.to_string());
                    rows.push(self.failure(problem, &label, Status::Skipped, note));
                }
            }
        }
        if let (Some(cublaslt), Some(flush)) = (&self.cublaslt, &mut self.flush) {
            let (turns, watch) = (&mut self.turns, self.watch);
            let slowest = all.iter().map(|candidate| candidate.estimate()).max();
            let slowest = slowest.unwrap_or_default();
            let gemm = match self.args.ncu {
                true => cublaslt.first(workload),
                false => cublaslt.best(workload, flush, turns, watch, slowest),
            };
            match gemm {
                Ok(gemm) => all.push(Box::new(gemm)),
                Err(error @ Error::CublasLt { .. }) => {
                    let label = Label::of(&cublaslt.version);
                    let note = error.to_string();
                    rows.push(self.failure(problem, &label, Status::Skipped, note));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Kernels to compare, `None` for the library's choice. The CPU has none to
    /// force, and a suite forces none.
    fn kernels(&self, dtype: DType) -> Vec<Option<KernelChoice>> {
        if !self.device.is_gpu() || self.args.suite.is_some() {
            return vec![None];
        }
        let forced = match self.args.kernels.as_slice() {
            [] => KernelChoice::defaults(dtype),
            chosen => chosen,
        };
        let open = (self.args.forces_nothing() || self.tuner.is_some()).then_some(None);
        let forced = forced.iter().copied().map(Some);
        open.into_iter().chain(forced).collect()
    }

    /// Orders and schedules to compare with a kernel. The library's choice is
    /// left whole.
    fn placements(&self, kernel: Option<KernelChoice>) -> Vec<Placement> {
        match kernel {
            Some(_) => choice::placements(&self.args.orders, &self.args.schedules),
            None => vec![Placement::default()],
        }
    }

    /// The record of a combination that the library refuses.
    fn not_run(
        &self,
        problem: Problem,
        kernel: Option<KernelChoice>,
        placement: Placement,
        error: &tilewise::Error,
    ) -> Record {
        let label = self.asked(kernel, placement);
        self.failure(problem, &label, Status::Skipped, error.to_string())
    }

    /// What a combination is called before it is planned.
    fn asked(&self, kernel: Option<KernelChoice>, placement: Placement) -> Label {
        Label {
            implementation: match kernel {
                None if self.device.is_gpu() => CHOSEN,
                _ => TILEWISE,
            }
            .to_owned(),
            kernel: kernel.map_or(String::new(), |kernel| kernel.to_string()),
            order: placement
                .order
                .map_or(String::new(), |order| order.to_string()),
            schedule: placement
                .schedule
                .map_or("", choice::schedule_name)
                .to_owned(),
            ..Label::default()
        }
    }

    /// Planning loads kernels and allocates.
    fn begin_planning(&self, problem: Problem, kernel: Option<KernelChoice>, placement: Placement) {
        let label = self.asked(kernel, placement);
        let label = format!("planning, {problem}, {label}");
        self.watch.begin(Duration::ZERO, label);
    }

    fn launch_once<T: Element, O: Output<T>>(
        &self,
        mut candidates: Vec<Box<dyn Candidate<T, O>>>,
        workload: &mut Workload<T, O>,
    ) -> Result<(), Error> {
        let expected = candidates.iter().map(|candidate| expected(&**candidate));
        let watched = Watched::new(self.watch, workload.problem, expected.collect());
        for (index, candidate) in candidates.iter_mut().enumerate() {
            watched.wait("once", index, 1);
            candidate.launch(workload)?;
            self.device.synchronize()?;
            let label = candidate.label();
            println!(
                "launch {index}: {} {} {} {} {} {}",
                workload.problem.shape,
                workload.problem.dtype.name(),
                label.implementation,
                label.kernel,
                label.order,
                label.schedule
            );
        }
        Ok(())
    }

    /// Keeps the candidates whose result is right; the others become records.
    fn check<T: Element, O: Output<T>>(
        &self,
        candidates: Vec<Box<dyn Candidate<T, O>>>,
        workload: &mut Workload<T, O>,
        rows: &mut Rows,
    ) -> Result<Vec<Checked<T, O>>, Error> {
        let mut right = Vec::new();
        let problem = workload.problem;
        for mut candidate in candidates {
            let expected = candidate.estimate() + watch::copying(problem.bytes());
            let label = format!("checking, {problem}, {}", candidate.label());
            self.watch.begin(expected, label);
            match workload.check(|workload| candidate.launch(workload))? {
                Ok(relative_error) => right.push(Checked {
                    modelled_dram_bytes: candidate.modelled_dram_bytes(workload),
                    candidate,
                    relative_error,
                }),
                Err(wrong) => {
                    let label = candidate.label();
                    rows.push(self.failure(problem, label, Status::Wrong, wrong));
                }
            }
        }
        Ok(right)
    }

    fn failure(&self, problem: Problem, label: &Label, status: Status, note: String) -> Record {
        let regime = match self.device.is_gpu() {
            true => Regime::Cold,
            false => Regime::Wall,
        };
        Record {
            status,
            note,
            ..self.record(problem, label, regime)
        }
    }

    fn record(&self, problem: Problem, label: &Label, regime: Regime) -> Record {
        Record::new(&self.machine, problem, label, regime, self.args.seed)
    }
}

/// A candidate as a watch knows it.
fn expected<T, O>(candidate: &dyn Candidate<T, O>) -> Expected {
    Expected {
        name: candidate.label().to_string(),
        product: candidate.estimate(),
    }
}
