#![doc = include_str!("../README.md")]

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod gradient;
mod launches;
mod linear;
mod product;

use candle_core::{Result, Tensor};

pub use candle_core;
pub use tilewise;
pub use tilewise::Activation;

pub use linear::Linear;

/// A·B for A of shape (…, M, K) and B of shape (…, K, N), in f16, bf16 or f32: a tensor of
/// shape (…, M, N), of the same type.
///
/// Tensors may have any strides. Batch dimensions broadcast, as in
/// [`Tensor::broadcast_matmul`]. Gradients flow to both tensors.
///
/// # Errors
/// `ShapeMismatchBinaryOp`, `DTypeMismatchBinaryOp`, `DeviceMismatchBinaryOp`,
/// `UnsupportedDTypeForOp`; the errors of tilewise, wrapped.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product::product(a, b, None, Activation::Identity)
}
