//! [`Linear`]: act(X·Wᵀ + bias) in one launch.

use candle_core::{Module, Result, Tensor};
use tilewise::Activation;

use crate::product;

/// A linear layer, act(X·Wᵀ + bias), whose bias and activation are in the product's launch.
///
/// ```
/// use candle_core::{Device, Module, Tensor};
/// use tilewise_candle::{Activation, Linear};
///
/// # fn main() -> candle_core::Result<()> {
/// let weight = Tensor::new(&[[1.0_f32, 0.0], [0.0, 1.0], [1.0, 1.0]], &Device::Cpu)?;
/// let bias = Tensor::new(&[0.0_f32, -3.0, 1.0], &Device::Cpu)?;
/// let layer = Linear::new(weight, Some(bias)).activation(Activation::Relu);
/// let x = Tensor::new(&[[1.0_f32, 2.0]], &Device::Cpu)?;
/// assert_eq!(layer.forward(&x)?.to_vec2::<f32>()?, [[1.0, 0.0, 4.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
    activation: Activation,
}

impl Linear {
    /// A layer of `weight`, of shape (N, K), and `bias`, of shape (N). These are the tensors
    /// of candle's own `Linear`.
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Linear {
        Linear {
            weight,
            bias,
            activation: Activation::Identity,
        }
    }

    /// The same layer with an activation.
    pub fn activation(mut self, activation: Activation) -> Linear {
        self.activation = activation;
        self
    }

    /// The weight, of shape (N, K).
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The bias, of shape (N).
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

impl Module for Linear {
    /// act(X·Wᵀ + bias) for X of shape (…, K): a tensor of shape (…, N).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        product::product(x, &self.weight.t()?, self.bias.as_ref(), self.activation)
    }
}
