//! The two regimes a GPU kernel is measured in, and wall time for the CPU.
//!
//! Everything compared runs in the same process and in rounds, one turn each,
//! so that drift of clocks and temperature meets all alike (CUTLASS's
//! methodology, nvbench). Each round has its own random order (see
//! [`crate::measure::turns`]). Sample `i` of every candidate is from round `i`, so
//! samples pair up: the ratio within a round knows nothing of the drift between
//! rounds (see [`crate::measure::stats::paired_ratios`]).
//!
//! - [`cold`]: `[launch, overwrite L2, event, launch, event]`, the state of a GPU that did something
//!   else before, at burst clocks. Every timed launch follows the same overwrite, a predecessor
//!   that leaves the GPU cool. L2 is full of dirty lines then, whose write-back is part of
//!   the time, as in Triton's `do_bench`. The launch ahead, which is not timed, is there for the
//!   instruction caches: cold code takes up to 0.9 µs, and without that launch it depends on the
//!   other candidates, and on where the driver has put their code, whose code is cold.
//! - [`sustained`]: back-to-back launches in slices of [`SLICE_MS`], events
//!   around each slice, for at least the asked time each. The GPU never idles,
//!   so clock and power settle where the load puts them. Short products come
//!   from CUDA graphs, because the host may take longer to launch one than the
//!   GPU to make it (see [`crate::measure::batch`]).
//!
//! Candidates are numbered; a regime calls `launch(i)` to enqueue one product
//! of candidate `i`.

use crate::error::Error;
use crate::measure::batch::{Batches, Launch};
use crate::measure::interval::Interval;
use crate::measure::memset::L2Flush;
use crate::measure::turns::Turns;
use crate::measure::watch::Watched;
use cust::stream::Stream;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Milliseconds of launches between two events of the sustained regime: longer
/// than the GPU takes to adapt its clock, short enough to interleave.
pub const SLICE_MS: f64 = 200.0;

/// Fewest and most samples of a candidate, cold and wall. Nine leave two
/// samples outside of each quartile.
const ROUNDS: std::ops::RangeInclusive<usize> = 9..=100;

/// How launches follow each other.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// L2 overwritten before each launch.
    #[default]
    Cold,
    /// Back to back until clocks and power settle.
    Sustained,
    /// Wall time of a call, on the CPU device.
    #[value(skip)]
    Wall,
}

impl Regime {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Regime::Cold => "cold",
            Regime::Sustained => "sustained",
            Regime::Wall => "wall",
        }
    }
}

/// Whether these rounds, since `begin`, are as many as are wanted in `budget`.
fn are_enough(rounds: usize, begin: Instant, budget: Duration) -> bool {
    rounds >= *ROUNDS.end() || rounds >= *ROUNDS.start() && begin.elapsed() > budget
}

/// What a regime saw of one candidate.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Time of one product, ms, round by round; in the sustained regime the
    /// mean of a slice.
    pub milliseconds: Vec<f64>,
    /// When it ran, on the host's clock. Cold samples are too short to tell
    /// apart; they share the span of the regime.
    pub spans: Vec<(Instant, Instant)>,
    /// Products in a CUDA graph; `None` where they were launched one by one.
    pub products_per_graph: Option<usize>,
    /// Why the launches could not be captured, if the capture failed.
    pub not_captured: Option<String>,
}

/// Runs every candidate a few times: lazy initialisation, instruction caches.
///
/// # Errors
/// A launch failed.
pub fn warm_up(stream: &Stream, watched: &Watched, launch: Launch) -> Result<(), Error> {
    const TIMES: usize = 3;
    for candidate in 0..watched.count() {
        watched.wait("warming up", candidate, TIMES);
        for _ in 0..TIMES {
            launch(candidate)?;
        }
        stream.synchronize()?;
    }
    Ok(())
}

/// Times single launches on an overwritten L2, whose code has just run, in turns, for `budget` in all
/// (or the fewest rounds, whichever is longer).
///
/// # Errors
/// A launch or the driver failed.
pub fn cold(
    stream: &Stream,
    flush: &mut L2Flush,
    turns: &mut Turns,
    watched: &Watched,
    budget: Duration,
    launch: Launch,
) -> Result<Vec<Samples>, Error> {
    let candidates = watched.count();
    let intervals: Vec<Interval> = (0..candidates)
        .map(|_| Interval::new())
        .collect::<Result<_, _>>()?;
    let mut samples = vec![Samples::default(); candidates];
    let begin = Instant::now();
    for round in 1.. {
        let order = turns.round(candidates);
        let mut ahead = None;
        for &candidate in &order {
            watched.enqueue("cold", candidate, 2, ahead.replace(candidate));
            let interval = &intervals[candidate];
            launch(candidate)?;
            flush.enqueue(stream)?;
            interval.start(stream)?;
            launch(candidate)?;
            interval.stop(stream)?;
        }
        // Waits follow the order of the launches, so that the first wait that does not end
        // names the kernel that hangs.
        for candidate in order {
            watched.wait("cold", candidate, 2);
            let milliseconds = intervals[candidate].milliseconds()?;
            samples[candidate].milliseconds.push(milliseconds);
        }
        if are_enough(round, begin, budget) {
            break;
        }
    }
    let span = (begin, Instant::now());
    for sample in &mut samples {
        sample.spans.push(span);
    }
    Ok(samples)
}

/// Times slices of back-to-back batches, in turns, until each candidate has run
/// for `at_least`. `expected_ms[i]` is about what one product of `i` takes, as `watched`
/// knows too.
///
/// # Errors
/// A launch or the driver failed.
pub fn sustained(
    stream: &Stream,
    turns: &mut Turns,
    watched: &Watched,
    expected_ms: &[f64],
    at_least: Duration,
    batches: &mut Batches,
) -> Result<Vec<Samples>, Error> {
    let target_ms = at_least.as_secs_f64() * 1e3;
    let slice_ms = SLICE_MS.min(target_ms);
    let mut samples: Vec<Samples> = (0..expected_ms.len())
        .map(|candidate| Samples {
            products_per_graph: batches.per_graph(candidate),
            not_captured: batches.refusal(candidate).map(str::to_owned),
            ..Samples::default()
        })
        .collect();
    let products: Vec<usize> = samples
        .iter()
        .map(|sample| sample.products_per_graph.unwrap_or(1))
        .collect();
    // Batches in a slice.
    let enqueued: Vec<usize> = expected_ms
        .iter()
        .zip(&products)
        .map(|(expected, &products)| batches_in(slice_ms, expected * products as f64))
        .collect();
    let mut run_ms = vec![0.0; expected_ms.len()];
    // One slice waits in the stream while another is read: no gap between them.
    let intervals = [Interval::new()?, Interval::new()?];
    let mut free = intervals.iter().cycle();
    let mut running: Option<(usize, &Interval)> = None;
    let mut boundary = Instant::now();
    let mut read = |(candidate, interval): (usize, &Interval), run_ms: &mut [f64]| {
        let made = enqueued[candidate] * products[candidate];
        watched.wait("sustained", candidate, made);
        let total = interval.milliseconds()?;
        let now = Instant::now();
        run_ms[candidate] += total;
        let sample = &mut samples[candidate];
        sample.milliseconds.push(total / made as f64);
        sample.spans.push((boundary, now));
        boundary = now;
        Ok::<(), Error>(())
    };
    while run_ms.iter().any(|&ms| ms < target_ms) {
        for candidate in turns.round(expected_ms.len()) {
            let Some(interval) = free.next() else { break };
            let ahead = running.as_ref().map(|(candidate, _)| *candidate);
            let made = enqueued[candidate] * products[candidate];
            watched.enqueue("sustained", candidate, made, ahead);
            interval.start(stream)?;
            for _ in 0..enqueued[candidate] {
                batches.enqueue(candidate)?;
            }
            interval.stop(stream)?;
            if let Some(before) = running.replace((candidate, interval)) {
                read(before, &mut run_ms)?;
            }
        }
    }
    if let Some(last) = running {
        read(last, &mut run_ms)?;
    }
    Ok(samples)
}

/// Batches of `batch_ms` that fill a slice of `slice_ms`, at least one.
fn batches_in(slice_ms: f64, batch_ms: f64) -> usize {
    (slice_ms / batch_ms).ceil().max(1.0) as usize
}

/// Times calls on the host's clock, in turns, for `budget` in all (or the
/// fewest rounds, whichever is longer). For candidates that return when the
/// product is made.
///
/// # Errors
/// A call failed.
pub fn wall(
    turns: &mut Turns,
    candidates: usize,
    budget: Duration,
    launch: Launch,
) -> Result<Vec<Samples>, Error> {
    let mut samples = vec![Samples::default(); candidates];
    let begin = Instant::now();
    for round in 1.. {
        for candidate in turns.round(candidates) {
            let sample = &mut samples[candidate];
            let start = Instant::now();
            launch(candidate)?;
            let end = Instant::now();
            sample.milliseconds.push((end - start).as_secs_f64() * 1e3);
            sample.spans.push((start, end));
        }
        if are_enough(round, begin, budget) {
            break;
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_take_turns_in_the_drawn_orders() {
        let mut calls = Vec::new();
        let samples = wall(&mut Turns::new(3), 4, Duration::ZERO, &mut |candidate| {
            calls.push(candidate);
            Ok(())
        })
        .unwrap();
        let mut turns = Turns::new(3);
        let drawn: Vec<_> = (0..*ROUNDS.start()).flat_map(|_| turns.round(4)).collect();
        assert_eq!(calls, drawn);
        assert!(
            samples
                .iter()
                .all(|s| s.milliseconds.len() == *ROUNDS.start())
        );
    }

    #[test]
    fn time_is_taken_around_the_call() {
        let samples = wall(&mut Turns::new(3), 2, Duration::ZERO, &mut |candidate| {
            std::thread::sleep(Duration::from_millis(3 * candidate as u64));
            Ok(())
        })
        .unwrap();
        assert!(samples[1].milliseconds.iter().all(|&ms| ms >= 3.0));
    }

    #[test]
    fn a_slice_is_filled_with_whole_batches() {
        assert_eq!(batches_in(SLICE_MS, 1.0), 200);
        assert_eq!(batches_in(SLICE_MS, 0.3), 667);
        assert_eq!(batches_in(50.0, 60.0), 1);
    }

    #[test]
    fn a_failing_candidate_ends_the_run() {
        let result = wall(&mut Turns::new(3), 1, Duration::ZERO, &mut |_| {
            Err(Error::Usage("no".to_owned()))
        });
        assert!(result.is_err());
    }
}
