//! Gradients against those that candle computes in f64.

use candle_core::{DType, Device, Module as _, Result, Tensor, Var};
use tilewise_candle::{Activation, Linear, matmul};

use crate::linear::{ACTIVATIONS, apply};
use crate::operands::{Operands, TYPES};
use crate::reference::{self, assert_close};

/// The kind of view that a product takes of its variable.
type View = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Views that keep the last two dimensions square, so that every shape below can use them.
const VIEWS: [View; 2] = [
    ("dense", |tensor| Ok(tensor.clone())),
    ("transposed", |tensor| tensor.t()),
];

/// dA and dB, for batches that broadcast.
pub fn products(device: &Device) -> Result<()> {
    let size = 6;
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[], &[]),
        (&[3], &[3]),
        (&[3], &[]),
        (&[], &[3]),
        (&[1], &[3]),
        (&[2, 3], &[1, 3]),
        (&[2, 3], &[]),
    ];
    for dtype in TYPES {
        let mut operands = Operands::new(device, dtype, 11);
        for (a_batches, b_batches) in shapes {
            let shape = |batches: &[usize]| [batches, &[size, size]].concat();
            let variables = [
                operands.dense(shape(a_batches))?,
                operands.dense(shape(b_batches))?,
            ];
            for (a_kind, a_view) in VIEWS {
                for (b_kind, b_view) in VIEWS {
                    let what =
                        format!("{dtype:?}, {a_kind} {a_batches:?} × {b_kind} {b_batches:?}");
                    check(
                        &what,
                        &mut operands,
                        &variables,
                        |vars| matmul(&a_view(&vars[0])?, &b_view(&vars[1])?),
                        |vars| a_view(&vars[0])?.broadcast_matmul(&b_view(&vars[1])?),
                    )?;
                }
            }
        }
    }
    Ok(())
}

/// dX, dW and the bias's gradient, through every activation.
pub fn layers(device: &Device) -> Result<()> {
    let slopes = [0.0, -0.5].map(Activation::LeakyRelu);
    let (n, k) = (7, 5);
    for dtype in TYPES {
        let mut operands = Operands::new(device, dtype, 12);
        for activation in ACTIVATIONS.into_iter().chain(slopes) {
            for x_shape in [vec![4, k], vec![2, 4, k]] {
                let x = operands.dense(x_shape.clone())?;
                let (weight, bias) = (operands.dense((n, k))?, operands.dense(n)?);
                let what = format!("{dtype:?}, {activation:?} of {x_shape:?}");
                let sums = |vars: &[Var]| vars[0].broadcast_matmul(&vars[1].t()?);
                check(
                    &format!("{what}, no bias"),
                    &mut operands,
                    &[x.clone(), weight.clone()],
                    |vars| {
                        Linear::new(vars[1].as_tensor().clone(), None)
                            .activation(activation)
                            .forward(&vars[0])
                    },
                    |vars| apply(activation, &sums(vars)?),
                )?;
                check(
                    &what,
                    &mut operands,
                    &[x, weight, bias],
                    |vars| {
                        let bias = vars[2].as_tensor().clone();
                        Linear::new(vars[1].as_tensor().clone(), Some(bias))
                            .activation(activation)
                            .forward(&vars[0])
                    },
                    |vars| apply(activation, &sums(vars)?.broadcast_add(&vars[2])?),
                )?;
            }
        }
    }
    Ok(())
}

/// Compares the gradients of `function` at `values` with those of `exact` in f64, for random
/// gradients of the result.
fn check(
    what: &str,
    operands: &mut Operands,
    values: &[Tensor],
    function: impl Fn(&[Var]) -> Result<Tensor>,
    exact: impl Fn(&[Var]) -> Result<Tensor>,
) -> Result<()> {
    let variables: Vec<Var> = (values.iter().map(Var::from_tensor)).collect::<Result<_>>()?;
    let result = function(&variables)?;
    let factors = operands.dense(result.dims())?;
    let gradients = (&result * &factors)?.sum_all()?.backward()?;

    let expected: Vec<Var> = (values.iter())
        .map(|value| Var::from_tensor(&reference::exact(value)?))
        .collect::<Result<_>>()?;
    let expected_result = exact(&expected)?;
    let expected_gradients = (&expected_result * &reference::exact(&factors)?)?
        .sum_all()?
        .backward()?;

    // Of 16 bits, the gradient of the sums is rounded too, and candle's formulas for
    // activations have constants of 6 digits.
    let rounding = match result.dtype() {
        DType::F32 => 8.0,
        _ => 2_f64.powi(14),
    };
    for (index, (variable, expected)) in variables.iter().zip(&expected).enumerate() {
        let (Some(found), Some(expected)) =
            (gradients.get(variable), expected_gradients.get(expected))
        else {
            candle_core::bail!("{what}: variable {index} has no gradient");
        };
        // Factors are below 1, and every gradient is a sum of at most 36 of their products.
        let magnitude = (expected.ones_like()? * rounding)?;
        assert_close(
            &format!("{what}, gradient {index}"),
            found,
            expected,
            &magnitude,
        )?;
    }
    Ok(())
}
