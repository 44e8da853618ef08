//! Errors name what is wrong.

use candle_core::{DType, Device, Module as _, Result, Tensor};
use tilewise_candle::{Linear, matmul};

pub fn all(device: &Device) -> Result<()> {
    let tensor = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, device);
    let f32 = |shape: &[usize]| tensor(shape, DType::F32);

    let weight = f32(&[6, 4])?;
    let layer = |bias| Linear::new(weight.clone(), Some(bias));
    let x = f32(&[3, 4])?;
    let cases = [
        (
            matmul(&x, &f32(&[5, 6])?),
            "shape mismatch in tilewise-matmul, lhs: [3, 4], rhs: [5, 6]",
        ),
        (
            matmul(&f32(&[4])?, &f32(&[4, 5])?),
            "shape mismatch in tilewise-matmul, lhs: [4], rhs: [4, 5]",
        ),
        (
            matmul(&f32(&[2, 3, 4])?, &f32(&[3, 4, 5])?),
            "shape mismatch in tilewise-matmul, lhs: [2, 3, 4], rhs: [3, 4, 5]",
        ),
        (
            matmul(&x, &tensor(&[4, 5], DType::F16)?),
            "dtype mismatch in tilewise-matmul, lhs: F32, rhs: F16",
        ),
        (
            matmul(&tensor(&[3, 4], DType::F64)?, &tensor(&[4, 5], DType::F64)?),
            "unsupported dtype F64 for op tilewise-matmul",
        ),
        (
            layer(f32(&[5])?).forward(&x),
            "shape mismatch in tilewise-matmul, lhs: [4, 6], rhs: [5]",
        ),
        (
            layer(f32(&[1, 6])?).forward(&x),
            "shape mismatch in tilewise-matmul, lhs: [4, 6], rhs: [1, 6]",
        ),
        (
            layer(tensor(&[6], DType::BF16)?).forward(&x),
            "dtype mismatch in tilewise-matmul, lhs: F32, rhs: BF16",
        ),
    ];
    for (result, expected) in cases {
        match result {
            Ok(tensor) => candle_core::bail!("{tensor:?}, expected the error: {expected}"),
            Err(error) if error.to_string().starts_with(expected) => {}
            Err(error) => candle_core::bail!("{error}, expected: {expected}"),
        }
    }
    Ok(())
}
