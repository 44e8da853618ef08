//! Random inputs: uniform in [-1, 1) from a stated seed, rounded to the type.
//!
//! Power, and so sustained speed, depends on the data: zeros or small integers
//! flatter a GPU. Drawing half a billion numbers takes longer than measuring,
//! so [`Pool`] draws some four million once and every matrix row is a window
//! of it, from a different offset a row. Two rows share values only shifted.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::Element;

/// How reports name the data.
pub const DATA: &str = "uniform [-1, 1)";

/// Prime, so that row offsets do not repeat early.
const POOL_LEN: usize = 4_194_301;

/// Distance between the windows of consecutive rows; prime too.
const ROW_OFFSET: usize = 1_000_003;

/// Random values to cut matrices from.
#[derive(Debug)]
pub struct Pool<T> {
    values: Vec<T>,
}

impl<T: Element> Pool<T> {
    /// Draws a pool from `seed` for matrices of up to `elements` elements.
    pub fn new(seed: u64, elements: usize) -> Self {
        Pool::with_len(seed, POOL_LEN.min(elements + 1))
    }

    fn with_len(seed: u64, len: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Pool {
            values: (0..len)
                .map(|_| T::from_f64(rng.random_range(-1.0..1.0)))
                .collect(),
        }
    }

    /// A row-major `rows`×`cols` matrix. Different `salt`s give different matrices.
    pub fn matrix(&self, rows: usize, cols: usize, salt: usize) -> Vec<T> {
        let len = self.values.len();
        let mut matrix = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            let mut at = ((row + 1) * ROW_OFFSET + salt * (len / 3)) % len;
            let mut missing = cols;
            while missing > 0 {
                let run = missing.min(len - at);
                matrix.extend_from_slice(&self.values[at..at + run]);
                missing -= run;
                at = 0;
            }
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_matrix() {
        let first = Pool::<f32>::with_len(7, 1009).matrix(20, 3000, 0);
        assert_eq!(first, Pool::<f32>::with_len(7, 1009).matrix(20, 3000, 0));
        assert_ne!(first, Pool::<f32>::with_len(8, 1009).matrix(20, 3000, 0));
        assert_eq!(first.len(), 20 * 3000);
    }

    #[test]
    fn rows_and_salts_differ() {
        let pool = Pool::<f32>::with_len(1, 10_007);
        let matrix = pool.matrix(50, 64, 0);
        let rows: Vec<_> = matrix.chunks(64).collect();
        for (index, row) in rows.iter().enumerate() {
            assert!(!rows[..index].contains(row), "row {index} repeats");
        }
        assert_ne!(pool.matrix(50, 64, 1), matrix);
    }

    #[test]
    fn values_are_uniform_in_the_unit_interval() {
        let values = Pool::<f32>::with_len(3, 100_000).values;
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e5;
        let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 1e5;
        // Five standard deviations of either estimate.
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.005, "{square}");
    }
}
