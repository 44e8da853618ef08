//! Two events on a stream, with which the GPU takes the time on its own clock.

use super::binding::{self, CU_EVENT_DEFAULT, CUevent, CUstream};
use super::check;
use crate::error::Error;
use crate::gpu::backend::Timer;

/// The start and stop events. The context must be current when this is dropped.
#[derive(Debug)]
pub(super) struct EventTimer {
    start: Event,
    stop: Event,
    stream: CUstream,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for EventTimer {}
// SAFETY: as above.
unsafe impl Sync for EventTimer {}

impl EventTimer {
    /// Creates both events; `stream` must outlive them.
    pub(super) fn new(stream: CUstream) -> Result<Self, Error> {
        Ok(EventTimer {
            start: Event::new()?,
            stop: Event::new()?,
            stream,
        })
    }
}

impl Timer for EventTimer {
    fn start(&self) -> Result<(), Error> {
        self.start.record(self.stream)
    }

    fn stop(&self) -> Result<(), Error> {
        self.stop.record(self.stream)
    }

    fn milliseconds(&self) -> Result<f32, Error> {
        let mut milliseconds = 0.0;
        // SAFETY: the events exist; the number outlives the call.
        let result =
            unsafe { binding::cuEventElapsedTime(&mut milliseconds, self.start.0, self.stop.0) };
        check("cuEventElapsedTime", result).map(|()| milliseconds)
    }
}

/// One event.
#[derive(Debug)]
struct Event(CUevent);

impl Event {
    fn new() -> Result<Self, Error> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the handle outlives the call.
        let result = unsafe { binding::cuEventCreate(&mut event, CU_EVENT_DEFAULT) };
        check("cuEventCreate", result).map(|()| Event(event))
    }

    fn record(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: event and stream exist.
        check("cuEventRecord", unsafe {
            binding::cuEventRecord(self.0, stream)
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { binding::cuEventDestroy_v2(self.0) };
    }
}
