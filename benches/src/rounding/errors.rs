//! The errors of one product, in units of 2⁻²⁴ of Σ|a·b|.

use crate::error::Error;
use crate::text_table::Table;
use serde::Serialize;
use tilewise::oracle::{self, Product};
use tilewise::{Device, MatrixView};

/// The errors of one implementation on one problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorRow {
    /// The kind of data.
    pub data: &'static str,
    /// Depth.
    pub k: usize,
    /// A precision of tilewise, or cuBLASLt.
    pub implementation: String,
    /// The kernel.
    pub kernel: String,
    /// Largest error of an element.
    pub largest: f64,
    /// Mean error of the elements.
    pub mean: f64,
}

/// The product of `a` (M×K) and `bt` (N×K, the columns of B) in f64, on all cores.
///
/// # Errors
/// Those of [`oracle::product`].
pub fn exact(a: &[f32], bt: &[f32], (m, n, k): (usize, usize, usize)) -> Result<Product, Error> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = m.div_ceil(workers);
    let cpu = Device::cpu();
    let part = |a: &[f32]| -> Result<Product, tilewise::Error> {
        let a = cpu.from_slice(a, a.len() / k, k)?;
        let bt = cpu.from_slice(bt, n, k)?;
        oracle::product(a.view(), MatrixView::t(bt.view()))
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let part = &part;
        let started: Vec<_> = a
            .chunks(rows * k)
            .map(|a| scope.spawn(move || part(a)))
            .collect();
        let joined = started.into_iter().map(|thread| match thread.join() {
            Ok(product) => product,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let mut whole = Product {
        shape: [1, m, n],
        k,
        values: Vec::with_capacity(m * n),
        magnitudes: Vec::with_capacity(m * n),
        largest: 0.0,
    };
    for part in parts {
        let part = part?;
        whole.values.extend(part.values);
        whole.magnitudes.extend(part.magnitudes);
        whole.largest = whole.largest.max(part.largest);
    }
    Ok(whole)
}

/// The largest and the mean error of `found`. An element that is not finite has an infinite
/// error; one whose terms are all zero has none if it is zero.
pub fn of(product: &Product, found: &[f32]) -> (f64, f64) {
    let error = |index: usize| {
        let difference = (f64::from(found[index]) - product.values[index]).abs();
        match product.magnitudes[index] {
            _ if difference == 0.0 => 0.0,
            _ if difference.is_nan() => f64::INFINITY,
            magnitude => difference / magnitude * 2.0_f64.powi(24),
        }
    };
    let errors = (0..found.len()).map(error);
    let (largest, sum) = errors.fold((0.0, 0.0), |(largest, sum), error| {
        (f64::max(largest, error), sum + error)
    });
    (largest, sum / found.len().max(1) as f64)
}

/// A table of the rows: errors, and their ratio to those of cuBLASLt in f32 where that was
/// measured.
pub fn render(rows: &[ErrorRow], baseline: &str) -> String {
    let mut table =
        Table::of("data | K | implementation | kernel | largest | mean | × SGEMM | mean ×");
    for row in rows {
        let sgemm = rows.iter().find(|other| {
            (other.data, other.k) == (row.data, row.k) && other.implementation == baseline
        });
        let ratio = |of: fn(&ErrorRow) -> f64| match sgemm {
            Some(sgemm) if of(sgemm) > 0.0 => format!("{:.2}", of(row) / of(sgemm)),
            _ => "-".to_owned(),
        };
        table.row([
            row.data.to_owned(),
            row.k.to_string(),
            row.implementation.clone(),
            row.kernel.clone(),
            format!("{:.2}", row.largest),
            format!("{:.3}", row.mean),
            ratio(|row| row.largest),
            ratio(|row| row.mean),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_a_whole() {
        let a: Vec<f32> = (0..15).map(|i| i as f32).collect();
        let bt: Vec<f32> = (0..6).map(|i| 1.0 - i as f32).collect();
        let product = exact(&a, &bt, (5, 2, 3)).unwrap();
        let naive = |row: usize, col: usize| -> f64 {
            (0..3)
                .map(|k| f64::from(a[row * 3 + k] * bt[col * 3 + k]))
                .sum()
        };
        let expected: Vec<f64> = (0..10).map(|i| naive(i / 2, i % 2)).collect();
        assert_eq!(product.values, expected);
        assert_eq!(product.largest, 14.0 * 4.0);
    }

    #[test]
    fn errors_are_in_units_of_the_last_place() {
        let product = Product {
            shape: [1, 1, 3],
            k: 1,
            values: vec![1.0, 2.0, 0.0],
            magnitudes: vec![1.0, 2.0, 0.0],
            largest: 2.0,
        };
        assert_eq!(
            of(&product, &[1.0, 2.0 + 2.0 * f32::EPSILON, 0.0]),
            (2.0, 2.0 / 3.0)
        );
        assert_eq!(of(&product, &[1.0, f32::NAN, 0.0]).0, f64::INFINITY);
        assert_eq!(of(&product, &[1.0, 2.0, 1.0]).0, f64::INFINITY);
    }
}
