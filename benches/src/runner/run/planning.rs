//! The candidates of a problem, planned.

use super::{Rows, Runner};
use crate::candidates::candidate::{CHOSEN, Candidate, INVARIANT, Label, TILEWISE, TUNED};
use crate::candidates::cublaslt::CublasLtGemm;
use crate::candidates::planned::Planned;
use crate::error::Error;
use crate::measure::problem_data::ProblemData;
use crate::measure::watch;
use crate::modelled::selection;
use crate::problem::names::{self, KernelChoice, Placement};
use crate::problem::spec::ProblemSpec;
use crate::records::record::{Record, Status};
use crate::text_table::text_or_empty;
use std::time::Duration;
use tilewise::{Element, Output};

impl Runner<'_> {
    /// Plans every candidate. A candidate that cannot run becomes a skipped record.
    pub(super) fn candidates<T: Element, O: Output<T>>(
        &mut self,
        workload: &mut ProblemData<T, O>,
        rows: &mut Rows,
    ) -> Result<Vec<Box<dyn Candidate<T, O>>>, Error> {
        let problem = workload.problem;
        let mut all: Vec<Box<dyn Candidate<T, O>>> = Vec::new();
        for kernel in self.kernels(problem) {
            self.begin_planning(problem, kernel, Placement::default());
            // A kernel that cannot run at all is reported once, not once for each order.
            let planned = Planned::new(&self.device, kernel, Placement::default(), workload);
            let launches = match planned {
                Ok(chosen) => self.launches(kernel, &chosen),
                Err(error) => {
                    rows.records
                        .push(self.not_run(problem, kernel, Placement::default(), &error));
                    continue;
                }
            };
            for (kernel, placement) in launches {
                self.begin_planning(problem, kernel, placement);
                match Planned::new(&self.device, kernel, placement, workload) {
                    // Two ways to force the same launch are one candidate.
                    Ok(planned)
                        if all
                            .iter()
                            .any(|other| other.label().same_launch(planned.label())) => {}
                    Ok(planned) => all.push(Box::new(planned)),
                    Err(error) => rows
                        .records
                        .push(self.not_run(problem, kernel, placement, &error)),
                }
            }
        }
        if self.args.batch_invariant {
            let label = Label::of(INVARIANT);
            let planning = format!("planning, {problem}, {label}");
            self.watch.begin(Duration::ZERO, planning);
            match Planned::invariant(&self.device, workload) {
                // Beside the chosen one, even where they launch the same.
                Ok(planned) => all.push(Box::new(planned)),
                Err(error) => {
                    let note = error.to_string();
                    rows.records
                        .push(self.failure(problem, &label, Status::Skipped, note));
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
                    rows.records
                        .push(self.failure(problem, &label, Status::Skipped, note));
                }
            }
        }
        if let (Some(cublaslt), Some(flush)) = (&self.cublaslt, &mut self.flush) {
            let (turns, watch) = (&mut self.turns, self.watch);
            let slowest = all.iter().map(|candidate| candidate.estimate()).max();
            let slowest = slowest.unwrap_or_default();
            let gemm = match self.args.ncu {
                true => CublasLtGemm::new(cublaslt, workload),
                false => CublasLtGemm::fastest(cublaslt, workload, flush, turns, watch, slowest),
            };
            match gemm {
                Ok(gemm) => all.push(Box::new(gemm)),
                Err(error @ Error::CublasLt { .. }) => {
                    let label = Label::of(&cublaslt.version);
                    let note = error.to_string();
                    rows.records
                        .push(self.failure(problem, &label, Status::Skipped, note));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Kernels to compare, `None` for the library's choice. The CPU has none to
    /// force, and a suite and `--choice` force none unless every kernel is wanted.
    fn kernels(&self, problem: ProblemSpec) -> Vec<Option<KernelChoice>> {
        let target = self.device.gpu_info().map(|info| info.target());
        if let Some(target) = target.filter(|_| self.args.every_kernel) {
            let names = selection::kernels_worth_measuring(problem, &target);
            let count = self.args.fastest_expected.unwrap_or(names.len());
            let forced = names
                .into_iter()
                .take(count)
                .map(|name| Some(KernelChoice::Entry(name)));
            return [None].into_iter().chain(forced).collect();
        }
        if !self.device.is_gpu() || self.args.only_choice() {
            return vec![None];
        }
        let forced = match self.args.kernels.as_slice() {
            [] => KernelChoice::defaults(problem.dtype),
            chosen => chosen,
        };
        let open = (self.args.forces_nothing() || self.tuner.is_some()).then_some(None);
        let forced = forced.iter().copied().map(Some);
        open.into_iter().chain(forced).collect()
    }

    /// The launches to compare. A forced kernel is launched in every order and schedule; the
    /// library's choice, `chosen`, as it is and in row-major order.
    fn launches<T: Element, O: Output<T>>(
        &self,
        kernel: Option<KernelChoice>,
        chosen: &Planned<T, O>,
    ) -> Vec<(Option<KernelChoice>, Placement)> {
        if kernel.is_some() && self.args.every_kernel {
            let forced = self.args.line_classes.iter().map(|&classes| Placement {
                line_classes: Some(classes),
                ..Placement::default()
            });
            let all = [Placement::default()].into_iter().chain(forced);
            return all.map(|placement| (kernel, placement)).collect();
        }
        if kernel.is_some() {
            let placements = names::placements(&self.args.orders, &self.args.schedules);
            let of_kernel = placements.into_iter().map(|placement| (kernel, placement));
            return of_kernel.collect();
        }
        let row_major = chosen.in_row_major_order();
        let row_major = row_major.filter(|_| self.args.compares_choice());
        let whole = (None, Placement::default());
        let row_major = row_major.map(|(kernel, placement)| (Some(kernel), placement));
        [whole].into_iter().chain(row_major).collect()
    }

    /// The record of a combination that the library refuses.
    fn not_run(
        &self,
        problem: ProblemSpec,
        kernel: Option<KernelChoice>,
        placement: Placement,
        error: &tilewise::Error,
    ) -> Record {
        let label = self.asked(kernel, placement);
        self.failure(problem, &label, Status::Skipped, error.to_string())
    }

    /// The name of a combination before it is planned.
    fn asked(&self, kernel: Option<KernelChoice>, placement: Placement) -> Label {
        let Placement {
            order, schedule, ..
        } = placement;
        Label {
            kernel: text_or_empty(kernel),
            order: text_or_empty(order),
            schedule: text_or_empty(schedule.map(names::schedule_name)),
            ..Label::of(match kernel {
                None if self.device.is_gpu() => CHOSEN,
                _ => TILEWISE,
            })
        }
    }

    /// Planning loads kernels and allocates.
    fn begin_planning(
        &self,
        problem: ProblemSpec,
        kernel: Option<KernelChoice>,
        placement: Placement,
    ) {
        let label = self.asked(kernel, placement);
        let label = format!("planning, {problem}, {label}");
        self.watch.begin(Duration::ZERO, label);
    }
}
