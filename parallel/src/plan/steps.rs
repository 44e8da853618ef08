//! [`Steps`]: a program, and what its steps need.

use tilewise::{Element, Inputs, MatrixView, MatrixViewMut, Output};

use super::candidate::Candidate;
use super::memory::{Memory, zeros};
use super::products::Products;
use super::run::Run;
use crate::cuda::Events;
use crate::error::Error;
use crate::in_turn;
use crate::lines::Lines;
use crate::operands::Operands;
use crate::program::{Buffer, Part, Program, Work};
use crate::ranks::Ranks;

/// A program, its products, and the memory for what ranks receive.
#[derive(Debug)]
pub(super) struct Steps<T, O> {
    ranks: Ranks,
    pub program: Program,
    products: Products<T, O>,
    memory: Memory<T, O>,
    /// For GPUs of the driver.
    events: Option<Events>,
    /// For other devices: the seed of a random order of the steps.
    pub shuffle: Option<u64>,
}

impl<T: Element, O: Output<T>> Steps<T, O> {
    /// Allocates what the steps need.
    pub(super) fn new(
        ranks: &Ranks,
        operands: &Operands,
        candidate: Candidate<T, O>,
    ) -> Result<Self, Error> {
        let Candidate {
            program, products, ..
        } = candidate;
        let events = ranks.links().map(|links| Events::new(links, &program));
        Ok(Steps {
            ranks: ranks.clone(),
            memory: Memory::new(ranks, &program, operands)?,
            events: events.transpose()?,
            program,
            products,
            shuffle: None,
        })
    }

    /// Bytes of memory on all ranks together.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Enqueues all steps, or runs them.
    pub(super) fn run(&mut self, run: &mut Run<T, O>) -> Result<(), Error> {
        let order = in_turn::order(&self.program, self.shuffle);
        self.shuffle = self.shuffle.map(|seed| seed.wrapping_add(1));
        order.into_iter().try_for_each(|step| self.step(step, run))
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

impl<T, O> Steps<T, O> {
    /// Waits until no step uses memory any more.
    pub(super) fn finish(&self) {
        if let Some(events) = &self.events {
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
