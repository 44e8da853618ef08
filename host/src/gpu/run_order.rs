//! [`RunOrder`]: the runs of one plan, on whatever streams, one after the other.
//!
//! A plan with a workspace may not run twice at once, because both runs would write to the
//! workspace. On one stream the runs are in order anyway. A run on another stream waits for
//! an event of the run before it.
//!
//! A caller's stream may be destroyed after any run, so the event is recorded right behind
//! each run there. The library's own stream lives as long as the GPU, so for a run there the
//! event is recorded when another stream is to wait for it, and runs on that stream alone
//! cost nothing.
//!
//! A run that is captured does not run now, and an event from outside a capture cannot be
//! waited for inside. So captured runs are ordered among themselves, within one capture. The
//! order of a graph's replays and of other runs is the caller's business.

use super::backend::{Backend, Event};
use super::stream::CudaStream;
use crate::error::Error;

/// The last runs of one plan.
#[derive(Debug, Default)]
pub(crate) struct RunOrder {
    /// The last run that was not captured.
    launched: Option<Last>,
    /// The last run that was captured, and the number of its capture.
    captured: Option<(u64, Last)>,
    /// Recorded for `launched`.
    launched_event: Option<Box<dyn Event>>,
    /// Recorded for `captured`.
    captured_event: Option<Box<dyn Event>>,
    /// Why the event of a run could not be recorded: nothing waits for that run.
    lost: Option<Error>,
}

/// Where a run was enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// On the library's own stream.
    Own,
    /// On a caller's stream. The number of that stream is unique in the process; a driver
    /// before CUDA 12.0 gives none, and no driver does while the stream is captured.
    Foreign(Option<u64>),
}

impl Last {
    fn on(backend: &dyn Backend, stream: Option<CudaStream>) -> Result<Self, Error> {
        match stream {
            None => Ok(Last::Own),
            Some(stream) => backend.stream_number(stream).map(Last::Foreign),
        }
    }

    /// Whether both runs are certainly on one stream.
    fn is_same_stream(self, other: Last) -> bool {
        self == other && self != Last::Foreign(None)
    }
}

/// A run that is about to be enqueued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    stream: Option<CudaStream>,
    last: Last,
    capture: Option<u64>,
}

impl Turn {
    /// A run on `stream` of a plan without a workspace.
    pub(crate) fn unordered(stream: Option<CudaStream>) -> Self {
        Turn {
            stream,
            last: Last::Own,
            capture: None,
        }
    }

    /// The stream of the run; `None` for the library's own.
    pub(crate) fn stream(self) -> Option<CudaStream> {
        self.stream
    }

    /// Whether the run is captured.
    pub(crate) fn is_captured(self) -> bool {
        self.capture.is_some()
    }
}

impl RunOrder {
    /// Makes `stream` wait for the run before, if that is on another stream. `None` is the
    /// library's own stream. The GPU's context is current.
    ///
    /// # Errors
    /// [`Error::OrderWhileCapturing`].
    pub(crate) fn before(
        &mut self,
        backend: &dyn Backend,
        stream: Option<CudaStream>,
    ) -> Result<Turn, Error> {
        if let Some(error) = &self.lost {
            return Err(error.clone());
        }
        let capture = backend.capture(stream)?;
        let turn = Turn {
            stream,
            last: match capture {
                // The driver gives no number of a stream that is captured, but such a stream
                // outlives its capture, so the handle tells it from others.
                Some(_) => stream.map_or(Last::Own, |stream| {
                    Last::Foreign(Some(stream.as_raw() as u64))
                }),
                None => Last::on(backend, stream)?,
            },
            capture,
        };
        match (capture, self.launched, self.captured) {
            (None, Some(before), _) if !before.is_same_stream(turn.last) => {
                if before == Last::Own {
                    if backend.capture(None)?.is_some() {
                        return Err(Error::OrderWhileCapturing);
                    }
                    event(&mut self.launched_event, backend)?.record(None)?;
                }
                event(&mut self.launched_event, backend)?.make_wait(stream)?;
            }
            (Some(now), _, Some((then, before)))
                if now == then && !before.is_same_stream(turn.last) =>
            {
                event(&mut self.captured_event, backend)?.make_wait(stream)?;
            }
            _ => {}
        }
        // Behind the run, nothing but the record itself can fail.
        match (capture, stream) {
            (None, None) => {}
            (None, Some(_)) => drop(event(&mut self.launched_event, backend)?),
            (Some(_), _) => drop(event(&mut self.captured_event, backend)?),
        }
        Ok(turn)
    }

    /// Notes that the run of `turn` is enqueued, as far as its calls succeeded.
    pub(crate) fn after(&mut self, turn: Turn) -> Result<(), Error> {
        let event = match turn.capture {
            None => {
                self.launched = Some(turn.last);
                self.launched_event
                    .as_ref()
                    .filter(|_| turn.stream.is_some())
            }
            Some(number) => {
                self.captured = Some((number, turn.last));
                self.captured_event.as_ref()
            }
        };
        let recorded = event.map_or(Ok(()), |event| event.record(turn.stream));
        if let Err(error) = &recorded {
            self.lost = Some(error.clone());
        }
        recorded
    }

    /// Whether a run was captured, so that a graph may run it at any time.
    pub(crate) fn is_captured(&self) -> bool {
        self.captured.is_some()
    }

    /// Waits for the last run on a caller's stream. (Whoever frees memory waits for the
    /// library's own stream.)
    pub(crate) fn finish(&self) -> Result<(), Error> {
        match (&self.lost, self.launched, &self.launched_event) {
            (Some(error), ..) => Err(error.clone()),
            (None, Some(Last::Foreign(_)), Some(event)) => event.synchronize(),
            _ => Ok(()),
        }
    }
}

/// The event in `place`, which is created if there is none.
fn event<'e>(
    place: &'e mut Option<Box<dyn Event>>,
    backend: &dyn Backend,
) -> Result<&'e dyn Event, Error> {
    let event = match place.take() {
        Some(event) => event,
        None => backend.event()?,
    };
    Ok(&**place.insert(event))
}
