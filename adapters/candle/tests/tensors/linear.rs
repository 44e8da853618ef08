//! [`Linear`] against candle's operations in f64.

use candle_core::{Device, Module as _, Result, Tensor};
use tilewise_candle::{Activation, Linear};

use crate::operands::{Operands, TYPES, shapes};
use crate::reference::{self, assert_close};

pub const ACTIVATIONS: [Activation; 6] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu(0.125),
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
];

/// An activation by candle's operations.
pub fn apply(activation: Activation, sums: &Tensor) -> Result<Tensor> {
    match activation {
        Activation::Identity => Ok(sums.clone()),
        Activation::Relu => sums.relu(),
        Activation::LeakyRelu(slope) => sums.relu()? - (sums.neg()?.relu()? * f64::from(slope))?,
        Activation::Gelu => sums.gelu_erf(),
        Activation::GeluTanh => sums.gelu(),
        Activation::Silu => sums.silu(),
    }
}

/// All ranks, types and activations, with and without a bias.
pub fn layers(device: &Device) -> Result<()> {
    for (seed, &(m, n, k)) in shapes(device).iter().enumerate() {
        for dtype in TYPES {
            let mut operands = Operands::new(device, dtype, seed as u64);
            let (weight, bias) = (operands.dense((n, k))?, operands.dense(n)?);
            for batches in [&[][..], &[2], &[2, 3]] {
                let x = operands.dense([batches, &[m, k]].concat())?;
                for activation in ACTIVATIONS {
                    // A GPU compiles a kernel for each epilogue, and the rank is none of its
                    // business.
                    let is_first = activation == ACTIVATIONS[0];
                    if !is_first && batches.len() != 1 {
                        continue;
                    }
                    let what = format!("{:?}×{n} {dtype:?}, {activation:?}", x.dims());
                    check(&what, &x, &weight, Some(&bias), activation)?;
                    check(&format!("{what}, no bias"), &x, &weight, None, activation)?;
                }
            }
        }
    }
    Ok(())
}

/// X, weight and bias with strides.
pub fn strided(device: &Device) -> Result<()> {
    for &(m, n, k) in shapes(device) {
        for dtype in TYPES {
            let mut operands = Operands::new(device, dtype, 7);
            let long = operands.dense((n + 1, 2))?;
            // Not contiguous, and not at the beginning of its storage.
            let bias = long.narrow(0, 1, n)?.narrow(1, 1, 1)?.squeeze(1)?;
            let tail = operands.dense(n + 1)?.narrow(0, 1, n)?;
            for (x_kind, x) in operands.views(&[2], m, k)? {
                for (w_kind, weight) in operands.views(&[], n, k)? {
                    for bias in [&bias, &tail] {
                        let what = format!("{m}×{n}×{k} {dtype:?}, {x_kind} × {w_kind}");
                        check(&what, &x, &weight, Some(bias), Activation::Silu)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Compares one layer.
fn check(
    what: &str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    activation: Activation,
) -> Result<()> {
    let layer = Linear::new(weight.clone(), bias.cloned()).activation(activation);
    let found = layer.forward(x)?;
    let transposed = weight.t()?;
    let mut sums = reference::product(x, &transposed)?;
    let mut magnitude = reference::magnitude(x, &transposed)?;
    if let Some(bias) = bias {
        let bias = reference::exact(bias)?;
        sums = sums.broadcast_add(&bias)?;
        magnitude = magnitude.broadcast_add(&bias.abs()?)?;
    }
    // No activation is steeper than 2.
    assert_close(
        what,
        &found,
        &apply(activation, &sums)?,
        &(magnitude * 2.0)?,
    )
}
