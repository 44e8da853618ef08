//! `tilewise-bench bench` on one device: every problem, every candidate, every
//! regime.
//!
//! For each problem: fill the matrices, plan the candidates, check each
//! result, time the right ones in turns, drop everything.

use crate::batch::Batches;
use crate::candidate::{CHOSEN, Candidate, Label, Planned, TILEWISE, TUNED};
use crate::choice::{self, KernelChoice, Placement};
use crate::cli::{BenchArgs, RegimeChoice};
use crate::device::Machine;
use crate::error::Error;
use crate::memory::L2Flush;
use crate::peers::cublaslt::CublasLt;
use crate::power::{self, Monitor};
use crate::record::{Record, Regime, Status};
use crate::regime::{self, Samples};
use crate::stats::{levelled, median};
use crate::turns::Turns;
use crate::workload::{Problem, Workload};
use gpu_kernels::{DType, OutputType};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use tilewise::{Device, Element, Output, Tuner, bf16, f16};

/// Time for cold (GPU) and wall (CPU) samples, a candidate.
const BUDGET: Duration = Duration::from_millis(250);

/// One run on one device.
pub struct Runner<'a> {
    args: &'a BenchArgs,
    device: Device,
    machine: Machine,
    flush: Option<L2Flush>,
    turns: Turns,
    cublaslt: Option<CublasLt>,
    tuner: Option<Tuner>,
}

/// A candidate that planned and whose result was right.
struct Checked<T, O> {
    candidate: Box<dyn Candidate<T, O>>,
    relative_error: f64,
    modelled_dram_bytes: Option<u64>,
}

impl<'a> Runner<'a> {
    /// Prepares a run; `cublaslt` is measured beside tilewise where it is given.
    ///
    /// # Errors
    /// No memory for the buffer that empties L2.
    pub fn new(
        args: &'a BenchArgs,
        device: &Device,
        cublaslt: Option<CublasLt>,
    ) -> Result<Self, Error> {
        let flush = match device.gpu_info() {
            Some(info) => Some(L2Flush::new(device, info.l2_bytes as usize)?),
            None => None,
        };
        Ok(Runner {
            args,
            device: device.clone(),
            machine: Machine::of(device),
            flush,
            turns: Turns::new(args.seed),
            cublaslt,
            tuner: args.tuner().filter(|_| device.is_gpu()),
        })
    }

    /// Measures every problem into `records`, and shows them to `save` after
    /// each: a long run that is ended from outside has left what it measured.
    ///
    /// # Errors
    /// The device or `save` failed. A problem that the device cannot hold is a
    /// skipped record.
    pub fn run(
        &mut self,
        problems: &[Problem],
        records: &mut Vec<Record>,
        save: &dyn Fn(&mut [Record]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let progress = ProgressBar::new(problems.len() as u64).with_style(style);
        for &problem in problems {
            progress.set_message(format!("{} {}", problem.shape, problem.dtype.name()));
            self.problem(problem, records)?;
            if !self.args.ncu {
                save(records)?;
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn problem(&mut self, problem: Problem, records: &mut Vec<Record>) -> Result<(), Error> {
        use OutputType::{F32, Input};
        match (problem.dtype, problem.output) {
            (DType::F32 | DType::Tf32, _) => self.typed::<f32, f32>(problem, records),
            (DType::F16, Input) => self.typed::<f16, f16>(problem, records),
            (DType::F16, F32) => self.typed::<f16, f32>(problem, records),
            (DType::Bf16, Input) => self.typed::<bf16, bf16>(problem, records),
            (DType::Bf16, F32) => self.typed::<bf16, f32>(problem, records),
        }
    }

    fn typed<T: Element, O: Output<T>>(
        &mut self,
        problem: Problem,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let mut workload = match Workload::<T, O>::new(&self.device, problem, self.args.seed) {
            Ok(workload) => workload,
            Err(Error::Tilewise(error @ tilewise::Error::OutOfMemory { .. })) => {
                let label = Label::of(TILEWISE);
                records.push(self.failure(problem, &label, Status::Skipped, error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let candidates = self.candidates(&mut workload, records)?;
        if self.args.ncu {
            return self.launch_once(candidates, &mut workload);
        }
        let mut checked = self.check(candidates, &mut workload, records)?;
        if checked.is_empty() {
            return Ok(());
        }
        if self.device.is_gpu() {
            self.time_on_gpu(&mut checked, &mut workload, records)
        } else {
            self.time_on_cpu(&mut checked, &mut workload, records)
        }
    }

    /// Plans every candidate; those that cannot run become skipped records.
    fn candidates<T: Element, O: Output<T>>(
        &mut self,
        workload: &mut Workload<T, O>,
        records: &mut Vec<Record>,
    ) -> Result<Vec<Box<dyn Candidate<T, O>>>, Error> {
        let problem = workload.problem;
        let mut all: Vec<Box<dyn Candidate<T, O>>> = Vec::new();
        for kernel in self.kernels(problem.dtype) {
            // A kernel that cannot run at all is said once, not once an order.
            if let Err(error) = Planned::new(&self.device, kernel, Placement::default(), workload) {
                records.push(self.not_run(problem, kernel, Placement::default(), &error));
                continue;
            }
            for placement in self.placements(kernel) {
                match Planned::new(&self.device, kernel, placement, workload) {
                    // Two ways to force one thing are one candidate.
                    Ok(planned)
                        if all
                            .iter()
                            .any(|other| other.label().same_launch(planned.label())) => {}
                    Ok(planned) => all.push(Box::new(planned)),
                    Err(error) => records.push(self.not_run(problem, kernel, placement, &error)),
                }
            }
        }
        if let Some(tuner) = &mut self.tuner {
            match Planned::tuned(&self.device, tuner, workload) {
                // Beside the chosen one, even where they launch the same.
                Ok(planned) => all.push(Box::new(planned)),
                Err(error) => {
                    let (label, note) = (Label::of(TUNED), error.to_string());
                    records.push(self.failure(problem, &label, Status::Skipped, note));
                }
            }
        }
        if let (Some(cublaslt), Some(flush)) = (&self.cublaslt, &mut self.flush) {
            let gemm = match self.args.ncu {
                true => cublaslt.first(workload),
                false => cublaslt.best(workload, flush, &mut self.turns),
            };
            match gemm {
                Ok(gemm) => all.push(Box::new(gemm)),
                Err(error @ Error::CublasLt { .. }) => {
                    let label = Label::of(&cublaslt.version);
                    let note = error.to_string();
                    records.push(self.failure(problem, &label, Status::Skipped, note));
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
        let label = Label {
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
        };
        self.failure(problem, &label, Status::Skipped, error.to_string())
    }

    fn launch_once<T: Element, O: Output<T>>(
        &self,
        mut candidates: Vec<Box<dyn Candidate<T, O>>>,
        workload: &mut Workload<T, O>,
    ) -> Result<(), Error> {
        for (index, candidate) in candidates.iter_mut().enumerate() {
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
        records: &mut Vec<Record>,
    ) -> Result<Vec<Checked<T, O>>, Error> {
        let mut right = Vec::new();
        for mut candidate in candidates {
            match workload.check(|workload| candidate.launch(workload))? {
                Ok(relative_error) => right.push(Checked {
                    modelled_dram_bytes: candidate.modelled_dram_bytes(workload),
                    candidate,
                    relative_error,
                }),
                Err(wrong) => {
                    let label = candidate.label();
                    records.push(self.failure(workload.problem, label, Status::Wrong, wrong));
                }
            }
        }
        Ok(right)
    }

    fn time_on_gpu<T: Element, O: Output<T>>(
        &mut self,
        checked: &mut [Checked<T, O>],
        workload: &mut Workload<T, O>,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let device = self.device.clone();
        let (Some(stream), Some(info)) = (device.stream(), device.gpu_info()) else {
            return Ok(());
        };
        let Some(flush) = &mut self.flush else {
            return Ok(());
        };
        let wanted = |regime| self.args.regimes.contains(&regime);
        let (count, problem) = (checked.len(), workload.problem);
        let budget = match self.args.smoke || !wanted(RegimeChoice::Cold) {
            true => Duration::ZERO,
            false => BUDGET * count as u32,
        };
        let start_monitor = || Monitor::start(info.ordinal).ok();
        let finish = |monitor: Option<Monitor>| monitor.map_or(Vec::new(), Monitor::finish);

        let monitor = start_monitor();
        let mut launch = |at: usize| checked[at].candidate.launch(workload);
        regime::warm_up(stream, count, &mut launch)?;
        let turns = &mut self.turns;
        let cold = regime::cold(stream, flush, turns, count, budget, &mut launch)?;
        let cold_power = finish(monitor);

        let mut sustained = None;
        if wanted(RegimeChoice::Sustained) {
            let expected: Vec<f64> = cold
                .iter()
                .filter_map(|samples| median(&samples.milliseconds))
                .collect();
            let mut batches = Batches::new(stream, &expected, &mut launch)?;
            let monitor = start_monitor();
            let sustain = self.args.sustain();
            let samples = regime::sustained(stream, turns, &expected, sustain, &mut batches)?;
            sustained = Some((samples, finish(monitor)));
        }
        if wanted(RegimeChoice::Cold) {
            self.push(problem, Regime::Cold, checked, &cold, &cold_power, records);
        }
        if let Some((samples, power)) = sustained {
            self.push(
                problem,
                Regime::Sustained,
                checked,
                &samples,
                &power,
                records,
            );
        }
        Ok(())
    }

    fn time_on_cpu<T: Element, O: Output<T>>(
        &mut self,
        checked: &mut [Checked<T, O>],
        workload: &mut Workload<T, O>,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let budget = if self.args.smoke {
            Duration::ZERO
        } else {
            BUDGET
        };
        let (count, problem) = (checked.len(), workload.problem);
        let mut launch = |at: usize| checked[at].candidate.launch(workload);
        let samples = regime::wall(&mut self.turns, count, budget, &mut launch)?;
        self.push(problem, Regime::Wall, checked, &samples, &[], records);
        Ok(())
    }

    fn push<T, O>(
        &self,
        problem: Problem,
        regime: Regime,
        checked: &[Checked<T, O>],
        samples: &[Samples],
        power: &[power::Sample],
        records: &mut Vec<Record>,
    ) {
        let cublaslt = checked
            .iter()
            .position(|checked| {
                checked
                    .candidate
                    .label()
                    .implementation
                    .starts_with("cuBLASLt")
            })
            .map(|at| samples[at].milliseconds.as_slice());
        let all: Vec<&[f64]> = (samples.iter())
            .map(|samples| samples.milliseconds.as_slice())
            .collect();
        let levelled = levelled(&all);
        for (at, (checked, samples)) in checked.iter().zip(samples).enumerate() {
            let mut record = self.record(problem, checked.candidate.label(), regime);
            let summary = power::summarise(power, &samples.spans);
            record.relative_error = Some(checked.relative_error);
            record.sm_clock_mhz = summary.sm_clock_mhz;
            record.power_w = summary.power_w;
            record.temperature_c = summary.temperature_c;
            record.throttle = summary.throttle;
            record.modelled_dram_gb = checked.modelled_dram_bytes.map(|bytes| bytes as f64 / 1e9);
            record.products_per_graph = samples.products_per_graph;
            if let Some(why) = &samples.not_captured {
                record.add_note(why);
            }
            record.set_times(&samples.milliseconds);
            if let Some(levelled) = &levelled {
                record.levelled_ms = Some(levelled[at].time);
                record.levelled_error = levelled[at].error;
            }
            if let Some(cublaslt) = cublaslt {
                record.set_pairs(cublaslt, &samples.milliseconds);
            }
            records.push(record);
        }
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
