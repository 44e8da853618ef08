//! [`Plan`]: an operation ready to run.

mod candidate;
pub(crate) mod collective;
mod info;
mod memory;
mod products;
mod run;
mod steps;

use tilewise::{Element, MatrixView, MatrixViewMut, Output};

use crate::error::Error;
use crate::operands::{self, Operands};
use crate::options::{Engine, Options};
use crate::program::Program;
use crate::ranks::Ranks;
pub(crate) use candidate::Candidate;
use collective::Collective;
pub use info::PlanInfo;
pub(crate) use memory::{buffers, layout_of, zeros};
pub(crate) use products::Products;
use run::Run;
use steps::Steps;

/// An operation over the ranks of a group, ready to run. It holds the memory for what ranks
/// receive, and one plan of the library for each launch.
#[derive(Debug)]
pub struct Plan<T, O> {
    ranks: Ranks,
    options: Options,
    operands: Operands,
    info: PlanInfo,
    way: Way<T, O>,
    failed: Option<String>,
}

/// How a plan runs.
#[derive(Debug)]
enum Way<T, O> {
    Steps(Steps<T, O>),
    Collective(Collective<T, O>),
}

impl<T: Element, O: Output<T>> Plan<T, O> {
    pub(crate) fn new(ranks: &Ranks, options: &Options, operands: Operands) -> Result<Self, Error> {
        let plan = |info, way| Plan {
            ranks: ranks.clone(),
            options: *options,
            operands: operands.clone(),
            info,
            way,
            failed: None,
        };
        let obstacle = || collective::Candidate::<T, O>::obstacle(ranks, options, &operands);
        if options.engine == Engine::Nccl {
            if let Some(why) = obstacle() {
                return Err(Error::NoNccl { why });
            }
            let candidate = collective::Candidate::new(ranks, options, &operands)?;
            let (collective, info) = candidate.create(ranks.nccl()?, ranks, &operands)?;
            return Ok(plan(info, Way::Collective(collective)));
        }
        let candidate = Candidate::best(
            |rank| ranks.devices().get(rank),
            |chunks| operands.operation.program(&operands.rows, chunks),
            options,
            &operands,
        )?;
        if options.engine == Engine::Auto
            && collective::Candidate::<T, O>::may_gain(candidate.estimate)
            && obstacle().is_none()
        {
            let by_nccl = collective::Candidate::new(ranks, options, &operands)?;
            // Where NCCL is found but cannot start, there are copies.
            if by_nccl.gains(candidate.estimate)
                && let Ok(nccl) = ranks.nccl()
            {
                let (collective, info) = by_nccl.create(nccl, ranks, &operands)?;
                return Ok(plan(info, Way::Collective(collective)));
            }
        }
        let mut info = PlanInfo {
            engine: Engine::Peer,
            chunks: candidate.chunks,
            workspace_bytes: 0,
            estimate: candidate.estimate,
            products: candidate.without_transfers,
        };
        let steps = Steps::new(ranks, &operands, candidate)?;
        info.workspace_bytes = steps.bytes();
        Ok(plan(info, Way::Steps(steps)))
    }

    /// What the plan will do.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }

    /// The steps of a run; `None` where NCCL exchanges the rows.
    pub fn program(&self) -> Option<&Program> {
        match &self.way {
            Way::Steps(steps) => Some(&steps.program),
            Way::Collective(_) => None,
        }
    }

    /// On devices that finish each call before it returns (the CPU, emulated GPUs), runs the
    /// steps in a random order that the program permits, another at each run. The bits are the
    /// same in every order; this is for tests of that.
    pub fn shuffled(mut self, seed: u64) -> Self {
        if let Way::Steps(steps) = &mut self.way {
            steps.shuffle = Some(seed);
        }
        self
    }

    /// Computes the operation, and overwrites C.
    ///
    /// On GPUs, this call enqueues the work of all ranks, on [`tilewise::Device::stream`] of
    /// each and on streams of the group's own, and returns. What was enqueued on a device's
    /// stream before is finished before any rank touches that device's operands, and what is
    /// enqueued there afterwards begins when no rank needs them any more. So runs of one plan,
    /// and of several, may follow each other without waiting. A run cannot be captured into a CUDA
    /// graph: while the stream of one of the devices captures, nothing is enqueued.
    ///
    /// # Errors
    /// [`Error::Count`] and [`Error::Operand`] for operands other than planned,
    /// [`Error::Capturing`], after which the plan may run again,
    /// [`Error::Abandoned`] after a run that failed half-way, and errors of the library and the
    /// driver.
    pub fn run(
        &mut self,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
    ) -> Result<(), Error> {
        self.run_checked(Run {
            a,
            b,
            c,
            bias: None,
        })
    }

    /// [`Plan::run`] with [`Options::bias`]: `bias[r]` is 1×N, contiguous, for the columns of
    /// the C of rank r. In sums over ranks, it is added once, by the rank that owns the row; in an
    /// all-reduce, all ranks have the same vector.
    ///
    /// # Errors
    /// Those of [`Plan::run`].
    pub fn run_with_bias(
        &mut self,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
        bias: &[MatrixView<O>],
    ) -> Result<(), Error> {
        self.run_checked(Run {
            a,
            b,
            c,
            bias: Some(bias),
        })
    }

    fn run_checked(&mut self, mut run: Run<T, O>) -> Result<(), Error> {
        if let Some(why) = &self.failed {
            return Err(Error::Abandoned { why: why.clone() });
        }
        let devices = self.ranks.devices();
        self.operands.check_same(devices, run.a, run.b, run.c)?;
        self.check_bias(&run)?;
        self.ranks.refuse_capture()?;
        let result = match &mut self.way {
            Way::Steps(steps) => steps.run(&mut run),
            Way::Collective(collective) => collective.run(&mut run),
        };
        if let Err(error) = &result {
            self.failed = Some(error.to_string());
            // The steps that were enqueued may have no end that the caller's later work is behind.
            if let Way::Steps(steps) = &self.way {
                steps.finish();
            }
        }
        result
    }

    /// Checks the bias, which a launch in the middle of a run must not refuse.
    fn check_bias(&self, run: &Run<T, O>) -> Result<(), Error> {
        let devices = self.ranks.devices();
        let wrong = |found: &str, accepted: &str| Error::Operand {
            argument: "bias",
            rank: 0,
            found: found.into(),
            accepted: accepted.into(),
        };
        let bias = match (self.options.bias, run.bias) {
            (false, None) => return Ok(()),
            (false, Some(_)) => return Err(wrong("given", "none: Options::bias was not called")),
            (true, None) => return Err(wrong("not given", "one, by Plan::run_with_bias")),
            (true, Some(bias)) => bias,
        };
        let found = bias.iter().map(|bias| (bias.layout(), bias.device()));
        let found = operands::layouts("bias", devices, found)?;
        for (rank, layout) in found.into_iter().enumerate() {
            self.operands.check_bias(rank, layout)?;
        }
        Ok(())
    }
}
