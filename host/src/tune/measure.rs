//! Running choices against each other on a GPU: the [`Race`], with plans and a clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::race::Race;
use crate::error::Error;
use crate::gpu::opened::Gpu;
use crate::gpu::plan::GpuPlan;
use crate::gpu::stopwatch::Stopwatch;
use crate::select::{Choice, Problem};

/// Runs `choices` against each other; `time` runs a plan once and returns the
/// milliseconds. Returns the fastest choice with the median of its times, and the
/// winner's plan. If a launch did not end in time, the plan is an error, but the fastest
/// of the earlier choices is returned.
pub(super) fn measure(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    choices: &[Choice],
    mut race: Race,
    time: impl Fn(&Stopwatch, &mut GpuPlan) -> Result<f64, Error>,
) -> (Option<(Choice, f64)>, Result<GpuPlan, Error>) {
    let stopwatch = match Stopwatch::new(gpu) {
        Ok(stopwatch) => stopwatch,
        Err(error) => return (None, Err(error)),
    };
    let mut spent = Duration::ZERO;
    let mut turn = |plan: Option<GpuPlan>, choice| {
        let is_new = plan.is_none();
        let mut plan = match plan {
            Some(plan) => plan,
            None => GpuPlan::new(gpu, choice, problem)?,
        };
        let begin = Instant::now();
        if is_new {
            // The first launch of a plan is slower, because it copies tensor maps.
            time(&stopwatch, &mut plan)?;
        }
        let milliseconds = time(&stopwatch, &mut plan)?;
        spent += begin.elapsed();
        Ok::<_, Error>((plan, milliseconds, spent))
    };
    let mut plans: Vec<Option<GpuPlan>> = choices.iter().map(|_| None).collect();
    let fastest = |race: &Race| {
        let (leader, milliseconds) = race.leader()?;
        Some((leader, (choices[leader], milliseconds)))
    };
    let mut first_error = None;
    let mut so_far = Duration::ZERO;
    while let Some(next) = race.next(so_far) {
        let choice = choices[next];
        match turn(plans[next].take(), choice) {
            Ok((plan, milliseconds, spent)) => {
                log::trace!("{}: {milliseconds:.4} ms", Named(&choice));
                race.time(next, milliseconds);
                plans[next] = Some(plan);
                so_far = spent;
            }
            Err(Error::TimedOut { device, waited }) => {
                race.fail(next);
                let error = timed_out(device, waited, problem, &choice);
                return (fastest(&race).map(|(_, fastest)| fastest), Err(error));
            }
            Err(error) => {
                log::warn!("{} is left out: {error}", Named(&choice));
                race.fail(next);
                first_error.get_or_insert(error);
            }
        }
        // Dropping the plans of contenders that left frees their workspaces.
        for (index, plan) in plans.iter_mut().enumerate() {
            if race.has_left(index) {
                *plan = None;
            }
        }
    }
    let won = fastest(&race).and_then(|(index, fastest)| Some((fastest, plans[index].take()?)));
    match won {
        Some((fastest, plan)) => (Some(fastest), Ok(plan)),
        None => {
            let error = first_error.expect("where none has a time, one has failed");
            (None, Err(error))
        }
    }
}

/// The error for a launch of `choice` that did not end in time.
fn timed_out(device: String, waited: Duration, problem: &Problem, choice: &Choice) -> Error {
    Error::TuningTimedOut {
        device,
        waited,
        kernel: choice.kernel.name,
        shape: (problem.m as usize, problem.n as usize, problem.k as usize),
        order: choice.order,
        schedule: choice.schedule,
    }
}

/// The group number of each choice. Adjacent choices have the same number if they use
/// the same kernel and all compute C, or all compute its transpose.
pub(super) fn groups(choices: &[Choice]) -> Vec<usize> {
    let same =
        |a: &Choice, b: &Choice| (a.kernel.name, a.transposed) == (b.kernel.name, b.transposed);
    let runs = choices.chunk_by(same).enumerate();
    runs.flat_map(|(group, run)| vec![group; run.len()])
        .collect()
}

/// Displays a choice for log messages.
pub(super) struct Named<'a>(pub(super) &'a Choice);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice {
            kernel,
            transposed,
            order,
            schedule,
            ..
        } = self.0;
        let way = if *transposed { ", transposed" } else { "" };
        write!(f, "{} {order:?} {schedule:?}{way}", kernel.name)
    }
}
