//! [`Gpu`]: a plan on a GPU of the driver.

use std::sync::Arc;

use tilewise::{CudaStream, Element, Layout, MatrixView, MatrixViewMut, Output};

use super::control::Control;
use super::segment::Segment;
use super::task::{OwnRun, OwnSteps, Task};
use crate::cuda::{Arena, Event, Handle, Opened, Rank, Words};
use crate::error::Error;
use crate::lines::Lines;
use crate::plan::Products;
use crate::program::{Buffer, Part, Program, Queue, Work};

/// The memory of one rank, what it has opened of the others, and its events.
///
/// Queues of one rank wait for each other by events, and for queues of other ranks by words in
/// shared host memory. Pushes are made by the copy engine of the GPU that has the rows.
#[derive(Debug)]
pub(super) struct Gpu {
    rank: Arc<Rank>,
    own: usize,
    events: Vec<Option<Event>>,
    /// What the others write to, until [`Gpu::take_arena`].
    arena: Option<Arena>,
    handle: Handle,
    peers: Vec<Option<Opened>>,
    words: Words,
    /// Holds the words.
    _segment: Arc<Segment>,
}

/// One end of a copy, or an operand: its address and layout.
type Place = (u64, Layout);

impl Gpu {
    /// Allocates `bytes`, and the events of `program` for the rank `own`.
    pub fn new(
        rank: &Arc<Rank>,
        segment: &Arc<Segment>,
        program: &Program,
        own: usize,
        bytes: usize,
    ) -> Result<Self, Error> {
        let arena = Arena::new(rank, bytes)?;
        let (memory, length) = segment.memory();
        // SAFETY: a mapping has whole pages, and the result holds it. Its words are accessed by
        // atomics alone: on GPUs there is nothing else in it.
        let words = unsafe { Words::new(rank, memory, length)? };
        let is_awaited = program.awaited(|step, before| (step.rank, before.rank) == (own, own));
        let events = is_awaited.into_iter();
        let events = events.map(|awaited| awaited.then(|| rank.event()).transpose());
        Ok(Gpu {
            events: events.collect::<Result<_, _>>()?,
            handle: arena.handle()?,
            arena: Some(arena),
            rank: Arc::clone(rank),
            own,
            peers: Vec::new(),
            words,
            _segment: Arc::clone(segment),
        })
    }

    /// By which the others open this rank's memory.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Opens the memory of the ranks that this one pushes to.
    pub fn open(&mut self, program: &Program, handles: &[Option<Handle>]) -> Result<(), Error> {
        for (peer, handle) in handles.iter().enumerate() {
            let is_target = program.steps.iter().any(|step| match &step.work {
                Work::Copy { to, .. } => step.rank == self.own && to.buffer.rank() == peer,
                _ => false,
            });
            let opened = match handle {
                Some(handle) if is_target && peer != self.own => {
                    Some(Opened::new(&self.rank, peer, handle)?)
                }
                _ => None,
            };
            self.peers.push(opened);
        }
        Ok(())
    }

    /// Waits until the streams of this rank have finished, or failed.
    pub fn finish(&self) {
        self.rank.finish();
    }

    /// Closes the memory of the others. Nothing runs any more.
    pub fn close(&mut self) {
        self.peers.clear();
    }

    /// The memory that the others write to, to be freed once they have closed it.
    pub fn take_arena(&mut self) -> Option<Arena> {
        self.arena.take()
    }

    /// Enqueues the steps of this rank.
    pub fn run<T: Element, O: Output<T>>(
        &mut self,
        task: &mut Task<T, O>,
        control: &Control,
        epoch: u32,
        run: &mut OwnRun<T, O>,
    ) -> Result<(), Error> {
        let Task { steps, products } = task;
        for &index in &steps.own {
            let step = &steps.program.steps[index];
            let queue = step.queue;
            for &before in &step.after {
                if steps.program.steps[before].rank != self.own {
                    self.words.wait(queue, control.flag(before), epoch)?;
                } else if let Some(event) = &self.events[before] {
                    self.rank.wait(queue, event)?;
                }
            }
            self.step(steps, products, index, run)?;
            if let Some(event) = &self.events[index] {
                self.rank.record(queue, event)?;
            }
            if steps.is_awaited[index] {
                self.words.write(queue, control.flag(index), epoch)?;
            }
        }
        // The end of a rank is the last step of its stream.
        self.words.write(Queue::Compute, control.ended(), epoch)
    }

    fn step<T: Element, O: Output<T>>(
        &self,
        steps: &OwnSteps,
        products: &mut Products<T, O>,
        index: usize,
        run: &mut OwnRun<T, O>,
    ) -> Result<(), Error> {
        let queue = steps.program.steps[index].queue;
        match &steps.program.steps[index].work {
            Work::Start | Work::End => Ok(()),
            Work::Copy { from, to } => {
                let is_input = matches!(to.buffer, Buffer::Gathered { .. });
                let size = if is_input {
                    size_of::<T>()
                } else {
                    size_of::<O>()
                };
                let ends = [from, to].map(|part| {
                    let (address, layout) = self.place(steps, part, run)?;
                    Some((address, Lines::of(layout, size)?))
                });
                match ends {
                    // SAFETY: both are live: the caller has borrowed its matrices to the run and
                    // its later work is behind it, and no rank frees the plan's memory before
                    // the others have closed it. No other step touches them until the copy is
                    // done (`Program::check`), but where the flags were released.
                    [Some(from), Some(to)] => unsafe { self.rank.copy(queue, from, to) },
                    // Planning has checked the layouts, of all but empty matrices.
                    _ => Ok(()),
                }
            }
            Work::Product {
                a,
                source,
                c,
                is_last,
            } => {
                let device = &steps.device;
                let place = |part: &Part| self.place(steps, part, run).ok_or(Error::NoRanks);
                let of_c = place(c)?;
                let of_source = source.as_ref().map(place).transpose()?;
                if of_c.1.is_empty() {
                    return Ok(());
                }
                let mut inputs = run.inputs(*is_last);
                if let Some((address, layout)) = of_source {
                    // SAFETY: the plan's memory is live, and the copy that filled it is done.
                    inputs =
                        inputs.source(unsafe { MatrixView::from_raw(device, address, layout)? });
                }
                let a = match a.buffer {
                    Buffer::A { .. } => run.a.slice(a.rows.clone(), 0..run.a.cols())?,
                    _ => {
                        let (address, layout) = place(a)?;
                        // SAFETY: as above.
                        unsafe { MatrixView::from_raw(device, address, layout)? }
                    }
                };
                // SAFETY: as above; no other step touches these rows until this one has finished.
                let c = unsafe { MatrixViewMut::from_raw(device, of_c.0, of_c.1)? };
                let stream = self.rank.stream(queue);
                // SAFETY: the stream belongs to the primary context, and lives as long as `rank`.
                let stream = unsafe { CudaStream::from_raw(stream.cast()) };
                let stream = (queue != Queue::Compute).then_some(stream);
                // SAFETY: as above; the start of the run, and so the caller's earlier work on the
                // operands, is before this step, and its end behind it.
                unsafe { products.run_on(stream, index, a, run.b, c, &inputs) }
            }
        }
    }

    /// Where the rows of `part` lie, for this rank; `None` for what it does not touch.
    fn place<T: Element, O: Output<T>>(
        &self,
        steps: &OwnSteps,
        part: &Part,
        run: &OwnRun<T, O>,
    ) -> Option<Place> {
        let rows = |address: u64, whole: Layout, size: usize| {
            let first = part.rows.start * whole.row_stride * size;
            let rows = part.rows.len();
            (address + first as u64, Layout { rows, ..whole })
        };
        match part.buffer {
            Buffer::A { .. } => Some(rows(run.a.address(), run.a.layout(), size_of::<T>())),
            Buffer::B { .. } => Some(rows(run.b.address(), run.b.layout(), size_of::<T>())),
            Buffer::C { .. } => {
                let c = run.c.as_view();
                Some(rows(c.address(), c.layout(), size_of::<O>()))
            }
            _ => {
                let rank = part.buffer.rank();
                let base = match rank == self.own {
                    true => self.arena.as_ref()?.address(),
                    false => self.peers.get(rank)?.as_ref()?.address(),
                };
                let (first, layout) = steps.places.find(part)?;
                Some((base + first as u64, layout))
            }
        }
    }
}
