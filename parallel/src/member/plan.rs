//! [`MemberPlan`]: one rank's part of an operation, ready to run.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tilewise::{AsView, AsViewMut, Element, Layout, MatrixView, MatrixViewMut, Output};

use super::control::Control;
use super::create::{Created, Way};
use super::shared::Shared;
use super::task::OwnRun;
use super::watch::{self, late, left};
use crate::error::Error;
use crate::operands::{self, NAMES, Operands};
use crate::options::Options;
use crate::plan::PlanInfo;
use crate::program::Program;
use crate::rank_error::RankError;

/// How long a thread that waits for another process sleeps between two looks.
const LOOK: Duration = Duration::from_micros(50);

/// One rank's part of an operation over the members of a group, ready to run. It holds the memory
/// that the other ranks write to, and one plan of the library for each launch.
///
/// All members run the plans that they have made together the same number of times and in the
/// same order. A run that is not so ends the group with an error.
#[derive(Debug)]
pub struct MemberPlan<T, O> {
    options: Options,
    operands: Operands,
    info: PlanInfo,
    /// Which of the plans that the group has made it is.
    number: u32,
    control: Arc<Control>,
    /// Dropped before the streams, which `shared` has.
    way: Way<T, O>,
    shared: Arc<Shared>,
}

impl<T: Element, O: Output<T>> MemberPlan<T, O> {
    pub(super) fn new(
        shared: &Arc<Shared>,
        options: &Options,
        operands: Operands,
        created: Created<T, O>,
    ) -> Self {
        MemberPlan {
            options: *options,
            operands,
            info: created.info,
            number: created.number,
            control: created.control,
            way: created.way,
            shared: Arc::clone(shared),
        }
    }

    /// What the plan will do. The estimate is that of rank 0 for all ranks; by NCCL, each rank has
    /// its own.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }

    /// The steps of a run, of all ranks; `None` where NCCL exchanges the rows.
    pub fn program(&self) -> Option<&Program> {
        match &self.way {
            Way::Host(_, task) | Way::Gpu(_, task) => Some(&task.steps.program),
            Way::Nccl(_) => None,
        }
    }

    /// Computes this rank's part of the operation, and overwrites C.
    ///
    /// On a GPU, this call enqueues the work of this rank, and returns. What was enqueued on
    /// [`tilewise::Device::stream`] before is finished before any rank touches this one's
    /// operands, and what is enqueued there afterwards begins when no rank needs them any more.
    /// **C is valid once [`MemberPlan::finish`] has returned without an error**: if a rank fails
    /// meanwhile, the streams go on, and C holds anything. On the CPU, the call returns when C is
    /// done, or with the error.
    ///
    /// A run cannot be captured into a CUDA graph: while the device's stream captures, nothing is
    /// enqueued. (A graph would hold the number of the run, and replayed it would neither wait for
    /// the other ranks nor be waited for.)
    ///
    /// # Errors
    /// [`Error::Operand`] for operands other than planned, and [`Error::Capturing`], which concern
    /// this rank alone: it may run afterwards, with others or behind the capture. [`Error::Rank`] for failures of the group, which end it; errors of the
    /// library and the driver, which end it too.
    pub fn run(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<(), Error> {
        self.run_checked(a.as_view(), b.as_view(), c.as_view_mut(), None)
    }

    /// [`MemberPlan::run`] with [`Options::bias`]: `bias` is 1×N, contiguous, for the columns of C.
    /// In sums over ranks, it is added once, by the rank that owns the row; in an all-reduce, all
    /// ranks have the same vector.
    ///
    /// # Errors
    /// Those of [`MemberPlan::run`].
    pub fn run_with_bias(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        bias: impl AsView<O>,
    ) -> Result<(), Error> {
        let bias = bias.as_view();
        self.run_checked(a.as_view(), b.as_view(), c.as_view_mut(), Some(bias))
    }

    /// Waits until all runs of this plan have ended on this rank, whose results are valid then.
    ///
    /// # Errors
    /// [`Error::Rank`] if a rank failed before they had. A run that makes no progress for the time
    /// limit of the group is such a failure.
    pub fn finish(&self) -> Result<(), Error> {
        while !self.control.is_verified() {
            if let Some(failure) = self.failure() {
                return Err(failure.into());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn run_checked(
        &mut self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        bias: Option<MatrixView<O>>,
    ) -> Result<(), Error> {
        let mut run = OwnRun { a, b, c, bias };
        self.check(&run)?;
        self.shared.refuse_capture()?;
        let shared = Arc::clone(&self.shared);
        let mut number = shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        let epoch = self.control.next();
        let departed = shared.wire.departed();
        let without = |&&rank: &&usize| !self.control.has_begun(rank, epoch);
        if let Some(&rank) = departed.iter().find(without) {
            return Err(left(rank).into());
        }
        self.control.begin(epoch);
        let order = shared.order.as_ref();
        let result = match order.and_then(|order| order.note(*number, self.number)) {
            Some((rank, found)) => Err(Error::Rank(RankError::Disagreement {
                argument: "the order of runs".into(),
                rank,
                found: format!("plan {found} in run {number}"),
                accepted: format!("plan {}, as on rank {}", self.number, shared.rank),
            })),
            None => self.enqueue(epoch, &mut run),
        };
        *number = number.wrapping_add(1);
        if let Err(error) = &result {
            self.abandon(error);
        }
        result
    }

    /// Runs the steps of this rank, or enqueues them.
    fn enqueue(&mut self, epoch: u32, run: &mut OwnRun<T, O>) -> Result<(), Error> {
        let MemberPlan {
            control,
            way,
            shared,
            ..
        } = self;
        match way {
            Way::Host(host, task) => {
                let wait = |step| wait(shared, control, step, epoch);
                host.run(task, control, epoch, run, wait)
            }
            Way::Gpu(gpu, task) => gpu.run(task, control, epoch, run),
            Way::Nccl(nccl) => nccl.run(shared, control, epoch, run),
        }
    }

    /// Tells the others that this rank cannot go on, and waits for what it has enqueued: the
    /// caller's matrices may be freed afterwards.
    fn abandon(&self, error: &Error) {
        let failure = self.shared.fail(error);
        match &self.way {
            // Threads wait for flags alone, and look for failures meanwhile.
            Way::Host(..) => {}
            Way::Gpu(gpu, _) => {
                self.control.release(failure.rank());
                gpu.finish();
            }
            Way::Nccl(nccl) => {
                self.control.release(failure.rank());
                nccl.abort();
                nccl.finish();
            }
        }
    }

    /// Checks that the operands are those that were planned.
    fn check(&self, run: &OwnRun<T, O>) -> Result<(), Error> {
        let (rank, device) = (self.shared.rank, &self.shared.device);
        let c = run.c.as_view();
        let found: [(Layout, _, u64); 3] = [
            (run.a.layout(), run.a.device(), run.a.address()),
            (run.b.layout(), run.b.device(), run.b.address()),
            (c.layout(), c.device(), c.address()),
        ];
        for (operand, (layout, found_on, address)) in found.into_iter().enumerate() {
            let layout = operands::layout(NAMES[operand], rank, device, (layout, found_on))?;
            self.operands.check_layout(operand, rank, layout)?;
            let alignment = operands::alignment(device, address);
            (self.operands).check_alignment(operand, rank, alignment)?;
        }
        let wrong = |found: &str, accepted: &str| Error::Operand {
            argument: "bias",
            rank,
            found: found.into(),
            accepted: accepted.into(),
        };
        match (self.options.bias, run.bias) {
            (false, None) => Ok(()),
            (false, Some(_)) => Err(wrong("given", "none: Options::bias was not called")),
            (true, None) => Err(wrong("not given", "one, by MemberPlan::run_with_bias")),
            (true, Some(bias)) => {
                let found = (bias.layout(), bias.device());
                let layout = operands::layout("bias", rank, device, found)?;
                self.operands.check_bias(rank, layout)
            }
        }
    }

    fn failure(&self) -> Option<RankError> {
        watch::failure(&self.shared.wire, [&self.control].into_iter())
    }
}

impl<T, O> Drop for MemberPlan<T, O> {
    /// Waits for the runs of this rank, and lets go of the memory of the others.
    fn drop(&mut self) {
        if let Way::Nccl(nccl) = &self.way {
            nccl.finish();
        }
        if let Way::Gpu(gpu, _) = &mut self.way {
            gpu.finish();
            gpu.close();
            self.control.let_go();
            if let Some(arena) = gpu.take_arena() {
                self.shared.bury(&self.control, arena);
            }
        }
        self.control.let_go();
    }
}

/// Waits, as a thread, until `step` of another rank is done in the run `epoch`.
fn wait(shared: &Shared, control: &Arc<Control>, step: usize, epoch: u32) -> Result<(), Error> {
    let begin = Instant::now();
    let mut looks = 0_u32;
    loop {
        // Threads release no flags. So a run that nobody holds up ends well, whatever has failed.
        if control.is_done(step, epoch) {
            return Ok(());
        }
        if let Some(failure) = shared.wire.failure() {
            return Err(failure.into());
        }
        if let Some(rank) = control.is_behind(shared.wire.departed().into_iter()) {
            return Err(left(rank).into());
        }
        if begin.elapsed() > shared.limit {
            return Err(late(control, shared.rank, shared.limit).into());
        }
        looks += 1;
        match looks {
            ..100 => thread::yield_now(),
            _ => thread::sleep(LOOK),
        }
    }
}
