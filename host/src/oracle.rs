//! The oracle for tests: products and epilogues in f64, computed by the definition.
//!
//! Products of two 16-bit or two f32 elements are exact in f64. Only the sum is rounded,
//! and its error is far below the error of any f32 sum.

mod epilogue;

pub use epilogue::Finished;
use gpu_kernels::DType;

use crate::element::Element;
use crate::error::Error;
use crate::operands::{check_batches, check_shapes};
use crate::view::MatrixView;

/// A product, or a batch of products, in f64, and the bounds of rounding errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Number of products, and rows and columns of each.
    pub shape: [usize; 3],
    /// Number of terms in each sum: the columns of A.
    pub k: usize,
    /// C, product by product and row by row.
    pub values: Vec<f64>,
    /// Σ |A(i, k)·B(k, j)| for each element of C.
    pub magnitudes: Vec<f64>,
    /// The largest magnitude in A times the largest in B.
    pub largest: f64,
}

/// A·B for A M×K and B K×N, by M·N·K multiplications on one thread. A or B may be a batch; a
/// single matrix is a factor of all products.
///
/// ```
/// use tilewise::{Device, oracle};
/// # fn main() -> Result<(), tilewise::Error> {
/// let device = Device::cpu();
/// let a = device.from_slice(&[1.0_f32, -2.0], 1, 2)?;
/// let product = oracle::product(a.view(), a.view().t())?;
/// assert_eq!(product.values, [5.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`], [`Error::BatchMismatch`], and [`Error::Driver`] when a device
/// has failed.
pub fn product<T: Element>(a: MatrixView<T>, b: MatrixView<T>) -> Result<Product, Error> {
    check_shapes(a.layout(), b.layout(), (a.rows(), b.cols()))?;
    let batches = check_batches(a.layout(), b.layout(), None)?;
    let (m, n, k) = (a.rows(), b.cols(), a.cols());
    let wide = |view: MatrixView<T>| -> Result<Vec<f64>, Error> {
        Ok(view.to_vec()?.into_iter().map(Element::to_f64).collect())
    };
    let (a_batches, b_batches) = (a.batches(), b.batches());
    let (a, b) = (wide(a)?, wide(b)?);
    let [largest_a, largest_b] =
        [&a, &b].map(|elements| elements.iter().fold(0.0, |most, x| f64::max(most, x.abs())));
    let mut values = vec![0.0; batches * m * n];
    let mut magnitudes = vec![0.0; batches * m * n];
    for batch in 0..batches {
        let a = &a[batch % a_batches * m * k..][..m * k];
        let b = &b[batch % b_batches * k * n..][..k * n];
        for i in 0..m {
            let first = (batch * m + i) * n;
            let values = &mut values[first..][..n];
            let magnitudes = &mut magnitudes[first..][..n];
            for l in 0..k {
                let factor = a[i * k + l];
                let row = &b[l * n..][..n];
                let sums = values.iter_mut().zip(magnitudes.iter_mut());
                for ((value, magnitude), b) in sums.zip(row) {
                    let term = factor * b;
                    *value += term;
                    *magnitude += term.abs();
                }
            }
        }
    }
    Ok(Product {
        shape: [batches, m, n],
        k,
        values,
        magnitudes,
        largest: largest_a * largest_b,
    })
}

impl Product {
    /// The largest error that element `index` may have when it was summed in f32,
    /// in any order, and rounded to `output`. `input` tells whether the factors were
    /// rounded before, which TF32 does, or split.
    pub fn bound(&self, index: usize, input: DType, output: DType) -> f64 {
        let sum = self.sum_bound(index, input);
        sum + rounding(self.values[index].abs() + sum, output)
    }

    /// The largest error that element `index` may have when it was summed in f32, in any
    /// order.
    ///
    /// A sum of K terms is off by at most γ(K)·Σ|terms| with
    /// γ(K) = K·u / (1 - K·u) and u the unit roundoff (Higham, Accuracy and
    /// Stability of Numerical Algorithms, 3.1). Tensor cores truncate where
    /// IEEE rounds, so u is 2⁻²³ here.
    fn sum_bound(&self, index: usize, input: DType) -> f64 {
        let u = f64::from(f32::EPSILON);
        let gamma = self.k as f64 * u / (1.0 - self.k as f64 * u);
        let (factors, lost) = match input {
            // Both factors are rounded to 11 significant bits.
            DType::Tf32 => (2.0_f64.powi(-10) + 2.0_f64.powi(-22), 0.0),
            // The bound of `gpu_kernels::f16x3`; the sum of the parts' magnitudes exceeds that of
            // the elements by less.
            DType::F16x3 => (
                4.0 * 2.0_f64.powi(-22),
                self.k as f64 * 2.0_f64.powi(-48) * self.largest,
            ),
            _ => (0.0, 0.0),
        };
        (gamma + factors + gamma * factors) * self.magnitudes[index] + lost
    }

    /// Finds the element of `found`, product by product and row by row, that exceeds its
    /// [`bound`](Product::bound) the most. Returns its index and its error divided by the
    /// bound; `None` when all elements are within their bounds. NaN exceeds every bound.
    pub fn worst<O: Element>(&self, found: &[O], input: DType) -> Option<(usize, f64)> {
        worst(found, &self.values, |index| {
            self.bound(index, input, O::DTYPE)
        })
    }
}

/// The largest error of rounding a value of at most `magnitude` to `output`. Values below the
/// normal range are off by at most half the smallest subnormal.
fn rounding(magnitude: f64, output: DType) -> f64 {
    let (relative, smallest) = match output {
        DType::F32 | DType::Tf32 | DType::F16x3 => (2.0_f64.powi(-24), 2.0_f64.powi(-150)),
        DType::F16 => (2.0_f64.powi(-11), 2.0_f64.powi(-25)),
        DType::Bf16 => (2.0_f64.powi(-8), 2.0_f64.powi(-134)),
    };
    relative * magnitude + smallest
}

/// The element of `found` that is farthest beyond its bound around `values`, as
/// [`Product::worst`] returns it.
fn worst<O: Element>(
    found: &[O],
    values: &[f64],
    bound: impl Fn(usize) -> f64,
) -> Option<(usize, f64)> {
    assert_eq!(found.len(), values.len(), "elements of C");
    let excess = |(index, found): (usize, &O)| {
        let excess = (found.to_f64() - values[index]).abs() / bound(index);
        let excess = if excess.is_nan() {
            f64::INFINITY
        } else {
            excess
        };
        (index, excess)
    };
    (found.iter().enumerate().map(excess))
        .filter(|(_, excess)| *excess > 1.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}
