//! Checks a product. A candidate is timed only after its product was right.
//!
//! C is filled with [`POISON`] before the launch, which shows elements that no CTA wrote.
//! Then 32 random rows and 32 random columns, the first and the last of each among them, are
//! chosen, and the elements in both are compared with a product in f64.

use crate::problem::shape::{BlasLayout, GemmShape};
use gpu_kernels::{DType, OutputType};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::Element;

/// Every byte of C before the launch. All ones is a NaN in every element type,
/// and not the one that arithmetic makes.
pub const POISON: u8 = 0xFF;

/// Rows, and columns, that are compared.
const SAMPLED: usize = 32;

/// The exact values of the sampled elements.
#[derive(Debug)]
pub struct Reference {
    rows: Vec<usize>,
    cols: Vec<usize>,
    /// Row by row.
    exact: Vec<f64>,
    n: usize,
}

impl Reference {
    /// Multiplies the sampled rows of A and columns of B in f64. `a` and `b`
    /// are stored as `layout` says.
    pub fn new<T: Element>(
        a: &[T],
        b: &[T],
        shape: GemmShape,
        layout: BlasLayout,
        seed: u64,
    ) -> Self {
        let GemmShape { m, n, k } = shape;
        let mut rng = StdRng::seed_from_u64(seed);
        let rows = sample(&mut rng, m);
        let cols = sample(&mut rng, n);
        let row_of_a = |row: usize| -> Vec<f64> {
            let at = |step| match layout.a_transposed {
                false => a[row * k + step],
                true => a[step * m + row],
            };
            (0..k).map(|step| at(step).to_f64()).collect()
        };
        let col_of_b = |col: usize| -> Vec<f64> {
            let at = |step| match layout.b_transposed {
                false => b[step * n + col],
                true => b[col * k + step],
            };
            (0..k).map(|step| at(step).to_f64()).collect()
        };
        let b_cols: Vec<_> = cols.iter().map(|&col| col_of_b(col)).collect();
        let exact = rows
            .iter()
            .flat_map(|&row| {
                let a_row = row_of_a(row);
                let dot = move |b_col: &Vec<f64>| -> f64 {
                    a_row.iter().zip(b_col).map(|(x, y)| x * y).sum()
                };
                b_cols.iter().map(dot).collect::<Vec<_>>()
            })
            .collect();
        Reference {
            rows,
            cols,
            exact,
            n,
        }
    }

    /// The error of `c` (row-major, M×N) in the Frobenius norm over the
    /// samples, relative to the exact values.
    ///
    /// # Errors
    /// An element was not written, a sample is not finite, or the error is above
    /// `tolerance`: what and where, as text.
    pub fn check<O: Element>(&self, c: &[O], tolerance: f64) -> Result<f64, String> {
        let is_poison = |element: &[u8]| element.iter().all(|&byte| byte == POISON);
        let mut elements = bytemuck::cast_slice::<O, u8>(c).chunks_exact(size_of::<O>());
        if let Some(at) = elements.position(is_poison) {
            let (row, col) = (at / self.n, at % self.n);
            return Err(format!("C[{row}, {col}] was not written"));
        }
        let (mut error, mut norm) = (0.0, 0.0);
        let mut worst = (0.0, 0, 0, 0.0, 0.0);
        let positions = self
            .rows
            .iter()
            .flat_map(|&row| self.cols.iter().map(move |&col| (row, col)));
        for ((row, col), &exact) in positions.zip(&self.exact) {
            let computed = c[row * self.n + col].to_f64();
            if !computed.is_finite() {
                return Err(format!("C[{row}, {col}] = {computed}, exact {exact}"));
            }
            let difference: f64 = (computed - exact).abs();
            error += difference * difference;
            norm += exact * exact;
            if difference > worst.0 {
                worst = (difference, row, col, computed, exact);
            }
        }
        // Without a norm (all zeros) the error is judged as it is.
        let relative = (error / if norm > 0.0 { norm } else { 1.0 }).sqrt();
        if relative <= tolerance {
            Ok(relative)
        } else {
            let (_, row, col, computed, exact) = worst;
            Err(format!(
                "relative error {relative:.2e} is above {tolerance:.2e}; worst C[{row}, {col}] = {computed}, exact {exact}"
            ))
        }
    }
}

/// The largest relative error that a correct kernel may have.
///
/// Rounding C costs a unit roundoff of its type, rounding f32 inputs to TF32 one of TF32 for
/// each operand, splitting them three units of 2⁻²². Accumulating K terms in f32 costs at most K unit roundoffs of Σ|a·b|
/// (Higham, *Accuracy and Stability of Numerical Algorithms*, §3.1); for random signs the
/// error grows like √K of them, and K unit roundoffs of |c| leave room for tensor cores that
/// truncate. A wrong or missing slice of 16 along K changes C by √(16/K), far more.
pub fn tolerance(dtype: DType, output: OutputType, k: usize) -> f64 {
    let unit = |mantissa_bits: i32| 2f64.powi(-mantissa_bits - 1);
    let stored = match output.dtype(dtype) {
        DType::F32 | DType::Tf32 | DType::F16x3 => unit(23),
        DType::F16 => unit(10),
        DType::Bf16 => unit(7),
    };
    let converted = match dtype {
        DType::Tf32 => 2.0 * unit(10),
        DType::F16x3 => 3.0 * unit(21),
        _ => 0.0,
    };
    stored + converted + (k + 16) as f64 * unit(23)
}

/// At most [`SAMPLED`] distinct indices below `len`, ascending, ends included.
fn sample(rng: &mut StdRng, len: usize) -> Vec<usize> {
    let mut picked: Vec<usize> = if len <= SAMPLED {
        (0..len).collect()
    } else {
        (0..SAMPLED - 2)
            .map(|_| rng.random_range(0..len))
            .chain([0, len - 1])
            .collect()
    };
    picked.sort_unstable();
    picked.dedup();
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::inputs::Pool;

    const SHAPE: GemmShape = GemmShape::new(70, 90, 130);

    /// The product in f64, rounded to f32, for inputs stored as `layout` says.
    fn product(a: &[f32], b: &[f32], layout: BlasLayout) -> Vec<f32> {
        let GemmShape { m, n, k } = SHAPE;
        let a_at = |i: usize, s: usize| {
            a[if layout.a_transposed {
                s * m + i
            } else {
                i * k + s
            }]
        };
        let b_at = |s: usize, j: usize| {
            b[if layout.b_transposed {
                j * k + s
            } else {
                s * n + j
            }]
        };
        let element = |i, j| {
            (0..k)
                .map(|s| f64::from(a_at(i, s)) * f64::from(b_at(s, j)))
                .sum::<f64>() as f32
        };
        (0..m * n).map(|at| element(at / n, at % n)).collect()
    }

    fn inputs() -> (Vec<f32>, Vec<f32>) {
        let pool = Pool::<f32>::new(5, SHAPE.k * SHAPE.n);
        (
            pool.matrix(SHAPE.m, SHAPE.k, 0),
            pool.matrix(SHAPE.k, SHAPE.n, 1),
        )
    }

    #[test]
    fn right_products_pass_in_every_layout() {
        let (a, b) = inputs();
        for text in ["nn", "nt", "tn", "tt"] {
            let layout: BlasLayout = text.parse().unwrap();
            let reference = Reference::new(&a, &b, SHAPE, layout, 1);
            let bound = tolerance(DType::F32, OutputType::Input, SHAPE.k);
            let error = reference.check(&product(&a, &b, layout), bound);
            assert!(error.unwrap() < 1e-7, "{text}");
        }
    }

    #[test]
    fn a_missing_step_along_k_fails() {
        let (mut a, b) = inputs();
        let reference = Reference::new(&a, &b, SHAPE, BlasLayout::NN, 1);
        for row in a.chunks_mut(SHAPE.k) {
            row[112..128].fill(0.0);
        }
        let bound = tolerance(DType::Bf16, OutputType::Input, SHAPE.k);
        let message = reference
            .check(&product(&a, &b, BlasLayout::NN), bound)
            .unwrap_err();
        assert!(message.contains("relative error"), "{message}");
    }

    #[test]
    fn one_unwritten_element_fails() {
        let (a, b) = inputs();
        let reference = Reference::new(&a, &b, SHAPE, BlasLayout::NN, 1);
        let mut c = product(&a, &b, BlasLayout::NN);
        c[3 * SHAPE.n + 4] = f32::from_ne_bytes([POISON; 4]);
        let message = reference.check(&c, 1.0).unwrap_err();
        assert!(message.contains("C[3, 4] was not written"), "{message}");
    }

    #[test]
    fn a_sample_that_is_no_number_fails() {
        let (a, b) = inputs();
        let reference = Reference::new(&a, &b, SHAPE, BlasLayout::NN, 1);
        let mut c = product(&a, &b, BlasLayout::NN);
        c[0] = f32::NAN;
        let message = reference.check(&c, 1.0).unwrap_err();
        assert!(message.contains("C[0, 0] = NaN"), "{message}");
    }

    #[test]
    fn corners_are_always_sampled() {
        let mut rng = StdRng::seed_from_u64(9);
        for len in [1, 2, 31, 32, 33, 5000] {
            let picked = sample(&mut rng, len);
            assert_eq!((picked[0], *picked.last().unwrap()), (0, len - 1));
            assert!(picked.len() <= SAMPLED);
        }
    }
}
