//! `tilewise-bench bench` on one device: every problem, every candidate, every
//! regime.
//!
//! For each problem: fill the matrices, plan the candidates, check each
//! result, time the right ones in turns, drop everything.

mod planning;
mod timed;

use crate::candidates::candidate::{Candidate, Label, TILEWISE};
use crate::candidates::cublaslt::CublasLt;
use crate::error::Error;
use crate::measure::machine::Machine;
use crate::measure::memset::L2Flush;
use crate::measure::problem_data::ProblemData;
use crate::measure::regime::Regime;
use crate::measure::turns::Turns;
use crate::measure::watch::{self, Expected, Watch, Watched};
use crate::problem::spec::ProblemSpec;
use crate::records::record::{Record, Status};
use crate::runner::bench_arguments::BenchArgs;
use gpu_kernels::DType;
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

/// Writes down the records so far.
pub type Save<'s> = &'s mut dyn FnMut(&mut [Record]) -> Result<(), Error>;

/// The records, and how they are saved.
struct Rows<'r> {
    records: &'r mut Vec<Record>,
    save: Save<'r>,
}

/// A candidate whose plan was made and whose result was right.
struct Checked<T, O> {
    candidate: Box<dyn Candidate<T, O>>,
    relative_error: f64,
    modelled_dram_bytes: Option<u64>,
}

impl<'a> Runner<'a> {
    /// Prepares a run. cuBLASLt is measured too where it is given. On the CPU, `watch` is
    /// idle.
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

    /// Measures every problem into `records`, and passes them to `save` after each regime of
    /// each problem, so that a long run that is ended leaves its measurements. The watch
    /// goes on after the last problem, while memory is freed, until the caller lets it rest.
    ///
    /// # Errors
    /// The device or `save` failed. A problem that the device cannot hold is a
    /// skipped record.
    pub fn run(
        &mut self,
        problems: &[ProblemSpec],
        records: &mut Vec<Record>,
        save: Save,
    ) -> Result<(), Error> {
        let mut rows = Rows { records, save };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
            .expect("the template is valid");
        let progress = ProgressBar::new(problems.len() as u64).with_style(style);
        for &problem in problems {
            progress.set_message(format!("{} {}", problem.shape, problem.dtype.name()));
            self.problem(problem, &mut rows)?;
            if !self.args.ncu {
                (rows.save)(rows.records)?;
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn problem(&mut self, problem: ProblemSpec, rows: &mut Rows) -> Result<(), Error> {
        match (problem.dtype, problem.output.dtype(problem.dtype)) {
            (DType::F16, DType::F16) => self.typed::<f16, f16>(problem, rows),
            (DType::F16, DType::Bf16) => self.typed::<f16, bf16>(problem, rows),
            (DType::F16, _) => self.typed::<f16, f32>(problem, rows),
            (DType::Bf16, DType::F16) => self.typed::<bf16, f16>(problem, rows),
            (DType::Bf16, DType::Bf16) => self.typed::<bf16, bf16>(problem, rows),
            (DType::Bf16, _) => self.typed::<bf16, f32>(problem, rows),
            (_, DType::F16) => self.typed::<f32, f16>(problem, rows),
            (_, DType::Bf16) => self.typed::<f32, bf16>(problem, rows),
            (_, _) => self.typed::<f32, f32>(problem, rows),
        }
    }

    fn typed<T: Element, O: Output<T>>(
        &mut self,
        problem: ProblemSpec,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let copied = watch::copying(problem.bytes());
        self.watch.begin(copied, format!("matrices, {problem}"));
        let mut workload = match ProblemData::<T, O>::new(&self.device, problem, self.args.seed) {
            Ok(workload) => workload,
            Err(Error::Tilewise(error @ tilewise::Error::OutOfMemory { .. })) => {
                let label = Label::of(TILEWISE);
                rows.records.push(self.failure(
                    problem,
                    &label,
                    Status::Skipped,
                    error.to_string(),
                ));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let candidates = self.candidates(&mut workload, rows)?;
        if self.args.ncu {
            return self.launch_once(candidates, &mut workload);
        }
        let mut checked = self.check(candidates, &mut workload, rows)?;
        match self.device.is_gpu() {
            _ if checked.is_empty() => {}
            true => self.time_on_gpu(checked, &mut workload, rows)?,
            false => self.time_on_cpu(&mut checked, &mut workload, rows)?,
        }
        // Candidates and matrices are dropped from here on.
        self.watch.begin(copied, format!("freeing, {problem}"));
        Ok(())
    }

    fn launch_once<T: Element, O: Output<T>>(
        &self,
        mut candidates: Vec<Box<dyn Candidate<T, O>>>,
        workload: &mut ProblemData<T, O>,
    ) -> Result<(), Error> {
        let expected = candidates.iter().map(|candidate| expected(&**candidate));
        let watched = Watched::new(self.watch, workload.problem, expected.collect());
        for (index, candidate) in candidates.iter_mut().enumerate() {
            watched.wait("once", index, 1);
            candidate.launch(workload)?;
            self.device.synchronize()?;
            let ProblemSpec { shape, dtype, .. } = workload.problem;
            let (dtype, label) = (dtype.name(), candidate.label());
            println!("launch {index}: {shape} {dtype} {label}");
        }
        Ok(())
    }

    /// Keeps the candidates whose result is right; the others become records.
    fn check<T: Element, O: Output<T>>(
        &self,
        candidates: Vec<Box<dyn Candidate<T, O>>>,
        workload: &mut ProblemData<T, O>,
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
                    rows.records
                        .push(self.failure(problem, label, Status::Wrong, wrong));
                }
            }
        }
        Ok(right)
    }

    fn failure(&self, problem: ProblemSpec, label: &Label, status: Status, note: String) -> Record {
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

    fn record(&self, problem: ProblemSpec, label: &Label, regime: Regime) -> Record {
        Record::new(&self.machine, problem, label, regime, self.args.seed)
    }
}

/// A candidate's name and estimate, for the watch.
fn expected<T, O>(candidate: &dyn Candidate<T, O>) -> Expected {
    Expected {
        name: candidate.label().to_string(),
        product: candidate.estimate(),
    }
}
