//! The two regimes a GPU kernel is measured in, and wall time for the CPU.
//!
//! Everything compared runs in the same process and in turns (A B C A B C …),
//! so that drift of clocks and temperature meets all alike (CUTLASS's
//! methodology, nvbench):
//!
//! - [`cold`]: `[overwrite L2, event, launch, event]`, the state of a GPU that
//!   did something else before, at burst clocks. L2 is full of dirty lines
//!   then, whose write-back is part of the time, as in Triton's `do_bench`.
//! - [`sustained`]: back-to-back launches in slices of [`SLICE_MS`], events
//!   around each slice, for at least the asked time each. The GPU never idles,
//!   so clock and power settle where the load puts them. Where a launch takes
//!   longer on the host than on the GPU, this measures the host.
//!
//! Candidates are numbered; a regime calls `launch(i)` to enqueue one product
//! of candidate `i`.

use crate::error::Error;
use crate::memory::L2Flush;
use crate::timing::Interval;
use cust::stream::Stream;
use std::time::{Duration, Instant};

/// Milliseconds of launches between two events of the sustained regime: longer
/// than the GPU takes to adapt its clock, short enough to interleave.
pub const SLICE_MS: f64 = 200.0;

/// Fewest and most samples of a candidate, cold and wall.
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=100;

/// Enqueues (GPU) or makes (CPU) one product of a candidate.
pub type Launch<'a> = &'a mut dyn FnMut(usize) -> Result<(), Error>;

/// What a regime saw of one candidate.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Time of one product, ms; in the sustained regime the mean of a slice.
    pub milliseconds: Vec<f64>,
    /// When it ran, on the host's clock. Cold samples are too short to tell
    /// apart; they share the span of the regime.
    pub spans: Vec<(Instant, Instant)>,
}

/// Runs every candidate a few times: lazy initialisation, instruction caches.
///
/// # Errors
/// A launch failed.
pub fn warm_up(stream: &Stream, candidates: usize, launch: Launch) -> Result<(), Error> {
    for _ in 0..3 {
        for candidate in 0..candidates {
            launch(candidate)?;
        }
    }
    Ok(stream.synchronize()?)
}

/// Times single launches on an overwritten L2, in turns, for `budget` in all
/// (or the fewest rounds, whichever is longer).
///
/// # Errors
/// A launch or the driver failed.
pub fn cold(
    stream: &Stream,
    flush: &mut L2Flush,
    candidates: usize,
    budget: Duration,
    launch: Launch,
) -> Result<Vec<Samples>, Error> {
    let intervals: Vec<Interval> = (0..candidates)
        .map(|_| Interval::new())
        .collect::<Result<_, _>>()?;
    let mut samples = vec![Samples::default(); candidates];
    let begin = Instant::now();
    for round in 1..=*ROUNDS.end() {
        for (candidate, interval) in intervals.iter().enumerate() {
            flush.enqueue(stream)?;
            interval.start(stream)?;
            launch(candidate)?;
            interval.stop(stream)?;
        }
        for (sample, interval) in samples.iter_mut().zip(&intervals) {
            sample.milliseconds.push(interval.milliseconds()?);
        }
        if round >= *ROUNDS.start() && begin.elapsed() > budget {
            break;
        }
    }
    let span = (begin, Instant::now());
    for sample in &mut samples {
        sample.spans.push(span);
    }
    Ok(samples)
}

/// Times slices of back-to-back launches, in turns, until each candidate has
/// run for `at_least`. `expected_ms[i]` is about what one product of `i` takes.
///
/// # Errors
/// A launch or the driver failed.
pub fn sustained(
    stream: &Stream,
    expected_ms: &[f64],
    at_least: Duration,
    launch: Launch,
) -> Result<Vec<Samples>, Error> {
    let target_ms = at_least.as_secs_f64() * 1e3;
    let slice_ms = SLICE_MS.min(target_ms);
    let slices: Vec<Slice> = expected_ms
        .iter()
        .map(|expected| Slice::new((slice_ms / expected).ceil().max(1.0) as usize))
        .collect::<Result<_, _>>()?;
    let mut samples = vec![Samples::default(); slices.len()];
    let mut run_ms = vec![0.0; slices.len()];
    // One slice waits in the stream while another is read: no gap between them.
    let mut running: Option<usize> = None;
    let mut boundary = Instant::now();
    let mut read = |candidate: usize, run_ms: &mut [f64]| -> Result<(), Error> {
        let slice: &Slice = &slices[candidate];
        let total = slice.interval.milliseconds()?;
        let now = Instant::now();
        run_ms[candidate] += total;
        samples[candidate]
            .milliseconds
            .push(total / slice.launches as f64);
        samples[candidate].spans.push((boundary, now));
        boundary = now;
        Ok(())
    };
    while run_ms.iter().any(|&ms| ms < target_ms) {
        for (candidate, slice) in slices.iter().enumerate() {
            // With one candidate, its events must be read before they are reused.
            if running == Some(candidate) {
                read(candidate, &mut run_ms)?;
                running = None;
            }
            slice.interval.start(stream)?;
            for _ in 0..slice.launches {
                launch(candidate)?;
            }
            slice.interval.stop(stream)?;
            if let Some(before) = running.replace(candidate) {
                read(before, &mut run_ms)?;
            }
        }
    }
    if let Some(last) = running {
        read(last, &mut run_ms)?;
    }
    Ok(samples)
}

struct Slice {
    interval: Interval,
    launches: usize,
}

impl Slice {
    fn new(launches: usize) -> Result<Self, Error> {
        Ok(Slice {
            interval: Interval::new()?,
            launches,
        })
    }
}

/// Times calls on the host's clock, in turns, for `budget` in all (or the
/// fewest rounds, whichever is longer). For candidates that return when the
/// product is made.
///
/// # Errors
/// A call failed.
pub fn wall(candidates: usize, budget: Duration, launch: Launch) -> Result<Vec<Samples>, Error> {
    let mut samples = vec![Samples::default(); candidates];
    let begin = Instant::now();
    for round in 1..=*ROUNDS.end() {
        for (candidate, sample) in samples.iter_mut().enumerate() {
            let start = Instant::now();
            launch(candidate)?;
            let end = Instant::now();
            sample.milliseconds.push((end - start).as_secs_f64() * 1e3);
            sample.spans.push((start, end));
        }
        if round >= *ROUNDS.start() && begin.elapsed() > budget {
            break;
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_take_turns() {
        let mut calls = Vec::new();
        let samples = wall(3, Duration::ZERO, &mut |candidate| {
            calls.push(candidate);
            Ok(())
        })
        .unwrap();
        assert_eq!(calls, [0, 1, 2].repeat(*ROUNDS.start()));
        assert!(
            samples
                .iter()
                .all(|s| s.milliseconds.len() == *ROUNDS.start())
        );
    }

    #[test]
    fn time_is_taken_around_the_call() {
        let samples = wall(2, Duration::ZERO, &mut |candidate| {
            std::thread::sleep(Duration::from_millis(3 * candidate as u64));
            Ok(())
        })
        .unwrap();
        assert!(samples[1].milliseconds.iter().all(|&ms| ms >= 3.0));
    }

    #[test]
    fn a_failing_candidate_ends_the_run() {
        let result = wall(1, Duration::ZERO, &mut |_| {
            Err(Error::Usage("no".to_owned()))
        });
        assert!(result.is_err());
    }
}
