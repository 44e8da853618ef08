//! Random operands, from a stated seed.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod epilogue;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tilewise::{Device, Element, Matrix};

/// A source of shapes, strides and elements.
pub struct Random(StdRng);

/// (row, column) strides without aliasing for a `rows`×`cols` matrix:
/// row-major, column-major, both with a pitch, and with gaps both ways.
pub fn layout_variants(rows: usize, cols: usize) -> [(usize, usize); 5] {
    [
        (cols.max(1), 1),
        (1, rows.max(1)),
        (cols + 5, 1),
        (1, rows + 3),
        (2 * cols + 3, 2),
    ]
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(StdRng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub fn shuffled<T, const N: usize>(&mut self, mut values: [T; N]) -> [T; N] {
        values.shuffle(&mut self.0);
        values
    }

    /// Uniform elements in [-1, 1), in one of [`layout_variants`].
    pub fn matrix<T: Element>(&mut self, device: &Device, rows: usize, cols: usize) -> Matrix<T> {
        let [strides, ..] = self.shuffled(layout_variants(rows, cols));
        self.strided(device, rows, cols, strides, |random| {
            random.0.random_range(-1.0..1.0)
        })
    }

    /// Integers from -3 to 3, row-major.
    pub fn integers<T: Element>(&mut self, device: &Device, rows: usize, cols: usize) -> Matrix<T> {
        self.strided(device, rows, cols, (cols.max(1), 1), |random| {
            random.below(7) as f64 - 3.0
        })
    }

    fn strided<T: Element>(
        &mut self,
        device: &Device,
        rows: usize,
        cols: usize,
        (row_stride, col_stride): (usize, usize),
        mut element: impl FnMut(&mut Self) -> f64,
    ) -> Matrix<T> {
        let elements: Vec<_> = (0..rows * cols)
            .map(|_| T::from_f64(element(self)))
            .collect();
        let mut matrix = device
            .zeros_strided(rows, cols, row_stride, col_stride)
            .expect("the layouts are valid");
        matrix.copy_from_slice(&elements).expect("one a place");
        matrix
    }
}
