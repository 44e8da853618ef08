//! Waiting for the stream of a GPU no longer than a limit.
//!
//! A kernel that never ends cannot be cancelled, and most calls of the driver may wait for
//! it: freeing memory, destroying events, unloading modules, releasing the context. So once
//! a wait has timed out, the GPU is overdue: every call that could block answers
//! [`Error::TimedOut`] instead, destructors leave to the process's end what they would
//! free, and the GPU's own handle is kept, so that opening it again finds it overdue.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::opened::Gpu;
use crate::error::Error;

/// Time in which a wait asks again and again: a small product is done by then, and a sleep
/// would be the longest part of its time.
const ASK: Duration = Duration::from_micros(200);

/// Longest sleep between two questions. A thousandth of the shortest limits that make
/// sense for a GPU, and too long to load the CPU.
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// Waits until the stream of `gpu` has done everything, or else makes the GPU overdue.
/// One that was overdue is so no more when everything is done.
///
/// # Errors
/// [`Error::TimedOut`], and what the driver says of the work.
pub(crate) fn within(gpu: &Arc<Gpu>, limit: Duration) -> Result<(), Error> {
    let backend = gpu.backend();
    backend.make_current()?;
    if poll(limit, || backend.is_done())? {
        gpu.overdue().lift();
        return Ok(());
    }
    gpu.overdue().set(gpu, limit);
    Err(gpu.timed_out(limit))
}

/// Asks until the answer is yes; `Ok(false)` when the limit has passed. Asks once at least.
fn poll(limit: Duration, mut is_done: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
    let start = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        let waited = start.elapsed();
        let left = limit.saturating_sub(waited);
        if left.is_zero() {
            return Ok(false);
        }
        if waited < ASK {
            thread::yield_now();
        } else {
            // The end is noticed late by an eighth of the wait at most.
            thread::sleep((waited / 8).min(LONGEST_SLEEP).min(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_not_waited_for() {
        let mut asked = 0;
        let done = poll(Duration::ZERO, || {
            asked += 1;
            Ok(true)
        });
        assert_eq!((done, asked), (Ok(true), 1));
    }

    #[test]
    fn what_is_never_done_ends_at_the_limit_and_leaves_the_cpu_alone() {
        let limit = Duration::from_millis(100);
        let (start, mut asked_asleep) = (Instant::now(), 0);
        let done = poll(limit, || {
            asked_asleep += usize::from(start.elapsed() > ASK);
            Ok(false)
        });
        assert_eq!(done, Ok(false));
        assert!(start.elapsed() >= limit);
        // Sleeps of 25 microseconds and more, most of them of two milliseconds.
        assert!(asked_asleep < 200, "{asked_asleep}");
        assert_eq!(poll(Duration::ZERO, || Ok(false)), Ok(false));
    }

    #[test]
    fn the_end_is_noticed_soon() {
        let (start, end) = (Instant::now(), Duration::from_millis(20));
        assert_eq!(poll(Duration::MAX, || Ok(start.elapsed() >= end)), Ok(true));
    }

    #[test]
    fn a_failure_ends_the_wait() {
        let error = Error::TuningWhileCapturing;
        let failed = poll(Duration::MAX, || Err(error.clone()));
        assert_eq!(failed, Err(error));
    }
}
