//! [`Plan`]: an operation ready to run.

mod memory;
mod products;

use std::time::Duration;

use tilewise::{Element, Inputs, MatrixView, MatrixViewMut, Output};

use crate::cuda::Events;
use crate::error::Error;
use crate::estimate;
use crate::in_turn;
use crate::lines::Lines;
use crate::operands::{self, Operands};
use crate::options::Options;
use crate::program::{Buffer, Part, Program, Work};
use crate::ranks::Ranks;
use memory::{Memory, zeros};
use products::Products;

/// How many chunks the estimate chooses from.
const CHUNKS: [usize; 4] = [1, 2, 3, 4];

/// The percentage by which more chunks have to be better. Two H100 at 8192×8192×8192 took 1.17
/// times the product alone for a reduce-scatter in the 3 chunks that were estimated 1 % faster
/// than 2.
const MARGIN: u32 = 2;

/// An operation over the ranks of a group, ready to run. It holds the memory for what ranks
/// receive, and one plan of the library for each launch.
#[derive(Debug)]
pub struct Plan<T, O> {
    ranks: Ranks,
    options: Options,
    operands: Operands,
    program: Program,
    info: PlanInfo,
    products: Products<T, O>,
    memory: Memory<T, O>,
    /// For GPUs of the driver.
    events: Option<Events>,
    /// For other devices: the seed of a random order of the steps.
    shuffle: Option<u64>,
    failed: Option<String>,
}

/// What a plan will do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Number of launches for the rows of one rank.
    pub chunks: usize,
    /// Bytes of memory that the plan holds, on all ranks together, without the workspaces of its
    /// products.
    pub workspace_bytes: u64,
    /// The estimated time of a run, at the GPUs' highest clock; 0 on the CPU.
    pub estimate: Duration,
    /// The estimated time without any copy and any waiting.
    pub products: Duration,
}

/// The operands of a run.
struct Run<'r, 'a, 'c, T, O> {
    a: &'r [MatrixView<'a, T>],
    b: &'r [MatrixView<'a, T>],
    c: &'r mut [MatrixViewMut<'c, O>],
    bias: Option<&'r [MatrixView<'a, O>]>,
}

impl<T: Element, O: Output<T>> Plan<T, O> {
    pub(crate) fn new(ranks: &Ranks, options: &Options, operands: Operands) -> Result<Self, Error> {
        let mut best: Option<(Program, Products<T, O>, PlanInfo)> = None;
        let candidates = match &options.chunks {
            Some(chunks) => std::slice::from_ref(chunks),
            None => &CHUNKS,
        };
        for &chunks in candidates {
            let program = operands.operation.program(&operands.rows, chunks);
            let products = Products::new(ranks, options, &program, &operands)?;
            let info = PlanInfo {
                chunks,
                workspace_bytes: 0,
                estimate: Plan::<T, O>::estimate(&program, &products, &operands, true),
                products: Plan::<T, O>::estimate(&program, &products, &operands, false),
            };
            if best
                .as_ref()
                .is_none_or(|(.., best)| info.estimate * 100 < best.estimate * (100 - MARGIN))
            {
                best = Some((program, products, info));
            }
        }
        let (program, products, mut info) = best.ok_or(Error::NoRanks)?;
        let memory = Memory::new(ranks, &program, &operands)?;
        info.workspace_bytes = memory.bytes();
        let events = ranks.links().map(|links| Events::new(links, &program));
        Ok(Plan {
            ranks: ranks.clone(),
            options: *options,
            operands,
            program,
            info,
            products,
            memory,
            events: events.transpose()?,
            shuffle: None,
            failed: None,
        })
    }

    /// The estimated time of the slowest rank, with or without the transfers.
    fn estimate(
        program: &Program,
        products: &Products<T, O>,
        operands: &Operands,
        with_transfers: bool,
    ) -> Duration {
        let row_bytes = |buffer| match buffer {
            Buffer::A { rank } | Buffer::Gathered { rank, .. } => {
                operands.layouts[0][rank].cols * size_of::<T>()
            }
            _ => operands.cols[0] * size_of::<O>(),
        };
        let transfer = |part: &Part| match with_transfers {
            true => estimate::transfer((part.rows.len() * row_bytes(part.buffer)) as u64),
            false => Duration::ZERO,
        };
        let time = |step: usize| match &program.steps[step].work {
            Work::Start | Work::End => Duration::ZERO,
            Work::Copy { from, .. } => transfer(from),
            Work::Product { .. } => products.estimate(step),
        };
        estimate::total(&estimate::timeline(program, time))
    }

    /// What the plan will do.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }

    /// The steps of a run.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// On devices that finish each call before it returns (the CPU, emulated GPUs), runs the
    /// steps in a random order that the program permits, another at each run. The bits are the
    /// same in every order; this is for tests of that.
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.shuffle = Some(seed);
        self
    }

    /// Computes the operation, and overwrites C.
    ///
    /// On GPUs, this call enqueues the work of all ranks, on [`tilewise::Device::stream`] of
    /// each and on streams of the group's own, and returns. What was enqueued on a device's
    /// stream before is finished before any rank touches that device's operands, and what is
    /// enqueued there afterwards begins when no rank needs them any more. So runs of one plan,
    /// and of several, may follow each other without waiting.
    ///
    /// # Errors
    /// [`Error::Count`] and [`Error::Operand`] for operands other than planned,
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
        let order = in_turn::order(&self.program, self.shuffle);
        self.shuffle = self.shuffle.map(|seed| seed.wrapping_add(1));
        for step in order {
            if let Err(error) = self.step(step, &mut run) {
                self.failed = Some(error.to_string());
                return Err(error);
            }
        }
        Ok(())
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
        for (rank, (layout, cols)) in found.into_iter().zip(&self.operands.cols).enumerate() {
            let is_contiguous = layout.cols <= 1 || layout.col_stride == 1;
            if (layout.rows, layout.cols) != (1, *cols) || !is_contiguous {
                let accepted = format!("contiguous, 1×{cols}");
                return Err(Error::operand("bias", rank, layout, accepted));
            }
        }
        Ok(())
    }

    /// Enqueues one step, or runs it.
    fn step(&mut self, index: usize, run: &mut Run<T, O>) -> Result<(), Error> {
        if let Some(events) = &self.events {
            events.wait(&self.program, index)?;
        }
        let step = &self.program.steps[index];
        match &step.work {
            Work::Start | Work::End => {}
            Work::Copy { from, to } => {
                let is_input = matches!(to.buffer, Buffer::Gathered { .. });
                match (&self.events, is_input) {
                    (Some(events), true) => {
                        let source = self.memory.input(from, run.a)?;
                        let target = self.memory.input(to, run.a)?;
                        copy(events, step.rank, (from, source), (to, target))?;
                    }
                    (Some(events), false) => {
                        let source = self.memory.output(from, run.c)?;
                        let target = self.memory.output(to, run.c)?;
                        copy(events, step.rank, (from, source), (to, target))?;
                    }
                    (None, true) => {
                        let elements = self.memory.input(from, run.a)?.to_vec()?;
                        self.memory.write_input(to, &elements)?;
                    }
                    (None, false) => {
                        let elements = self.memory.output(from, run.c)?.to_vec()?;
                        self.memory.write_output(to, run.c, &elements)?;
                    }
                }
            }
            Work::Product {
                a,
                source,
                c,
                is_last,
            } => {
                let rank = step.rank;
                let device = &self.ranks.devices()[rank];
                let mut inputs = Inputs::new();
                if let Some(source) = source {
                    inputs = inputs.source(self.memory.output(source, run.c)?);
                }
                if let (true, Some(bias)) = (is_last, run.bias) {
                    inputs = inputs.bias(bias[rank]);
                }
                let a = self.memory.input(a, run.a)?;
                let target = self.memory.output(c, run.c)?;
                let layout = target.layout();
                if layout.is_empty() {
                    return self.record(index);
                }
                if let Some(events) = &self.events {
                    // SAFETY: the rows of C are live, on this device. No other step touches them
                    // until this one has finished (`Program::check`), and `self` and `run.c`
                    // borrow them exclusively.
                    let c = unsafe { MatrixViewMut::from_raw(device, target.address(), layout)? };
                    let stream = events.stream(rank, step.queue);
                    // SAFETY: as above; the start of the run, and so of the caller's work on
                    // the operands, is before this step, and its end behind it.
                    unsafe {
                        self.products
                            .run_on(stream, index, a, run.b[rank], c, &inputs)?
                    };
                } else {
                    // The source and C may be in one list of matrices, so C is a copy.
                    let mut product = zeros(device, layout)?;
                    self.products
                        .run(index, a, run.b[rank], product.view_mut(), &inputs)?;
                    let product = product.to_vec()?;
                    self.memory.write_output(c, run.c, &product)?;
                }
            }
        }
        self.record(index)
    }

    /// Notes that a step is enqueued.
    fn record(&self, index: usize) -> Result<(), Error> {
        match &self.events {
            Some(events) => events.record(&self.program, index),
            None => Ok(()),
        }
    }
}

impl<T, O> Drop for Plan<T, O> {
    /// The steps of a whole run leave the plan's memory to the stream of its device, on which it
    /// is freed; those of a run that failed may not.
    fn drop(&mut self) {
        if let (Some(_), Some(events)) = (&self.failed, &self.events) {
            events.finish();
        }
    }
}

/// Enqueues the copy of the rows of one rank to another.
fn copy<E: Element>(
    events: &Events,
    rank: usize,
    (from, source): (&Part, MatrixView<E>),
    (to, target): (&Part, MatrixView<E>),
) -> Result<(), Error> {
    let end = |part: &Part, view: MatrixView<E>| {
        let lines = Lines::of(view.layout(), size_of::<E>())?;
        Some((part.buffer.rank(), view.address(), lines))
    };
    match (end(from, source), end(to, target)) {
        // SAFETY: both are live; no other step touches them until the copy is done
        // (`Program::check`), nor does the caller, who has borrowed them to the run and whose
        // later work is behind the run.
        (Some(from), Some(to)) => unsafe { events.copy(rank, from, to) },
        // Planning has checked the layouts, of all but empty matrices.
        _ => Ok(()),
    }
}
