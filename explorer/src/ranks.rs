//! Which rank multiplies and copies what when, as numbers for a page.

use alloc::vec::Vec;
use core::time::Duration;

use tilewise_program::predict::{Layer, Prediction};
use tilewise_program::program::{Operation, Queue};

/// Most ranks, and most chunks: the page draws each step.
pub const MOST_RANKS: u32 = 8;
/// See [`MOST_RANKS`].
pub const MOST_CHUNKS: u32 = 8;

/// Largest M, N and K.
pub const LARGEST: u32 = 1 << 20;

/// Numbers before the steps: the number of chunks, the number of steps, the seconds of a run, and
/// those of a rank's whole product.
pub const HEAD: usize = 4;

/// Numbers of each step: its rank; 0 for a product, 1 for a copy from another rank; the rank that
/// owns its rows; the seconds at which it begins and ends; and, of a product, the first row of the
/// whole C that it computes or adds to, and the one behind its last.
pub const PER_STEP: usize = 7;

/// A layer over several GPUs, of a size that a page can draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    layer: Layer,
    chunks: Option<usize>,
}

impl Ranks {
    /// The operation at a place of [`Operation::ALL`] on a layer of (M, N, K), in `chunks` chunks,
    /// or as many as the estimate chooses where it is 0. `None` for another operation, sizes of 0,
    /// and more than [`MOST_RANKS`], [`MOST_CHUNKS`] and [`LARGEST`].
    pub fn new(operation: u32, shape: [u32; 3], ranks: u32, chunks: u32) -> Option<Ranks> {
        let operation = *Operation::ALL.get(operation as usize)?;
        let is_drawn = (1..=MOST_RANKS).contains(&ranks) && chunks <= MOST_CHUNKS;
        if !is_drawn || !shape.iter().all(|side| (1..=LARGEST).contains(side)) {
            return None;
        }
        Some(Ranks {
            layer: Layer {
                operation,
                shape: shape.map(|side| side as usize),
                ranks: ranks as usize,
            },
            chunks: (chunks > 0).then_some(chunks as usize),
        })
    }

    fn predict(&self) -> Option<Prediction> {
        self.layer.predict(self.chunks)
    }
}

/// [`HEAD`] numbers, and [`PER_STEP`] for each step that multiplies or copies, in the order of the
/// program.
pub fn ranks(asked: &Ranks) -> Vec<f64> {
    // A layer that `Ranks::new` has accepted is small enough.
    let Some(predicted) = asked.predict() else {
        return Vec::from([0.0; HEAD]);
    };
    let seconds = |time: Duration| time.as_secs_f64();
    let (total, alone) = (seconds(predicted.total()), seconds(predicted.alone));
    let mut numbers = Vec::from([predicted.chunks as f64, 0.0, total, alone]);
    let mut drawn = 0.0;
    for (step, span) in predicted.program.steps.iter().zip(&predicted.spans) {
        let Some(owner) = predicted.owner(step) else {
            continue;
        };
        let is_copy = step.queue == Queue::Copy;
        let rows = predicted.rows_of_c(step).unwrap_or(0..0);
        numbers.extend([
            step.rank as f64,
            f64::from(u8::from(is_copy)),
            owner as f64,
            seconds(span.begin),
            seconds(span.end),
            rows.start as f64,
            rows.end as f64,
        ]);
        drawn += 1.0;
    }
    numbers[1] = drawn;
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(operation: u32, count: u32, chunks: u32) -> Vec<f64> {
        ranks(&Ranks::new(operation, [8192; 3], count, chunks).unwrap())
    }

    #[test]
    fn sizes_are_checked() {
        assert!(Ranks::new(3, [8192; 3], 2, 1).is_none());
        assert!(Ranks::new(0, [8192, 0, 8192], 2, 1).is_none());
        assert!(Ranks::new(0, [8192; 3], 0, 1).is_none());
        assert!(Ranks::new(0, [8192; 3], MOST_RANKS + 1, 1).is_none());
        assert!(Ranks::new(0, [8192; 3], 2, MOST_CHUNKS + 1).is_none());
        assert!(Ranks::new(0, [u32::MAX; 3], 2, 1).is_none());
    }

    /// The picture of docs/parallel.md: rank 1 begins with its own rows, and its copy engine
    /// brings those of rank 2 meanwhile.
    #[test]
    fn an_all_gather_begins_with_the_own_rows() {
        let numbers = numbers(0, 4, 1);
        let [chunks, count, total, alone] = numbers[..HEAD] else {
            panic!("a head");
        };
        assert_eq!((chunks, count as usize), (1.0, 4 * 4 + 4 * 3));
        assert!(total >= alone && total < 1.02 * alone);
        let steps: Vec<_> = numbers[HEAD..].chunks(PER_STEP).collect();
        assert_eq!(steps.len(), count as usize);
        let first = |kind: f64| {
            let mut steps = steps.iter();
            steps.find(|step| step[..2] == [1.0, kind]).unwrap()
        };
        assert_eq!(first(0.0)[2..4], [1.0, 0.0]);
        assert_eq!(first(0.0)[5..], [2048.0, 4096.0]);
        assert_eq!(first(1.0)[2..4], [2.0, 0.0]);
        assert_eq!(first(1.0)[5..], [0.0, 0.0]);
    }

    #[test]
    fn the_largest_is_answered() {
        for operation in 0..3 {
            let asked = Ranks::new(operation, [LARGEST; 3], MOST_RANKS, MOST_CHUNKS).unwrap();
            assert!(ranks(&asked)[1] > 0.0);
            assert_eq!(numbers(operation, 1, 0)[0], 1.0);
        }
    }
}
