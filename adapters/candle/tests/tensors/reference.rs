//! What results should be: candle's own products, in f64 on the CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::{DType, Device, Result, Tensor, bail};

/// Number of tensors that [`assert_close`] has compared.
static COMPARED: AtomicU64 = AtomicU64::new(0);

pub fn compared() -> u64 {
    COMPARED.load(Ordering::Relaxed)
}

/// A tensor as contiguous f64 on the CPU.
pub fn exact(tensor: &Tensor) -> Result<Tensor> {
    tensor
        .to_device(&Device::Cpu)?
        .contiguous()?
        .to_dtype(DType::F64)
}

/// A·B in f64.
pub fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    exact(a)?.broadcast_matmul(&exact(b)?)
}

/// |A|·|B|: the scale of the rounding errors of A·B.
pub fn magnitude(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    exact(a)?.abs()?.broadcast_matmul(&exact(b)?.abs()?)
}

/// Returns an error unless `found` is `expected` but for its last bit, and for rounding
/// errors of f32 in sums of `magnitude`.
pub fn assert_close(
    what: &str,
    found: &Tensor,
    expected: &Tensor,
    magnitude: &Tensor,
) -> Result<()> {
    COMPARED.fetch_add(1, Ordering::Relaxed);
    if found.dims() != expected.dims() {
        bail!(
            "{what}: shape {:?}, expected {:?}",
            found.dims(),
            expected.dims()
        );
    }
    let unit = match found.dtype() {
        DType::F32 => 2_f64.powi(-23),
        DType::F16 => 2_f64.powi(-10),
        DType::BF16 => 2_f64.powi(-7),
        other => bail!("{what}: {other:?}"),
    };
    let values = |tensor: &Tensor| exact(tensor)?.flatten_all()?.to_vec1::<f64>();
    let (found, expected, magnitude) = (values(found)?, values(expected)?, values(magnitude)?);
    for (at, ((found, expected), magnitude)) in
        found.iter().zip(&expected).zip(&magnitude).enumerate()
    {
        // A sum of n products loses at most n · 2^-24 of their magnitudes, and comes near that
        // where all products are equal, as for repeated rows and columns. n is 512 at most. The
        // smallest f16 is 2^-24.
        let bound = unit * expected.abs() + 2_f64.powi(-15) * magnitude + 2_f64.powi(-24);
        // False for a NaN, too.
        let is_close = (found - expected).abs() <= bound;
        if !is_close {
            bail!("{what}: element {at} is {found}, expected {expected} ± {bound}");
        }
    }
    Ok(())
}
