//! [`Tuner`] and [`Gemm::tune`] measure what [`select`](crate::select) only estimates.
//!
//! This is an autotuner like Triton's `@triton.autotune`: every configuration that could
//! be the fastest runs on the operands themselves, and the tuner keeps the fastest. The
//! next plan for such a problem, in this process or another, is made without measuring.
//!
//! ```text
//! problem → select::choices → race → cache → plan
//! ```
//!
//! - **What is measured.** [`select::choices`](crate::select::choices), without the
//!   choices for which [`select::cost`](crate::select::cost) estimates many times the
//!   cycles of the best.
//! - **How it is measured.** First, each launch is timed alone with CUDA events, after the L2
//!   cache has been overwritten. Launches take random turns until half of the budget is spent
//!   or the fastest is clear. Then the fastest few and the choice without tuning run back to
//!   back, in slices of some milliseconds, for the other half. The winner has the lowest product
//!   of both times among those that are slower than the choice without tuning in neither.
//! - **What is remembered.** The cache keeps the winner for this GPU, driver and build of
//!   the kernels, and for problems of the same shape, types, strides and alignment.
//!   A remembered winner is used only if it is again one of the choices, so it has passed
//!   [`select::check`](crate::select::check).
//! - **How long it takes at most.** The tuner waits for a launch no longer than a generous
//!   multiple of its estimate ([`Tuner::wait_limit`]). A launch that takes longer ends the
//!   tuning with an error that names it; the fastest of the earlier launches is remembered.

mod cache;
mod finals;
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
use crate::gpu::plan::{GpuPlan, Run};
use crate::gpu::wait;
use crate::inputs::Inputs;
use crate::plan::Plan;
use crate::plan_info::Origin;
use crate::select::{self, Choice, Problem, Request, cost};
use crate::view::{AsView, AsViewMut};
use cache::{Cache, Winner};
use key::Machine;
use measure::{Launch, Named, measure};

/// Time to measure one problem, unless [`Tuner::budget`] changes it.
const BUDGET: Duration = Duration::from_secs(1);

/// A choice is not measured if its estimate is more than this multiple of the lowest:
/// the estimate is not that wrong, and one launch of a naive kernel can take longer than
/// the budget.
const HOPELESS: u64 = 6;

/// A launch may take this long even if its estimate is short: another process can occupy
/// the GPU for seconds, and a debugger or a profiler adds its own time.
const LEAST_WAIT: Duration = Duration::from_secs(10);

/// A launch may take this multiple of its estimate in addition to [`LEAST_WAIT`]. The
/// estimate is wrong by [`HOPELESS`] at worst, the clock may be half of the highest, and
/// several processes may share the GPU; compute-sanitizer slows kernels down about a
/// hundredfold.
const ROOM: u32 = 100;

/// Work that the caller enqueued before the tuner began may take this long. The tuner
/// cannot estimate it.
const EARLIER_WORK: Duration = Duration::from_secs(600);

/// Measures configurations, and remembers the fastest for each problem.
///
/// The tuner keeps winners in a file that several processes may share:
/// `tune.json` in the folder `$TILEWISE_CACHE`, else in
/// `$XDG_CACHE_HOME/tilewise`, else in `~/.cache/tilewise`. A file that is
/// damaged, or that another driver or version of this library wrote, is
/// ignored and replaced. The tuner logs through the [`log`] crate: warnings, winners
/// at level `debug`, and each timed launch at level `trace`.
///
/// It times single launches that find their operands in DRAM, and launches back to back, which
/// find them in L2 or bring the GPU to its power limit. The winner is slower than
/// [`Gemm::plan`]'s choice in neither.
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
/// // On a GPU this takes about a second the first time. The CPU has nothing to measure.
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
    /// A tuner that uses the user's cache file.
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

    /// A tuner that uses the cache file `file`. Neither the file nor its folder has to
    /// exist.
    pub fn with_cache_file(file: impl Into<PathBuf>) -> Tuner {
        Tuner::with_cache(Cache::new(Some(file.into())))
    }

    /// A tuner that keeps winners in memory only, as long as it lives.
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

    /// Sets about how long measuring one problem may take; the default is 1 s. The first
    /// launch that works is timed even if it exceeds the budget. The driver's compilation
    /// of kernels does not count towards the budget; the driver caches its results.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Tuner {
        self.budget = budget;
        self
    }

    /// Sets how long the tuner waits for a measured launch before it gives up with
    /// [`Error::TuningTimedOut`]. The same limit applies to work that was enqueued before
    /// the tuner began; then the error is [`Error::TimedOut`]. By default, a launch has
    /// 10 s plus a hundred times its estimate, and earlier work has ten minutes.
    #[must_use]
    pub fn wait_limit(mut self, limit: Duration) -> Tuner {
        self.wait_limit = Some(limit);
        self
    }

    /// The file in which winners are kept; `None` when they are kept in memory only.
    pub fn cache_file(&self) -> Option<&Path> {
        self.cache.file()
    }

    /// The remembered or measured plan for `problem` with the operands of `run`.
    ///
    /// # Safety
    /// The operands are live on `gpu`, and no other code uses C, until this returns.
    unsafe fn plan(
        &mut self,
        gpu: &Arc<Gpu>,
        problem: &Problem,
        request: &Request,
        run: &Run,
    ) -> Result<(GpuPlan, Origin), Error> {
        let _current = gpu.make_current()?;
        if gpu.backend().capture(None)?.is_some() {
            return Err(Error::TuningWhileCapturing);
        }
        let target = gpu.info().target();
        let choices = select::choices(gpu.backend().catalog(), problem, &target, request)?;
        let mut choices: Vec<Choice> = choices.collect();
        if choices.len() == 1 || problem.is_empty() {
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
        // Waiting here keeps earlier work out of the time limit of the first launch.
        wait::within(gpu, self.wait_limit.unwrap_or(EARLIER_WORK))?;
        let launch = Product {
            run,
            wait_limit: self.wait_limit,
        };
        let (winner, plan) = measure(gpu, problem, &choices, self.budget, &launch);
        if let Some((choice, times)) = winner {
            log::debug!("{key}: {} wins, {times:?} ms", Named(&choice));
            let winner = Winner::new(&choice, times);
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
    /// Plans C = A·B like [`Gemm::plan`], but measures the choices that are not forced
    /// instead of estimating them. If this problem was measured before, the result comes
    /// from the cache of `tuner`. Otherwise the candidates run now; this overwrites C with
    /// the product and waits for the GPU.
    ///
    /// On the CPU device there is only one way to multiply, and this is [`Gemm::plan`].
    /// [`PlanInfo::origin`](crate::PlanInfo::origin) tells who chose.
    ///
    /// # Errors
    /// The errors of [`Gemm::plan`], and [`Error::TuningWhileCapturing`].
    /// [`Error::OutOfMemory`] also when the device has no memory left for a buffer of twice
    /// the size of L2. Candidates that fail are left out with a warning; if all fail,
    /// the error is the error of the first. A candidate that does not end in time
    /// ([`Tuner::wait_limit`]) ends the tuning: [`Error::TuningTimedOut`] names
    /// it, the GPU is overdue ([`Device::synchronize_within`]), and the fastest
    /// of the other candidates is remembered for the next process.
    ///
    /// [`Device::synchronize_within`]: crate::Device::synchronize_within
    pub fn tune<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        c: impl AsViewMut<O>,
        tuner: &mut Tuner,
    ) -> Result<Plan<T, O>, Error> {
        self.tune_with(a, b, c, &Inputs::new(), tuner)
    }

    /// [`Gemm::tune`] for an epilogue with inputs. Old values of C are lost, also if they are
    /// the source: the candidates run one after the other on the same C.
    ///
    /// # Errors
    /// Those of [`Gemm::tune`], and [`Error::Epilogue`] for inputs that the epilogue does
    /// not have.
    pub fn tune_with<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        inputs: &Inputs<O>,
        tuner: &mut Tuner,
    ) -> Result<Plan<T, O>, Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        let operands = self.operands(a, b, &c)?;
        let [m, n, _] = operands.shape();
        inputs.check(&self.epilogue.form(), self.device(), (m, n), &c)?;
        let run = Run {
            a: a.address(),
            b: b.address(),
            c: c.address(),
            epilogue: inputs.addresses(&self.epilogue, &c),
        };
        let plan = self.plan_by::<T, O>(operands, |gpu, problem, request| {
            // SAFETY: the views are live until here, on this device and of the problem's
            // layouts, and C is borrowed exclusively.
            unsafe { tuner.plan(gpu, problem, request, &run) }
        })?;
        Ok(Plan::new(self.device(), plan))
    }
}

/// A product that is measured.
struct Product<'r> {
    /// Its operands are live, and no other code uses C, until the tuning returns.
    run: &'r Run,
    wait_limit: Option<Duration>,
}

impl Launch for Product<'_> {
    fn enqueue(&self, plan: &mut GpuPlan) -> Result<(), Error> {
        // SAFETY: the operands are live, and the caller waits for the stream.
        unsafe { plan.run(None, self.run) }
    }

    fn limit(&self, plan: &GpuPlan, launches: u32) -> Duration {
        let estimate = plan.estimate().saturating_mul(launches);
        self.wait_limit.unwrap_or(longest_wait(estimate))
    }
}

/// Plans the remembered `winner`. Returns the reason in words if the winner is no longer
/// one of `choices`, or cannot be planned.
fn recall<P>(
    winner: &Winner,
    choices: &[Choice],
    plan: impl FnOnce(Choice) -> Result<P, Error>,
) -> Result<P, String> {
    let choice = choices.iter().find(|choice| winner.is(choice));
    let choice = choice.ok_or_else(|| format!("the cache says {winner:?}, which cannot run"))?;
    plan(*choice).map_err(|error| format!("{} cannot be planned: {error}", Named(choice)))
}

/// Removes choices whose estimated `cycles` are far above the minimum, but never the
/// first choice.
fn leave_out_hopeless(choices: &mut Vec<Choice>, cycles: impl Fn(&Choice) -> u64) {
    let fewest = choices.iter().map(&cycles).min().unwrap_or_default();
    let mut is_first = true;
    choices.retain(|choice| {
        std::mem::take(&mut is_first) || cycles(choice) <= fewest.saturating_mul(HOPELESS)
    });
}

/// The time limit of a launch that is estimated to take `estimate`.
fn longest_wait(estimate: Duration) -> Duration {
    LEAST_WAIT.saturating_add(estimate.saturating_mul(ROOM))
}

#[cfg(test)]
mod tests;
