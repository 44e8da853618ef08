//! Time on the GPU's own clock: pairs of CUDA events on the library's stream.

use crate::error::Error;
use cust::event::{Event, EventFlags};
use cust::stream::Stream;

/// The time between two points of a stream (resolution about 0.5 µs).
pub struct Interval {
    start: Event,
    stop: Event,
}

impl Interval {
    /// Two events, not yet recorded.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn new() -> Result<Self, Error> {
        Ok(Interval {
            start: Event::new(EventFlags::DEFAULT)?,
            stop: Event::new(EventFlags::DEFAULT)?,
        })
    }

    /// Marks the start.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn start(&self, stream: &Stream) -> Result<(), Error> {
        Ok(self.start.record(stream)?)
    }

    /// Marks the end.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn stop(&self, stream: &Stream) -> Result<(), Error> {
        Ok(self.stop.record(stream)?)
    }

    /// Waits for the end; returns the milliseconds between.
    ///
    /// # Errors
    /// Work before the end failed, or an event was never recorded.
    pub fn milliseconds(&self) -> Result<f64, Error> {
        self.stop.synchronize()?;
        Ok(f64::from(self.stop.elapsed_time_f32(&self.start)?))
    }
}
