//! [`Task`]: what one rank does in a run of a plan, on whatever device.

use tilewise::{Device, Element, Inputs, MatrixView, MatrixViewMut};

use super::places::Places;
use crate::plan::Products;
use crate::program::Program;

/// A program, for one of its ranks.
#[derive(Debug)]
pub(super) struct Task<T, O> {
    pub steps: OwnSteps,
    /// The products of this rank.
    pub products: Products<T, O>,
}

/// The steps of one rank.
#[derive(Debug)]
pub(super) struct OwnSteps {
    pub rank: usize,
    pub device: Device,
    pub program: Program,
    pub places: Places,
    /// The steps of this rank, in the order in which it runs them. Every rank keeps to the order of
    /// the program, in which each step is behind those that it waits for. So the first step of all
    /// that is not done waits for nothing: not in its queue, nor where queues share a channel of a
    /// GPU, nor where one thread runs all queues. Hence no order of events makes ranks wait for
    /// each other for ever.
    pub own: Vec<usize>,
    /// For each step, whether steps of other ranks wait for it.
    pub is_awaited: Vec<bool>,
}

impl<T, O> Task<T, O> {
    /// The part of `rank`.
    pub fn new(
        rank: usize,
        device: Device,
        program: Program,
        places: Places,
        products: Products<T, O>,
    ) -> Self {
        let is_own = |&step: &usize| program.steps[step].rank == rank;
        let steps = OwnSteps {
            rank,
            device,
            own: (0..program.steps.len()).filter(is_own).collect(),
            is_awaited: program.awaited(|step, before| step.rank != before.rank),
            program,
            places,
        };
        Task { steps, products }
    }
}

/// The operands of one rank in one run.
pub(super) struct OwnRun<'a, 'c, T, O> {
    pub a: MatrixView<'a, T>,
    pub b: MatrixView<'a, T>,
    pub c: MatrixViewMut<'c, O>,
    pub bias: Option<MatrixView<'a, O>>,
}

impl<'a, T, O: Element> OwnRun<'a, '_, T, O> {
    /// What a product adds, of the caller's.
    pub fn inputs(&self, is_last: bool) -> Inputs<'a, O> {
        match (is_last, self.bias) {
            (true, Some(bias)) => Inputs::new().bias(bias),
            _ => Inputs::new(),
        }
    }
}
