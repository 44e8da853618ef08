//! Two events on a stream, with which the GPU takes the time on its own clock.

use super::binding::CUstream;
use super::event::Event;
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
            start: Event::timed()?,
            stop: Event::timed()?,
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
        self.stop.milliseconds_since(&self.start)
    }
}
