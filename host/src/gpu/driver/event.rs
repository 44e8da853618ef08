//! Events of the driver, which mark a place in the work of a stream.

use super::binding::{self, CUevent, CUstream};
use super::check;
use crate::error::Error;
use crate::gpu::backend;
use crate::gpu::stream::CudaStream;

/// One event.
#[derive(Debug)]
pub(super) struct Event(CUevent);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that takes the time.
    pub(super) fn timed() -> Result<Self, Error> {
        Event::new(binding::CU_EVENT_DEFAULT)
    }

    /// An event that takes no time.
    pub(super) fn untimed() -> Result<Self, Error> {
        Event::new(binding::CU_EVENT_DISABLE_TIMING)
    }

    fn new(flags: u32) -> Result<Self, Error> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the handle outlives the call.
        let result = unsafe { binding::cuEventCreate(&mut event, flags) };
        check("cuEventCreate", result).map(|()| Event(event))
    }

    /// Enqueues the event on `stream`, which exists.
    pub(super) fn record(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: event and stream exist.
        check("cuEventRecord", unsafe {
            binding::cuEventRecord(self.0, stream)
        })
    }

    /// Milliseconds from `start` to this event; both have happened.
    pub(super) fn milliseconds_since(&self, start: &Event) -> Result<f32, Error> {
        let mut milliseconds = 0.0;
        // SAFETY: the events exist; the number outlives the call.
        let result = unsafe { binding::cuEventElapsedTime(&mut milliseconds, start.0, self.0) };
        check("cuEventElapsedTime", result).map(|()| milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { binding::cuEventDestroy_v2(self.0) };
    }
}

/// An event of a GPU whose own stream is `own`.
#[derive(Debug)]
pub(super) struct OrderEvent {
    event: Event,
    own: CudaStream,
}

impl OrderEvent {
    pub(super) fn new(own: CudaStream) -> Result<Self, Error> {
        let event = Event::untimed()?;
        Ok(OrderEvent { event, own })
    }

    fn handle(&self, stream: Option<CudaStream>) -> CUstream {
        stream.unwrap_or(self.own).as_raw().cast()
    }
}

impl backend::Event for OrderEvent {
    fn record(&self, stream: Option<CudaStream>) -> Result<(), Error> {
        self.event.record(self.handle(stream))
    }

    fn make_wait(&self, stream: Option<CudaStream>) -> Result<(), Error> {
        // SAFETY: event and stream exist.
        check("cuStreamWaitEvent", unsafe {
            binding::cuStreamWaitEvent(self.handle(stream), self.event.0, 0)
        })
    }

    fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the event exists.
        check("cuEventSynchronize", unsafe {
            binding::cuEventSynchronize(self.event.0)
        })
    }
}
