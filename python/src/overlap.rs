//! Whether the memory of two arrays overlaps.

use crate::array::{Array, MAX_RANK};

/// Whether writing `x` may change an element of `y`. Parts of one buffer that repeat at one
/// period, such as two slices of its columns, are told apart; stranger patterns whose ranges of
/// addresses overlap count as overlapping.
pub fn may_overlap(x: &Array, y: &Array) -> bool {
    if x.place != y.place || x.is_empty() || y.is_empty() {
        return false;
    }
    let (x, y) = (Footprint::of(x), Footprint::of(y));
    let ([x_first, x_end], [y_first, y_end]) = (x.range(0), y.range(0));
    if x_end <= y_first || y_end <= x_first {
        return false;
    }
    let periods = x.steps.iter().map(|&(_, stride)| stride);
    !periods.filter(|&period| period > 0).any(|period| {
        let ([x_first, x_end], [y_first, y_end]) = (x.range(period), y.range(period));
        // How far behind `x` the nearest repetition of `y` begins, and of `x` behind `y`.
        let ahead = (y_first + period - x_first % period) % period;
        let behind = (x_first + period - y_first % period) % period;
        x_end - x_first <= ahead && y_end - y_first <= behind
    })
}

/// An array as bytes.
struct Footprint {
    address: u64,
    element: u64,
    /// Steps along each dimension, and the bytes of a step; (0, 0) for a single element.
    steps: [(u64, u64); MAX_RANK],
}

impl Footprint {
    fn of(array: &Array) -> Footprint {
        let element = array.element.bytes() as u64;
        let steps = |at: usize| match array.shape[at] {
            0 | 1 => (0, 0),
            extent => (extent as u64 - 1, array.strides[at] as u64 * element),
        };
        Footprint {
            address: array.address,
            element,
            steps: [steps(0), steps(1), steps(2)],
        }
    }

    /// The addresses from the first to one past the last, without the dimensions whose strides
    /// are multiples of `period`; 0 leaves none out.
    fn range(&self, period: u64) -> [u64; 2] {
        let far: u64 = (self.steps.iter())
            .filter(|&&(_, stride)| period == 0 || !stride.is_multiple_of(period))
            .map(|&(count, stride)| count * stride)
            .sum();
        [self.address, self.address + far + self.element]
    }
}
