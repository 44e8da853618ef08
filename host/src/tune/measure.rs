//! Running choices against each other on a GPU: a [`Race`] with a cold L2, and then one of the
//! finalists back to back, with plans and a clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::finals::{self, Times};
use super::race::Race;
use crate::error::Error;
use crate::gpu::opened::Gpu;
use crate::gpu::plan::GpuPlan;
use crate::gpu::stopwatch::Stopwatch;
use crate::gpu::wait;
use crate::select::{Choice, Problem};

/// About how long the launches of a finalist run back to back, each time: at least ten launches
/// of a millisecond, and short enough that all finalists have several turns in half a second.
const SLICE: Duration = Duration::from_millis(10);

/// Most launches in a slice. Fewer than the driver's queue holds.
const MOST_LAUNCHES: u32 = 256;

/// How to run a plan.
pub(super) trait Launch {
    /// Enqueues the plan. The caller waits for the stream before the operands go.
    fn enqueue(&self, plan: &mut GpuPlan) -> Result<(), Error>;

    /// How long to wait for this number of launches.
    fn limit(&self, plan: &GpuPlan, launches: u32) -> Duration;
}

/// Runs `choices` against each other, of which the first is the rule's, for about `budget`.
/// Returns the winner with the medians of its times, and its plan. If a launch did not end in
/// time, the plan is an error, but the best of the earlier choices is returned.
pub(super) fn measure(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    choices: &[Choice],
    budget: Duration,
    launch: &impl Launch,
) -> (Option<(Choice, Times)>, Result<GpuPlan, Error>) {
    let stopwatch = match Stopwatch::new(gpu) {
        Ok(stopwatch) => stopwatch,
        Err(error) => return (None, Err(error)),
    };
    let mut contest = Contest {
        gpu,
        problem,
        choices,
        launch,
        stopwatch,
        plans: choices.iter().map(|_| None).collect(),
        single: vec![Duration::ZERO; choices.len()],
        first_error: None,
    };
    let all: Vec<usize> = (0..choices.len()).collect();
    let mut cold = Race::new(&groups(choices), budget / 2, 0);
    if let Err(error) = contest.run(&all, &mut cold, Regime::Cold) {
        let fastest = cold.leader().map(|(leader, cold)| {
            let sustained = None;
            (choices[leader], Times { cold, sustained })
        });
        return (fastest, Err(error));
    }
    let times: Vec<Option<f64>> = all.iter().map(|&index| cold.median(index)).collect();
    let finalists = finals::finalists(&times);
    for (index, plan) in contest.plans.iter_mut().enumerate() {
        if !finalists.contains(&index) {
            *plan = None;
        }
    }
    let every_one: Vec<usize> = (0..finalists.len()).collect();
    let mut sustained = Race::new(&every_one, budget / 2, 1);
    let ended = match finalists.len() {
        0 | 1 => Ok(()),
        _ => contest.run(&finalists, &mut sustained, Regime::Sustained),
    };
    // Without those that failed back to back.
    let (standing, medians): (Vec<usize>, Vec<Times>) = (finalists.iter().enumerate())
        .filter(|&(finalist, _)| {
            !sustained.has_left(finalist) || sustained.median(finalist).is_some()
        })
        .filter_map(|(finalist, &index)| {
            let sustained = sustained.median(finalist);
            let cold = times[index]?;
            Some((index, Times { cold, sustained }))
        })
        .unzip();
    let Some(winner) = finals::winner(&medians) else {
        let error = contest.first_error;
        let error = ended.err().or(error);
        return (
            None,
            Err(error.expect("where none has a time, one has failed")),
        );
    };
    let (index, times) = (standing[winner], medians[winner]);
    let plan = ended.and_then(|()| contest.plan(index));
    (Some((choices[index], times)), plan)
}

/// How launches follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Regime {
    /// One at a time, after L2 was overwritten.
    Cold,
    /// A slice of them, back to back.
    Sustained,
}

/// Launches of a slice where one of them, with all that the host does for it, takes `single`: at
/// least two, so that one follows another.
fn launches(single: Duration) -> u32 {
    let launches = SLICE.as_secs_f64() / single.as_secs_f64().max(1e-6);
    launches.clamp(2.0, MOST_LAUNCHES.into()) as u32
}

/// Choices that run against each other.
struct Contest<'c, L> {
    gpu: &'c Arc<Gpu>,
    problem: &'c Problem,
    choices: &'c [Choice],
    launch: &'c L,
    stopwatch: Stopwatch,
    /// Of each choice, while it runs.
    plans: Vec<Option<GpuPlan>>,
    /// The host's time for the last single launch of each, and for the one ahead of it.
    single: Vec<Duration>,
    first_error: Option<Error>,
}

impl<L: Launch> Contest<'_, L> {
    /// Runs `race`, whose contenders are the choices `entrants`, to its end.
    /// [`Error::TuningTimedOut`] ends it too.
    fn run(&mut self, entrants: &[usize], race: &mut Race, regime: Regime) -> Result<(), Error> {
        let mut spent = Duration::ZERO;
        while let Some(next) = race.next(spent) {
            let index = entrants[next];
            match self.turn(index, regime, &mut spent) {
                Ok(milliseconds) => {
                    log::trace!("{}: {milliseconds:.4} ms", Named(&self.choices[index]));
                    race.time(next, milliseconds);
                }
                Err(Error::TimedOut { device, waited }) => {
                    race.fail(next);
                    let choice = &self.choices[index];
                    return Err(timed_out(device, waited, self.problem, choice));
                }
                Err(error) => {
                    log::warn!("{} is left out: {error}", Named(&self.choices[index]));
                    race.fail(next);
                    self.plans[index] = None;
                    self.first_error.get_or_insert(error);
                }
            }
            // Dropping the plans of contenders that left frees their workspaces.
            for (contender, &index) in entrants.iter().enumerate() {
                if race.has_left(contender) {
                    self.plans[index] = None;
                }
            }
        }
        Ok(())
    }

    /// The milliseconds of a launch of choice `index`.
    fn turn(&mut self, index: usize, regime: Regime, spent: &mut Duration) -> Result<f64, Error> {
        let launches = match regime {
            Regime::Cold => 1,
            Regime::Sustained => launches(self.single[index]),
        };
        let is_new = self.plans[index].is_none();
        let mut plan = self.plan(index)?;
        let begin = Instant::now();
        if is_new {
            // A launch behind one that never ends might wait for it, and never return.
            self.launch.enqueue(&mut plan)?;
            wait::within(self.gpu, self.launch.limit(&plan, 1))?;
        }
        let limit = self.launch.limit(&plan, 1 + launches);
        let last = Instant::now();
        let milliseconds =
            (self.stopwatch).time(limit, launches, || self.launch.enqueue(&mut plan))?;
        if regime == Regime::Cold {
            self.single[index] = last.elapsed();
        }
        *spent += begin.elapsed();
        self.plans[index] = Some(plan);
        Ok(milliseconds)
    }

    /// The plan of choice `index`, taken if it is there.
    fn plan(&mut self, index: usize) -> Result<GpuPlan, Error> {
        match self.plans[index].take() {
            Some(plan) => Ok(plan),
            None => GpuPlan::new(self.gpu, self.choices[index], self.problem),
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
            line_classes,
            ..
        } = self.0;
        let way = if *transposed { ", transposed" } else { "" };
        let classes = match line_classes {
            1 => String::new(),
            classes => format!(", {classes} line classes"),
        };
        write!(f, "{} {order:?} {schedule:?}{way}{classes}", kernel.name)
    }
}
