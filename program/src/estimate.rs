//! How long a program takes: the time of each step, and who waits for whom.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::program::{Program, Queue, Work};

/// Bytes a second that one GPU gets from another through NVLink while the other does the same:
/// copy engines, two H200 of one host, measured at 374 for 512 MiB and 292 to 344 for 64 MiB.
const LINK: f64 = 360e9;

/// From the end of a step to the start of a step of another queue or GPU that waits for it,
/// and what a copy takes beyond its bytes.
const HANDOVER: Duration = Duration::from_micros(6);

/// The time that `bytes` take from one GPU to another.
pub fn transfer(bytes: u64) -> Duration {
    HANDOVER + Duration::from_secs_f64(bytes as f64 / LINK)
}

/// Bytes a second of a copy from memory into memory of one GPU, each byte read and written. It is
/// two fifths of the bandwidth of an H100, and was not measured.
const MEMORY: f64 = 1.3e12;

/// The time that a copy of `bytes` takes on one GPU.
pub fn local_copy(bytes: u64) -> Duration {
    HANDOVER + Duration::from_secs_f64(bytes as f64 / MEMORY)
}

/// When a step begins and ends, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The time at which it begins.
    pub begin: Duration,
    /// The time at which it ends.
    pub end: Duration,
}

/// When each step runs. A step begins when the step before it in its queue and all that it
/// waits for have finished; the products of a rank share its SMs, so they run one after the
/// other. `time_of` gives the time of a step by its index.
///
/// It is the closed form of the overlap. For two ranks, all-gather and equal parts, with t the
/// time of a product of one part and c that of its copy, a run ends after max(t, c) + t: the
/// copy costs nothing where it takes no longer than the own part's product.
///
/// ```
/// use std::time::Duration;
/// use tilewise_program::estimate::timeline;
/// use tilewise_program::program::{Shards, Work, all_gather_matmul};
///
/// let shards = Shards::new([1024; 2]).expect("few rows");
/// let program = all_gather_matmul(&shards, 1);
/// let spans = timeline(&program, |step| match program.steps[step].work {
///     Work::Product { .. } => Duration::from_micros(300),
///     Work::Copy { .. } => Duration::from_micros(200),
///     Work::Start | Work::End => Duration::ZERO,
/// });
/// let end = spans.iter().map(|span| span.end).max();
/// assert_eq!(end, Some(Duration::from_micros(600)));
/// ```
pub fn timeline(program: &Program, time_of: impl Fn(usize) -> Duration) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut free = vec![[Duration::ZERO; 3]; program.ranks];
    for (index, step) in program.steps.iter().enumerate() {
        let queue = match step.queue {
            Queue::Compute | Queue::Aside => 0,
            Queue::Copy => 1,
            Queue::Local => 2,
        };
        let ready = step.after.iter().map(|&before| {
            match (spans[before].end, &step.work) {
                // What was before the run, and what may follow it.
                (Duration::ZERO, _) | (_, Work::End) => spans[before].end,
                (end, _) => end + HANDOVER,
            }
        });
        let begin = ready.fold(free[step.rank][queue], Duration::max);
        let end = begin + time_of(index);
        free[step.rank][queue] = end;
        spans.push(Span { begin, end });
    }
    spans
}

/// How many chunks are chosen from.
pub const CHUNKS: [usize; 4] = [1, 2, 3, 4];

/// The percentage by which more chunks have to be better. Two H100 at 8192×8192×8192 took 1.17
/// times the product alone for a reduce-scatter in the 3 chunks that were estimated 1 % faster
/// than 2.
const MARGIN: u32 = 2;

/// Whether a program that takes the time `more` is worth more chunks than one that takes `fewer`.
pub fn is_better(more: Duration, fewer: Duration) -> bool {
    more * 100 < fewer * (100 - MARGIN)
}

/// The time until the last of `spans` ends.
pub fn total(spans: &[Span]) -> Duration {
    spans.iter().map(|span| span.end).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Shards, all_gather_matmul, matmul_reduce_scatter};

    const MS: Duration = Duration::from_millis(1);

    /// The times of a program whose products and copies take the given times for 1024 rows.
    fn simulated(program: &Program, product: Duration, copy: Duration) -> Duration {
        let spans = timeline(program, |step| match &program.steps[step].work {
            Work::Product { a, .. } => product * a.rows.len() as u32 / 1024,
            Work::Copy { from, .. } => copy * from.rows.len() as u32 / 1024,
            _ => Duration::ZERO,
        });
        total(&spans)
    }

    #[test]
    fn copies_hide_behind_the_own_part() {
        let shards = Shards::new([1024; 2]).expect("small");
        let times = simulated(&all_gather_matmul(&shards, 1), 3 * MS, 2 * MS);
        assert_eq!(times, 6 * MS);
        // Longer copies show, and less so in chunks.
        let whole = simulated(&all_gather_matmul(&shards, 1), 3 * MS, 6 * MS);
        assert_eq!(whole, 9 * MS + HANDOVER);
        let chunks = simulated(&all_gather_matmul(&shards, 4), 3 * MS, 6 * MS);
        assert!(chunks < 7 * MS, "{chunks:?}");
    }

    #[test]
    fn eight_ranks_hide_seven_copies() {
        let shards = Shards::new([1024; 8]).expect("small");
        let times = simulated(&all_gather_matmul(&shards, 1), 3 * MS, 2 * MS);
        assert_eq!(times, 24 * MS);
    }

    #[test]
    fn chunks_hide_the_copies_of_a_ring() {
        let shards = Shards::new([1024; 2]).expect("small");
        let whole = simulated(&matmul_reduce_scatter(&shards, 1), 3 * MS, MS);
        assert_eq!(whole, 7 * MS + 2 * HANDOVER);
        let halves = simulated(&matmul_reduce_scatter(&shards, 2), 3 * MS, MS);
        assert_eq!(halves, 6 * MS);
    }
}
