//! What gradients are made of besides products: derivatives of activations, and sums.

use candle_core::{DType, Result, Shape, Tensor, Var};
use tilewise::Activation;

/// act′(S) in f32 from the result act(S), for activations whose result tells it.
pub(crate) fn derivative_of_result(
    activation: Activation,
    result: &Tensor,
) -> Option<Result<Tensor>> {
    match activation {
        // The result has the sign of S, or is 0 where S is not positive.
        Activation::Relu => Some(step(result, 0.0)),
        Activation::LeakyRelu(slope) if slope > 0.0 => Some(step(result, slope)),
        _ => None,
    }
}

/// act′(S) in f32, from S.
pub(crate) fn derivative(activation: Activation, sums: &Tensor) -> Result<Tensor> {
    let sums = &sums.to_dtype(DType::F32)?;
    match activation {
        Activation::Identity => sums.ones_like(),
        Activation::Relu => step(sums, 0.0),
        Activation::LeakyRelu(slope) => step(sums, slope),
        Activation::Gelu => by_candle(sums, Tensor::gelu_erf),
        Activation::GeluTanh => by_candle(sums, Tensor::gelu),
        Activation::Silu => by_candle(sums, Tensor::silu),
    }
}

/// 1 where `tensor` is positive, `slope` elsewhere, in f32.
fn step(tensor: &Tensor, slope: f32) -> Result<Tensor> {
    let slope = f64::from(slope);
    let positive = tensor.gt(0.0)?.to_dtype(DType::F32)?;
    positive.affine(1.0 - slope, slope)
}

/// The derivative that candle computes for its own activation.
fn by_candle(sums: &Tensor, activation: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let sums = Var::from_tensor(sums)?;
    let gradients = activation(&sums)?.backward()?;
    match gradients.get(&sums) {
        Some(gradient) => Ok(gradient.clone()),
        None => candle_core::bail!("candle computed no gradient of an activation"),
    }
}

/// `tensor` summed over the dimensions along which `shape` was broadcast to it, in f32.
pub(crate) fn sum_to(tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    if tensor.shape() == shape {
        return Ok(tensor.clone());
    }
    let added = tensor.rank() - shape.rank();
    let summed: Vec<usize> = (0..tensor.rank())
        .filter(|&index| index < added || shape.dims()[index - added] != tensor.dims()[index])
        .collect();
    let sum = tensor.to_dtype(DType::F32)?.sum_keepdim(summed)?;
    sum.to_dtype(tensor.dtype())?.reshape(shape)
}
