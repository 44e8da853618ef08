//! The candidates of a problem, checked, become rows: one regime after the other, saved
//! after each.

use super::{Checked, Rows, Runner, expected};
use crate::candidates::candidate::{TILEWISE, is_cublaslt};
use crate::error::Error;
use crate::measure::batch::Batches;
use crate::measure::power::{self, Monitor};
use crate::measure::problem_data::ProblemData;
use crate::measure::regime::{self, Regime, Samples};
use crate::measure::stats::{levelled, median};
use crate::measure::watch::Watched;
use crate::problem::spec::ProblemSpec;
use std::time::Duration;
use tilewise::{Element, Output};

/// Forced kernels that are measured in the sustained regime where all were measured cold.
const SUSTAINED: usize = 12;

/// Which of `checked` are measured in the sustained regime where all were measured cold: what
/// was not forced, and the [`SUSTAINED`] that are fastest by `times`.
fn fastest<T, O>(checked: &[Checked<T, O>], times: &[f64]) -> Vec<bool> {
    let is_forced = |at: &usize| checked[*at].candidate.label().implementation == TILEWISE;
    let mut forced: Vec<usize> = (0..checked.len()).filter(is_forced).collect();
    forced.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    let slow = forced.get(SUSTAINED..).unwrap_or_default();
    (0..checked.len()).map(|at| !slow.contains(&at)).collect()
}

/// Keeps the elements whose flag is set.
fn retain_at<E>(elements: &mut Vec<E>, flags: &[bool]) {
    let mut flags = flags.iter();
    elements.retain(|_| flags.next().is_some_and(|flag| *flag));
}

impl Runner<'_> {
    /// The cold regime, then the sustained one, as far as they are wanted. The cold one
    /// always runs, because the sustained one needs the time of a product.
    pub(super) fn time_on_gpu<T: Element, O: Output<T>>(
        &mut self,
        mut checked: Vec<Checked<T, O>>,
        workload: &mut ProblemData<T, O>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let device = self.device.clone();
        let (Some(stream), Some(info)) = (device.cust_stream(), device.gpu_info()) else {
            return Ok(());
        };
        let Some(flush) = &mut self.flush else {
            return Ok(());
        };
        let wanted = |regime| self.args.regimes.contains(&regime);
        let (count, problem) = (checked.len(), workload.problem);
        let budget = match wanted(Regime::Cold) {
            true => self.args.single_samples() * count as u32,
            false => Duration::ZERO,
        };
        let start_monitor = || Monitor::start(info.ordinal).ok();
        let finish = |monitor: Option<Monitor>| monitor.map_or(Vec::new(), Monitor::finish);

        let expected = checked.iter().map(|checked| expected(&*checked.candidate));
        let mut watched = Watched::new(self.watch, problem, expected.collect());
        watched.begin("before the first launch");

        let monitor = start_monitor();
        let mut launch = |at: usize| checked[at].candidate.launch(workload);
        regime::warm_up(stream, &watched, &mut launch)?;
        let turns = &mut self.turns;
        let cold = regime::cold(stream, flush, turns, &watched, budget, &mut launch)?;
        let power = finish(monitor);
        if wanted(Regime::Cold) {
            self.push(problem, Regime::Cold, &checked, &cold, &power, rows);
            self.keep(rows)?;
        }
        if !wanted(Regime::Sustained) {
            return Ok(());
        }

        let mut expected: Vec<f64> = cold
            .iter()
            .filter_map(|samples| median(&samples.milliseconds))
            .collect();
        if self.args.every_kernel {
            let fastest = fastest(&checked, &expected);
            retain_at(&mut checked, &fastest);
            retain_at(&mut expected, &fastest);
            let names = checked
                .iter()
                .map(|checked| super::expected(&*checked.candidate));
            watched = Watched::new(self.watch, problem, names.collect());
        }
        watched.expect(&expected);
        watched.begin("before the first batch");
        let mut launch = |at: usize| checked[at].candidate.launch(workload);
        let mut batches = Batches::new(stream, &watched, &expected, &mut launch)?;
        let monitor = start_monitor();
        let (turns, sustain) = (&mut self.turns, self.args.sustain());
        let samples = regime::sustained(stream, turns, &watched, &expected, sustain, &mut batches)?;
        // Before the rows, so that the wait for them is watched.
        drop(batches);
        let power = finish(monitor);
        self.push(problem, Regime::Sustained, &checked, &samples, &power, rows);
        self.keep(rows)
    }

    /// Saves the records. No watch runs meanwhile, however long the file takes.
    fn keep(&self, rows: &mut Rows) -> Result<(), Error> {
        self.watch.rest();
        (rows.save)(rows.records)
    }

    /// On the host's clock.
    pub(super) fn time_on_cpu<T: Element, O: Output<T>>(
        &mut self,
        checked: &mut [Checked<T, O>],
        workload: &mut ProblemData<T, O>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let budget = self.args.single_samples();
        let (count, problem) = (checked.len(), workload.problem);
        let mut launch = |at: usize| checked[at].candidate.launch(workload);
        let samples = regime::wall(&mut self.turns, count, budget, &mut launch)?;
        self.push(problem, Regime::Wall, checked, &samples, &[], rows);
        Ok(())
    }

    fn push<T, O>(
        &self,
        problem: ProblemSpec,
        regime: Regime,
        checked: &[Checked<T, O>],
        samples: &[Samples],
        power: &[power::PowerSample],
        rows: &mut Rows,
    ) {
        let cublaslt = checked
            .iter()
            .position(|checked| is_cublaslt(&checked.candidate.label().implementation))
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
            rows.records.push(record);
        }
    }
}
