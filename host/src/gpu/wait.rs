//! Waits for the stream of a GPU with a time limit.
//!
//! CUDA cannot cancel a kernel that never ends, and most calls of the driver may wait for
//! it: freeing memory, destroying events, unloading modules, releasing the context. So
//! once a wait has timed out, the GPU is overdue: every call that could block returns
//! [`Error::TimedOut`] instead, destructors free nothing, and the GPU's own handle is
//! kept, so that opening the GPU again finds it overdue.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::opened::Gpu;
use crate::error::Error;

/// For this long, a wait polls without sleeping. A small product is done by then, and a
/// sleep would take longer than the product.
const ASK: Duration = Duration::from_micros(200);

/// Longest sleep between two polls. It is a thousandth of the shortest limits that make
/// sense for a GPU, and long enough to leave the CPU idle.
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// Waits until the stream of `gpu` has finished all work. If that takes longer than
/// `limit`, the GPU becomes overdue. An overdue GPU whose work is finished is no longer
/// overdue.
///
/// # Errors
/// [`Error::TimedOut`], and errors that the driver reports for the work.
pub(crate) fn within(gpu: &Arc<Gpu>, limit: Duration) -> Result<(), Error> {
    let backend = gpu.backend();
    let _current = backend.make_current()?;
    if poll(limit, || backend.is_done())? {
        gpu.overdue().lift();
        return Ok(());
    }
    gpu.overdue().set(gpu, limit);
    Err(gpu.timed_out(limit))
}

/// Calls `is_done` until it returns true, at least once. Returns `Ok(false)` when the
/// limit has passed.
pub(super) fn poll(
    limit: Duration,
    mut is_done: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
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
            // A sleep of an eighth of the wait delays the result by an eighth at most.
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
        // Sleeps take 25 microseconds and more, most of them two milliseconds.
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
