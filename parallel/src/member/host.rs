//! [`Host`]: a plan on devices that finish each call before it returns: the CPU, emulated GPUs.

use std::sync::Arc;

use tilewise::{Element, Layout, MatrixView, Output};

use super::control::Control;
use super::segment::Segment;
use super::task::{OwnRun, OwnSteps, Task};
use crate::error::Error;
use crate::plan::{Products, zeros};
use crate::program::{Buffer, Part, Work};

/// The shared memory of a plan. What ranks receive lies behind the words of [`Control`], row by row
/// without gaps.
#[derive(Debug)]
pub(super) struct Host {
    segment: Arc<Segment>,
    /// Where the memory of each rank begins.
    first: Vec<usize>,
}

impl Host {
    /// Bytes of a segment for the words, and for `bytes` of each rank.
    pub fn bytes(words: usize, bytes: &[usize]) -> usize {
        bytes
            .iter()
            .fold(words, |sum, &own| sum.saturating_add(own))
    }

    /// The memory of ranks that have `bytes` each, behind `words` of the segment.
    pub fn new(segment: Arc<Segment>, words: usize, bytes: &[usize]) -> Self {
        let mut end = words;
        let place = |bytes: &usize| {
            let first = end;
            end += bytes;
            first
        };
        Host {
            first: bytes.iter().map(place).collect(),
            segment,
        }
    }

    /// Runs all steps of the task. `wait` returns when a step of another rank is done.
    pub fn run<T: Element, O: Output<T>>(
        &self,
        task: &mut Task<T, O>,
        control: &Control,
        epoch: u32,
        run: &mut OwnRun<T, O>,
        wait: impl Fn(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Task { steps, products } = task;
        for &index in &steps.own {
            for &before in &steps.program.steps[index].after {
                if steps.program.steps[before].rank != steps.rank {
                    wait(before)?;
                }
            }
            self.step(steps, products, index, run)?;
            if steps.is_awaited[index] {
                control.done(index, epoch);
            }
        }
        control.end(epoch);
        Ok(())
    }

    fn step<T: Element, O: Output<T>>(
        &self,
        steps: &OwnSteps,
        products: &mut Products<T, O>,
        index: usize,
        run: &mut OwnRun<T, O>,
    ) -> Result<(), Error> {
        match &steps.program.steps[index].work {
            Work::Start | Work::End => Ok(()),
            Work::Copy { from, to } => match from.buffer {
                Buffer::A { .. } => {
                    let elements = rows(run.a, from)?.to_vec()?;
                    self.write(steps, to, &elements);
                    Ok(())
                }
                Buffer::C { .. } => {
                    let elements = rows(run.c.as_view(), from)?.to_vec()?;
                    self.store(steps, to, run, &elements)
                }
                _ => {
                    let elements: Vec<O> = self.read(steps, from);
                    self.store(steps, to, run, &elements)
                }
            },
            Work::Product {
                a,
                source,
                c,
                is_last,
            } => {
                let layout = match steps.places.find(c) {
                    Some((_, layout)) => layout,
                    None => rows(run.c.as_view(), c)?.layout(),
                };
                if layout.is_empty() {
                    return Ok(());
                }
                let mut product = zeros(&steps.device, layout)?;
                let gathered = self.matrix(steps, a)?;
                let summand = match source {
                    Some(source) => self.matrix(steps, source)?,
                    None => None,
                };
                let mut inputs = run.inputs(*is_last);
                if let Some(summand) = &summand {
                    inputs = inputs.source(summand.view());
                }
                let of_a = match &gathered {
                    Some(gathered) => gathered.view(),
                    None => rows(run.a, a)?,
                };
                let target = product.view_mut();
                products.run(index, of_a, run.b, target, &inputs)?;
                self.store(steps, c, run, &product.to_vec()?)
            }
        }
    }

    /// What lies in `part` of the plan's memory, as a matrix with the planned layout; `None` for the
    /// caller's matrices.
    fn matrix<E: Element>(
        &self,
        steps: &OwnSteps,
        part: &Part,
    ) -> Result<Option<tilewise::Matrix<E>>, Error> {
        let Some((_, layout)) = steps.places.find(part) else {
            return Ok(None);
        };
        let mut matrix = zeros(&steps.device, layout)?;
        if !layout.is_empty() {
            matrix.view_mut().copy_from_slice(&self.read(steps, part))?;
        }
        Ok(Some(matrix))
    }

    /// The elements of `part` of the plan's memory.
    fn read<E: Element>(&self, steps: &OwnSteps, part: &Part) -> Vec<E> {
        let Some((first, (rows, cols))) = steps.places.find_dense(part) else {
            return Vec::new();
        };
        let byte = self.first[part.buffer.rank()] + first;
        // SAFETY: no step writes to these rows until this one has finished (`Program::check`); all
        // bits are valid elements.
        unsafe { self.segment.read(byte, rows * cols) }
    }

    /// Writes the elements of `part` of the plan's memory.
    fn write<E: Element>(&self, steps: &OwnSteps, part: &Part, elements: &[E]) {
        if let Some((first, _)) = steps.places.find_dense(part) {
            let byte = self.first[part.buffer.rank()] + first;
            // SAFETY: no other step accesses these rows until this one has finished
            // (`Program::check`).
            unsafe { self.segment.write(byte, elements) }
        }
    }

    /// Writes sums, into C or the plan's memory.
    fn store<T: Element, O: Output<T>>(
        &self,
        steps: &OwnSteps,
        part: &Part,
        run: &mut OwnRun<T, O>,
        elements: &[O],
    ) -> Result<(), Error> {
        match part.buffer {
            Buffer::C { .. } => {
                let cols = run.c.cols();
                let mut c = run.c.reborrow().slice(part.rows.clone(), 0..cols)?;
                c.copy_from_slice(elements)?;
            }
            _ => self.write(steps, part, elements),
        }
        Ok(())
    }
}

/// The rows of `part` of the caller's matrix.
fn rows<'m, E: Element>(view: MatrixView<'m, E>, part: &Part) -> Result<MatrixView<'m, E>, Error> {
    let Layout { cols, .. } = view.layout();
    Ok(view.slice(part.rows.clone(), 0..cols)?)
}
