//! Measuring what [`select`](crate::select) estimates: [`Tuner`] and
//! [`Gemm::tune`].
//!
//! An autotuner like Triton's `@triton.autotune`: every configuration that could
//! be the fastest runs on the operands themselves, the fastest is kept, and the
//! next plan for such a problem, in this process or another, is made without
//! measuring.
//!
//! ```text
//! problem → select::choices → race → cache → plan
//! ```
//!
//! - **What is measured.** [`select::choices`](crate::select::choices), without the
//!   choices for which [`select::cost`](crate::select::cost) estimates many times the
//!   cycles of the best.
//! - **How.** Each launch alone, on an overwritten L2 cache, with CUDA events, in
//!   random turns until the budget is spent or the winner is clear.
//! - **What is remembered.** The winner, for this GPU, driver and build of the
//!   kernels, and for problems of the same shape, types, strides and alignment.
//!   A remembered winner has to be one of the choices again, so that it has passed
//!   [`select::check`](crate::select::check).
//! - **How long at most.** The tuner waits for a launch no longer than its estimate with
//!   room ([`Tuner::wait_limit`]). A launch that takes longer ends the tuning with an error
//!   that names it; the fastest of the launches before it is remembered.

mod cache;
mod key;
mod measure;
mod race;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::element::{Element, Output};
use crate::error::Error;
use crate::gemm::Gemm;
use crate::gpu::opened::Gpu;
use crate::gpu::plan::GpuPlan;
use crate::gpu::stopwatch::Stopwatch;
use crate::gpu::wait;
use crate::plan::Plan;
use crate::plan_info::Origin;
use crate::select::{self, Choice, Problem, Request, cost};
use crate::view::{AsView, AsViewMut};
use cache::{Cache, Winner};
use key::Machine;
use measure::{Named, groups, measure};
use race::Race;

/// Time to measure one problem, unless [`Tuner::budget`] says otherwise.
const BUDGET: Duration = Duration::from_secs(1);

/// Multiple of the fewest cycles estimated beyond which a choice is not
/// measured: the estimate is not that wrong, and one launch of a naive kernel
/// can take longer than the budget.
const HOPELESS: u64 = 6;

/// A launch may take this long, whatever the estimate says: another process can have the
/// GPU for seconds, and a debugger or a profiler under which the program runs adds its own.
const LEAST_WAIT: Duration = Duration::from_secs(10);

/// Multiple of the estimate that a launch may take on top. The estimate is wrong by
/// [`HOPELESS`] at worst, the clock half of the highest, and several processes may share the
/// GPU; compute-sanitizer slows kernels down about a hundredfold.
const ROOM: u32 = 100;

/// What was enqueued before the tuner began may take this long. Nothing is known of it: it
/// is the caller's.
const EARLIER_WORK: Duration = Duration::from_secs(600);

/// Measures configurations, and remembers the fastest for each problem.
///
/// Winners are kept in a file, which several processes may share:
/// `tune.json` in the folder `$TILEWISE_CACHE`, else in
/// `$XDG_CACHE_HOME/tilewise`, else in `~/.cache/tilewise`. A file that is
/// damaged, or that another driver or version of this library wrote, is
/// ignored and replaced. Warnings go to the [`log`] crate, winners too at its
/// level `debug`, and each launch that was timed at `trace`.
///
/// The times are those of single launches that find their operands in DRAM. A
/// large product that runs over and over heats the GPU to its power limit, where
/// another order may win.
///
/// ```
/// use tilewise::{Device, Gemm, Tuner};
///
/// # fn main() -> Result<(), tilewise::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("tune.json");
/// let device = Device::cpu();
/// let mut tuner = Tuner::with_cache_file(file); // or Tuner::new()
/// let a = device.from_slice(&[1.0_f32, 2.0], 1, 2)?;
/// let b = device.from_slice(&[3.0_f32, 4.0], 2, 1)?;
/// let mut c = device.zeros::<f32>(1, 1)?;
/// // On a GPU this takes a second the first time. The CPU has nothing to measure.
/// let mut plan = Gemm::new(&device).tune(&a, &b, &mut c, &mut tuner)?;
/// plan.run(&a, &b, &mut c)?;
/// assert_eq!(c.to_vec()?, [11.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tuner {
    cache: Cache,
    budget: Duration,
    wait_limit: Option<Duration>,
}

impl Tuner {
    /// A tuner with the cache file of the user.
    pub fn new() -> Tuner {
        let file = cache::default_file();
        if file.is_none() {
            log::warn!(
                "TILEWISE_CACHE is not set, and the user has no home folder; what is \
                 measured lasts as long as this tuner"
            );
        }
        Tuner::with_cache(Cache::new(file))
    }

    /// A tuner with a cache file of its own. Neither the file nor its folder
    /// need exist.
    pub fn with_cache_file(file: impl Into<PathBuf>) -> Tuner {
        Tuner::with_cache(Cache::new(Some(file.into())))
    }

    /// A tuner that remembers as long as it lives.
    pub fn in_memory() -> Tuner {
        Tuner::with_cache(Cache::new(None))
    }

    fn with_cache(cache: Cache) -> Tuner {
        Tuner {
            cache,
            budget: BUDGET,
            wait_limit: None,
        }
    }

    /// About how long the measuring of one problem may take; 1 s unless this is
    /// called. The first launch that works is timed whatever it takes. The
    /// driver's compilation of kernels comes on top; the driver keeps its
    /// results, too.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Tuner {
        self.budget = budget;
        self
    }

    /// The longest that a launch which is measured may take, before the tuner gives up with
    /// [`Error::TuningTimedOut`]; and what was enqueued before, with [`Error::TimedOut`].
    /// Unless this is called, a launch has 10 s and a hundred times its estimate, and what
    /// was enqueued before has ten minutes.
    #[must_use]
    pub fn wait_limit(mut self, limit: Duration) -> Tuner {
        self.wait_limit = Some(limit);
        self
    }

    /// Where winners are kept; `None` when that is in memory only.
    pub fn cache_file(&self) -> Option<&Path> {
        self.cache.file()
    }

    /// The remembered or measured plan for `problem`, whose A, B and C are at `addresses`.
    ///
    /// # Safety
    /// They are live on `gpu`, and C is the caller's alone, until this returns.
    unsafe fn plan(
        &mut self,
        gpu: &Arc<Gpu>,
        problem: &Problem,
        request: &Request,
        addresses: [u64; 3],
    ) -> Result<(GpuPlan, Origin), Error> {
        gpu.make_current()?;
        if gpu.backend().is_capturing()? {
            return Err(Error::TuningWhileCapturing);
        }
        let target = gpu.info().target();
        let choices = select::choices(gpu.backend().catalog(), problem, &target, request)?;
        let mut choices: Vec<Choice> = choices.collect();
        if choices.len() == 1 || problem.m == 0 || problem.n == 0 {
            return Ok((GpuPlan::new(gpu, choices[0], problem)?, Origin::Rule));
        }

        let machine = Machine::of(gpu.info());
        let key = key::of_problem(problem, request);
        if let Some(winner) = self.cache.lookup(&machine, &key) {
            match recall(&winner, &choices, |choice| {
                GpuPlan::new(gpu, choice, problem)
            }) {
                Ok(plan) => return Ok((plan, Origin::Remembered)),
                Err(reason) => log::warn!("{key}: {reason}; measuring again"),
            }
        }
        leave_out_hopeless(&mut choices, |choice| {
            cost::of_choice(choice, problem, &target).cycles
        });
        // All of the first wait is then the first launch's.
        wait::within(gpu, self.wait_limit.unwrap_or(EARLIER_WORK))?;
        let race = Race::new(&groups(&choices), self.budget, 0);
        let limit = |plan: &GpuPlan| self.wait_limit.unwrap_or(longest_wait(plan.estimate()));
        let time = |stopwatch: &Stopwatch, plan: &mut GpuPlan| {
            // SAFETY: the caller's duty, and the stopwatch waits for the stream.
            stopwatch.time(limit(plan), || unsafe { plan.run(addresses) })
        };
        let (fastest, plan) = measure(gpu, problem, &choices, race, time);
        if let Some((choice, milliseconds)) = fastest {
            log::debug!("{key}: {} wins, {milliseconds:.4} ms", Named(&choice));
            let winner = Winner::new(&choice, milliseconds);
            self.cache.remember(&machine, &key, winner);
        }
        Ok((plan?, Origin::Measured))
    }
}

impl Default for Tuner {
    fn default() -> Self {
        Tuner::new()
    }
}

impl Gemm {
    /// Plans C = A·B like [`Gemm::plan`], with what is not forced measured
    /// instead of estimated: from the cache of `tuner` where this problem was
    /// measured before, else by running the candidates now. Then C holds the
    /// product, and what it held is lost. Waits for the GPU.
    ///
    /// On the CPU device, which has one way to multiply, this is [`Gemm::plan`].
    /// [`PlanInfo::origin`](crate::PlanInfo::origin) tells who chose.
    ///
    /// # Errors
    /// Those of [`Gemm::plan`], and [`Error::TuningWhileCapturing`].
    /// [`Error::OutOfMemory`] also where the device cannot hold twice its L2
    /// cache. Candidates that fail are left out with a warning; where all do,
    /// the error is that of the first. One that does not end in time
    /// ([`Tuner::wait_limit`]) ends the tuning: [`Error::TuningTimedOut`] names
    /// it, the GPU is overdue ([`Device::synchronize_within`]), and the fastest
    /// of the others is remembered for the next process.
    ///
    /// [`Device::synchronize_within`]: crate::Device::synchronize_within
    pub fn tune<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        tuner: &mut Tuner,
    ) -> Result<Plan<T, O>, Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        let operands = self.operands(a, b, &c)?;
        let addresses = [a.address(), b.address(), c.address()];
        let plan = self.plan_by::<T, O>(operands, |gpu, problem, request| {
            // SAFETY: the views are live until here, on this device and of the problem's
            // layouts, and C is the caller's alone.
            unsafe { tuner.plan(gpu, problem, request, addresses) }
        })?;
        Ok(Plan::new(self.device(), plan))
    }
}

/// The plan for what was remembered; an error in words where it is none of
/// `choices` any more, or cannot be planned.
fn recall<P>(
    winner: &Winner,
    choices: &[Choice],
    plan: impl FnOnce(Choice) -> Result<P, Error>,
) -> Result<P, String> {
    let choice = choices.iter().find(|choice| winner.is(choice));
    let choice = choice.ok_or_else(|| format!("the cache says {winner:?}, which cannot run"))?;
    plan(*choice).map_err(|error| format!("{} cannot be planned: {error}", Named(choice)))
}

/// Removes choices that are expected to take far more than the fewest `cycles`;
/// never the first.
fn leave_out_hopeless(choices: &mut Vec<Choice>, cycles: impl Fn(&Choice) -> u64) {
    let fewest = choices.iter().map(&cycles).min().unwrap_or_default();
    let mut is_first = true;
    choices.retain(|choice| {
        std::mem::take(&mut is_first) || cycles(choice) <= fewest.saturating_mul(HOPELESS)
    });
}

/// What a launch that is estimated to take `estimate` may take.
fn longest_wait(estimate: Duration) -> Duration {
    LEAST_WAIT.saturating_add(estimate.saturating_mul(ROOM))
}

#[cfg(test)]
mod tests;
