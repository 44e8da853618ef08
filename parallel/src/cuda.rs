//! GPUs of the driver: streams, events and copies between them.
//!
//! In one process, streams wait only for events that were recorded before, so no order of calls
//! and no slow rank can make them wait for ever. Between processes they wait for words in shared
//! memory (`shared.rs`), which a thread of each process watches.

mod error;
mod rank;
mod shared;

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;
use tilewise::{CudaStream, Device};

use crate::error::Error;
use crate::lines::Lines;
use crate::program::{Program, Queue};
use error::check;
pub(crate) use rank::{Current, Event, Rank};
pub(crate) use shared::{Arena, Handle, Opened, Words};

/// The ranks of a group, each of which can access the memory of the others.
#[derive(Debug)]
pub(crate) struct Links {
    ranks: Vec<Rank>,
}

impl Links {
    /// Opens `devices`, which are GPUs of the driver, and lets each access the memory of the
    /// others: what `cuMemAlloc` gave, and the matrices of the library, which are from a pool.
    pub(crate) fn new(devices: &[Device]) -> Result<Self, Error> {
        let ranks: Vec<Rank> = devices.iter().map(Rank::new).collect::<Result<_, _>>()?;
        for rank in &ranks {
            for peer in ranks.iter().filter(|peer| peer.device() != rank.device()) {
                rank.enable_access_to(peer)?;
            }
        }
        for (rank, device) in ranks.iter().zip(devices) {
            rank.share_pool(device, &ranks)?;
        }
        Ok(Links { ranks })
    }

    /// The first rank whose stream captures a graph, if there is one.
    pub(crate) fn capturing(&self) -> Result<Option<usize>, Error> {
        for (number, rank) in self.ranks.iter().enumerate() {
            if rank.captures()? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Makes the context of `rank` current until the result is dropped.
    pub(crate) fn make_current(&self, rank: usize) -> Result<Current, Error> {
        self.ranks[rank].make_current()
    }

    /// Makes some context of the group current until the result is dropped, for calls that leave
    /// another one current; then the context is current again that was before.
    pub(crate) fn keep_current(&self) -> Result<Current, Error> {
        self.make_current(0)
    }
}

/// The events of a plan: one for each step that a step of another queue waits for.
#[derive(Debug)]
pub(crate) struct Events {
    links: Arc<Links>,
    events: Vec<Option<Event>>,
}

impl Events {
    /// Creates the events of `program`.
    pub(crate) fn new(links: &Arc<Links>, program: &Program) -> Result<Self, Error> {
        let awaited = program.awaited(|_, _| true);
        let create = |(step, awaited): (usize, bool)| {
            let rank = &links.ranks[program.steps[step].rank];
            awaited.then(|| rank.event()).transpose()
        };
        let events = awaited.into_iter().enumerate().map(create);
        Ok(Events {
            links: links.clone(),
            events: events.collect::<Result<_, _>>()?,
        })
    }

    /// Makes the queue of `step` wait for what `step` waits for.
    pub(crate) fn wait(&self, program: &Program, step: usize) -> Result<(), Error> {
        let step = &program.steps[step];
        let rank = &self.links.ranks[step.rank];
        for &before in &step.after {
            if let Some(event) = &self.events[before] {
                rank.wait(step.queue, event)?;
            }
        }
        Ok(())
    }

    /// Notes that everything up to `step` is enqueued in its queue.
    pub(crate) fn record(&self, program: &Program, step: usize) -> Result<(), Error> {
        let Some(event) = &self.events[step] else {
            return Ok(());
        };
        let step = &program.steps[step];
        self.links.ranks[step.rank].record(step.queue, event)
    }

    /// The stream of products in `queue` of `rank`; `None` for the library's own.
    pub(crate) fn stream(&self, rank: usize, queue: Queue) -> Option<CudaStream> {
        let stream = self.links.ranks[rank].stream(queue);
        // SAFETY: the stream belongs to the primary context, and lives as long as the links.
        (queue != Queue::Compute).then(|| unsafe { CudaStream::from_raw(stream.cast()) })
    }

    /// Waits until all streams of the group have finished. A failure means that they have
    /// failed, and so will not use memory any more.
    pub(crate) fn finish(&self) {
        for rank in &self.links.ranks {
            rank.finish();
        }
    }

    /// Enqueues a copy from the memory of rank `from.0` into that of rank `to.0`, in the copy
    /// queue of `rank`, one of them.
    ///
    /// # Safety
    /// Both are live until the copy is done, and nothing writes to them meanwhile.
    pub(crate) unsafe fn copy(
        &self,
        rank: usize,
        from: (usize, u64, Lines),
        to: (usize, u64, Lines),
    ) -> Result<(), Error> {
        let (source, target) = (&self.links.ranks[from.0], &self.links.ranks[to.0]);
        let queue = &self.links.ranks[rank];
        let _current = queue.make_current()?;
        let stream = queue.stream(Queue::Copy);
        let lines = from.2;
        assert!(
            (lines.bytes, lines.count) == (to.2.bytes, to.2.count),
            "both ends of a copy have the same lines"
        );
        if lines.count == 0 || lines.bytes == 0 {
            return Ok(());
        }
        if lines.is_dense() && to.2.is_dense() {
            let bytes = lines.bytes * lines.count;
            // SAFETY: the caller's duty.
            let result = unsafe {
                sys::cuMemcpyPeerAsync(
                    to.1,
                    target.context(),
                    from.1,
                    source.context(),
                    bytes,
                    stream,
                )
            };
            return check("cuMemcpyPeerAsync", result);
        }
        let copy = sys::CUDA_MEMCPY3D_PEER {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: from.1,
            srcArray: ptr::null_mut(),
            srcContext: source.context(),
            srcPitch: lines.pitch,
            srcHeight: lines.count,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: to.1,
            dstArray: ptr::null_mut(),
            dstContext: target.context(),
            dstPitch: to.2.pitch,
            dstHeight: to.2.count,
            WidthInBytes: lines.bytes,
            Height: lines.count,
            Depth: 1,
        };
        // SAFETY: the caller's duty; the description outlives the call.
        check("cuMemcpy3DPeerAsync", unsafe {
            sys::cuMemcpy3DPeerAsync(&copy, stream)
        })
    }
}
