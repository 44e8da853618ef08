//! The reference results of products, and the accepted errors.
//!
//! There are two checks against f64:
//!
//! 1. *Each element*: |C − AB| ≤ γ(K)·|A||B| plus the rounding of the output,
//!    which is the worst case of any order of summation ([`tilewise::oracle`]).
//! 2. *All elements together*: rounding errors are as often up as down, so their sum
//!    over K grows like √K, not like K (Higham and Mary, "A new approach to
//!    probabilistic rounding error analysis", 2019):
//!    ‖C − AB‖ ≤ 4·√K·2⁻²³·‖|A||B|‖ + u·‖C‖ in the Frobenius norm, u the unit
//!    roundoff of the output. This is far sharper for large K.
//!
//! Products of small integers are exact, and compared bit by bit.

use tilewise::oracle::{self, Product};
use tilewise::{DType, Device, Element, Error};

/// Multiplications beyond which only some rows of C are checked.
const WHOLE: usize = 1 << 27;

/// Rows checked of a product that is not checked as a whole.
const SAMPLES: usize = 48;

/// Rows of an `m`×`n` product with depth `k` that are checked: all, or the
/// first, the last and others evenly between. (Of the rest the caller sees that
/// nothing in it is NaN, so that no tile was left out.)
pub fn rows_to_check(m: usize, n: usize, k: usize) -> Vec<usize> {
    if m * n * k <= WHOLE || m <= SAMPLES {
        (0..m).collect()
    } else {
        (0..SAMPLES)
            .map(|sample| sample * (m - 1) / (SAMPLES - 1))
            .collect()
    }
}

/// A factor as the kernel multiplies it: as it is, or rounded to TF32. There are no ties
/// ([`without_tie`]), so it does not matter where the kernel rounds them.
pub fn as_multiplied<T: Element>(elements: Vec<T>, input: DType) -> Vec<T> {
    let round = |element: T| {
        let bits = (element.to_f64() as f32).to_bits();
        T::from_f64(f32::from_bits((bits + 0x1000) & !0x1fff).into())
    };
    match input {
        DType::Tf32 => elements.into_iter().map(round).collect(),
        _ => elements,
    }
}

/// `value`, or a neighbour of it if it lies half-way between two TF32 numbers: TMA rounds those
/// to even, and `cvt.rna.tf32.f32` away from zero.
pub fn without_tie(value: f64) -> f64 {
    let bits = (value as f32).to_bits();
    match bits & 0x1fff {
        0x1000 => f32::from_bits(bits + 1).into(),
        _ => f32::from_bits(bits).into(),
    }
}

/// Rows `rows` of the product of `a` (M×K) and `b` (K×N), both row by row. On
/// this thread: cases run side by side.
pub fn product<T: Element>(
    a: &[T],
    b: &[T],
    (n, k): (usize, usize),
    rows: &[usize],
) -> Result<Product, Error> {
    let cpu = Device::cpu();
    let selected: Vec<T> = rows
        .iter()
        .flat_map(|row| &a[row * k..][..k])
        .copied()
        .collect();
    let (a, b) = (
        cpu.from_slice(&selected, rows.len(), k)?,
        cpu.from_slice(b, k, n)?,
    );
    oracle::product(a.view(), b.view())
}

/// How much of what is allowed the errors of `found` are, 1 at most; or what is
/// wrong.
pub fn check<O: Element>(
    product: &Product,
    found: &[O],
    n: usize,
    input: DType,
) -> Result<f64, String> {
    // Factors that are rounded to TF32 are so in the reference too.
    let input = match input {
        DType::F16x3 => input,
        _ => DType::F32,
    };
    let mut worst = 0.0_f64;
    let (mut error_squares, mut magnitude_squares, mut value_squares) = (0.0, 0.0, 0.0);
    for (index, found) in found.iter().enumerate() {
        let (value, found) = (product.values[index], found.to_f64());
        let error = (found - value).abs();
        let bound = product.bound(index, input, O::DTYPE);
        if error.is_nan() || error > bound {
            let (row, col) = (index / n, index % n);
            return Err(format!(
                "checked row {row}, column {col}: {found:e}, should be {value:e} ± {bound:.1e}"
            ));
        }
        worst = worst.max(error / bound);
        error_squares += error * error;
        magnitude_squares += product.magnitudes[index].powi(2);
        value_squares += value * value;
    }
    let (u, smallest) = match O::DTYPE {
        DType::F32 | DType::Tf32 | DType::F16x3 => (2.0_f64.powi(-24), 2.0_f64.powi(-150)),
        DType::F16 => (2.0_f64.powi(-11), 2.0_f64.powi(-25)),
        DType::Bf16 => (2.0_f64.powi(-8), 2.0_f64.powi(-134)),
    };
    let allowed = 4.0 * (product.k as f64).sqrt() * 2.0_f64.powi(-23) * magnitude_squares.sqrt()
        + u * value_squares.sqrt() * (1.0 + 2.0_f64.powi(-10))
        + smallest * (found.len() as f64).sqrt();
    let error = error_squares.sqrt();
    if error > allowed {
        return Err(format!(
            "all together: error {error:.2e} in the Frobenius norm, accepted {allowed:.2e}"
        ));
    }
    Ok(worst.max(error / allowed))
}

/// Whether `found` is exactly the product, rounded once, bit by bit.
pub fn check_exact<O: Element>(product: &Product, found: &[O], n: usize) -> Result<f64, String> {
    for (index, found) in found.iter().enumerate() {
        let value = O::from_f64(product.values[index]);
        if bytemuck::bytes_of(found) != bytemuck::bytes_of(&value) {
            let (row, col) = (index / n, index % n);
            return Err(format!(
                "checked row {row}, column {col}: {found:?}, should be exactly {value:?}"
            ));
        }
    }
    Ok(0.0)
}
