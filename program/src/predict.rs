//! What runs when for a layer of a model, from the rates of an H200: for pictures, before anything
//! is planned. (Plans estimate each product by its kernel.)

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use crate::estimate::{self, Span};
use crate::program::{Buffer, Operation, Part, Program, Shards, Step, Work};

/// FLOP a second of large bf16 products on an H200 at its power limit (docs/benchmarks.md).
pub const RATE: f64 = 670e12;

/// Bytes of an element.
const BYTES: u64 = 2;

/// The largest M, N and K: sums of times do not overflow.
pub const LARGEST: usize = 1 << 30;

/// A layer that is split over ranks in equal parts, as far as rows can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What the ranks compute together.
    pub operation: Operation,
    /// M, N and K over all ranks.
    pub shape: [usize; 3],
    /// Number of ranks.
    pub ranks: usize,
}

/// When each step of a layer's program runs.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The layer.
    pub layer: Layer,
    /// The rows of each rank: of A in an all-gather, of C otherwise.
    pub rows: Shards,
    /// Number of chunks.
    pub chunks: usize,
    /// The steps.
    pub program: Program,
    /// When each runs.
    pub spans: Vec<Span>,
    /// The time of a rank's whole product, without any exchange.
    pub alone: Duration,
}

impl Layer {
    /// What runs when, in at most `chunks` launches for the rows of a rank, or as many as the
    /// estimate chooses. `None` without ranks, and above [`LARGEST`].
    pub fn predict(self, chunks: Option<usize>) -> Option<Prediction> {
        let [m, _, _] = self.shape;
        if self.ranks == 0 || self.shape.iter().any(|&side| side > LARGEST) {
            return None;
        }
        // The sum of the rows below the rank.
        let bound = |rank: usize| Some(m.checked_mul(rank)? / self.ranks);
        let part = |rank: usize| Some(bound(rank + 1)? - bound(rank)?);
        let parts: Option<Vec<_>> = (0..self.ranks).map(part).collect();
        let rows = Shards::new(parts?)?;
        if let Some(chunks) = chunks {
            return Some(self.predict_in(rows, chunks));
        }
        let mut predictions =
            (estimate::CHUNKS.into_iter()).map(|chunks| self.predict_in(rows.clone(), chunks));
        let first = predictions.next()?;
        let better = |fewer: Prediction, more: Prediction| match estimate::is_better(
            more.total(),
            fewer.total(),
        ) {
            true => more,
            false => fewer,
        };
        Some(predictions.fold(first, better))
    }

    fn predict_in(self, rows: Shards, chunks: usize) -> Prediction {
        let program = self.operation.program(&rows, chunks);
        let spans = estimate::timeline(&program, |step| match &program.steps[step].work {
            Work::Start | Work::End => Duration::ZERO,
            Work::Product { a, .. } => self.product(a.rows.len()),
            Work::Copy { from, .. } => self.copy(from),
        });
        Prediction {
            layer: self,
            chunks,
            alone: self.product(rows.rows()),
            rows,
            program,
            spans,
        }
    }

    /// N and K of one rank.
    fn own(self) -> [usize; 2] {
        let [_, n, k] = self.shape;
        match self.operation {
            Operation::AllGather => [n / self.ranks, k],
            Operation::ReduceScatter | Operation::AllReduce => [n, k / self.ranks],
        }
    }

    /// The time of a rank's product of `rows` rows.
    fn product(self, rows: usize) -> Duration {
        let [n, k] = self.own();
        Duration::from_secs_f64(2.0 * rows as f64 * n as f64 * k as f64 / RATE)
    }

    fn copy(self, from: &Part) -> Duration {
        let [n, k] = self.own();
        let cols = match from.buffer {
            Buffer::A { .. } => k,
            _ => n,
        };
        estimate::transfer(from.rows.len() as u64 * cols as u64 * BYTES)
    }
}

impl Prediction {
    /// The time of a run.
    pub fn total(&self) -> Duration {
        estimate::total(&self.spans)
    }

    /// The rows of a step: of A in an all-gather, of C in a sum over ranks. `None` for starts and
    /// ends.
    fn part<'s>(&self, step: &'s Step) -> Option<&'s Part> {
        match &step.work {
            Work::Product { a, .. } => Some(a),
            Work::Copy { from, .. } => Some(from),
            Work::Start | Work::End => None,
        }
    }

    /// The rank that owns the rows of a step, of A in an all-gather and of C in a sum over ranks;
    /// `None` for starts and ends.
    pub fn owner(&self, step: &Step) -> Option<usize> {
        let part = self.part(step)?;
        let ranks = self.rows.ranks();
        let of_row = |row: usize| (0..ranks).find(|&rank| self.rows.range(rank).contains(&row));
        match (self.layer.operation, part.buffer) {
            (_, Buffer::Gathered { from, .. }) => Some(from),
            (Operation::AllGather, buffer) => Some(buffer.rank()),
            // A ring: the rows of rank d start on rank d + 1.
            (_, Buffer::Made { rank, hop }) => Some((2 * ranks + rank - 1 - hop) % ranks),
            _ => of_row(part.rows.start),
        }
    }

    /// The rows of the whole C that a product computes, or adds to; `None` for other steps.
    pub fn rows_of_c(&self, step: &Step) -> Option<Range<usize>> {
        match (&step.work, self.layer.operation) {
            (Work::Product { c, .. }, Operation::AllGather) => Some(c.rows.clone()),
            (Work::Product { a, .. }, _) => Some(a.rows.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;

    fn layer(operation: Operation) -> Layer {
        Layer {
            operation,
            shape: [8192; 3],
            ranks: 4,
        }
    }

    #[test]
    fn every_rank_computes_all_rows_once() {
        for operation in Operation::ALL {
            for chunks in [None, Some(1), Some(3)] {
                let predicted = layer(operation).predict(chunks).expect("small");
                for rank in 0..4 {
                    let mut covered = vec![0; 8192];
                    let own = |step: &&Step| step.rank == rank;
                    for step in predicted.program.steps.iter().filter(own) {
                        for row in predicted.rows_of_c(step).into_iter().flatten() {
                            covered[row] += 1;
                        }
                    }
                    assert!(covered.iter().all(|&times| times == 1), "{operation:?}");
                }
            }
        }
    }

    #[test]
    fn owners_are_those_of_the_rows() {
        for operation in Operation::ALL {
            let predicted = layer(operation).predict(Some(2)).expect("small");
            for step in &predicted.program.steps {
                let Some(rows) = predicted.rows_of_c(step) else {
                    continue;
                };
                assert_eq!(predicted.owner(step), Some(rows.start / 2048), "{step:?}");
            }
        }
    }

    #[test]
    fn the_estimate_chooses_few_chunks() {
        let gathered = layer(Operation::AllGather).predict(None).expect("small");
        assert_eq!(gathered.chunks, 1);
        let scattered = layer(Operation::ReduceScatter)
            .predict(None)
            .expect("small");
        let whole = layer(Operation::ReduceScatter)
            .predict(Some(1))
            .expect("small");
        assert!(scattered.chunks > 1);
        assert!(estimate::is_better(scattered.total(), whole.total()));
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let large = Layer {
            shape: [8192, LARGEST + 1, 8192],
            ..layer(Operation::AllGather)
        };
        assert!(large.predict(None).is_none());
        let nobody = Layer {
            ranks: 0,
            ..layer(Operation::AllGather)
        };
        assert!(nobody.predict(None).is_none());
    }
}
