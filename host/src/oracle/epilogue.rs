//! Epilogues in f64, with bounds of the errors that f32 arithmetic may have.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use gpu_kernels::DType;
use gpu_kernels::epilogue::Activation;

use super::{Product, rounding, worst};
use crate::element::Element;
use crate::epilogue::{Epilogue, Values};
use crate::epilogue_form::{Bias, Gated};
use crate::error::Error;
use crate::inputs::{InputElements, Inputs};

/// Unit roundoff of f32.
const U: f64 = 1.0 / (1_u64 << 24) as f64;

/// Roundings from the sum to the argument of the activation: α, r, c, β·S and the bias.
const ROUNDINGS: f64 = 5.0;

/// An epilogue in f64, and the bounds of rounding errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// C, product by product and row by row.
    pub values: Vec<f64>,
    /// The largest error that each element may have when it was computed in f32, before it
    /// was rounded to the type of C.
    pub errors: Vec<f64>,
}

impl Product {
    /// C, for this product with an epilogue. `input` tells whether the factors were rounded
    /// before, as for [`Product::bound`]. Old values of C that are the source have to be
    /// given as a view.
    ///
    /// ```
    /// use tilewise::{Activation, DType, Device, Epilogue, Inputs, oracle};
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = Device::cpu();
    /// let a = device.from_slice(&[1.0_f32, -2.0], 2, 1)?;
    /// let b = device.from_slice(&[1.0_f32], 1, 1)?;
    /// let epilogue = Epilogue::new().alpha(3.0).activation(Activation::LeakyRelu(0.5));
    /// let product = oracle::product(a.view(), b.view())?;
    /// let c = product.finish(&epilogue, &Inputs::<f32>::new(), DType::F32)?;
    /// assert_eq!(c.values, [3.0, -3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Epilogue`] for a source in place, and for an input that the epilogue has and
    /// `inputs` has not; [`Error::Driver`] when a device has failed.
    pub fn finish<O: Element>(
        &self,
        epilogue: &Epilogue,
        inputs: &Inputs<O>,
        input: DType,
    ) -> Result<Finished, Error> {
        let arguments = Arguments {
            product: self,
            epilogue,
            input,
            elements: inputs.elements()?,
        };
        arguments.check()?;
        let [batches, m, n] = self.shape;
        let form = epilogue.form();
        let slope = epilogue.values().slope.into();
        let act = |x| activate(form.activation, slope, x);
        let mut finished = Finished {
            values: Vec::new(),
            errors: Vec::new(),
        };
        for row in 0..batches * m {
            let value = |col| arguments.value(row, col);
            for col in 0..form.c_cols(n as u32) as usize {
                let of_c = match form.gated {
                    None => act(value(col)),
                    Some(Gated::Interleaved) => act(value(2 * col)).times(value(2 * col + 1)),
                    Some(Gated::Halves) => act(value(col)).times(value(n / 2 + col)),
                };
                finished.values.push(of_c.value);
                finished.errors.push(of_c.error);
            }
        }
        Ok(finished)
    }
}

impl Finished {
    /// The largest error that element `index` may have when it was rounded to `output`.
    pub fn bound(&self, index: usize, output: DType) -> f64 {
        let error = self.errors[index];
        error + rounding(self.values[index].abs() + error, output)
    }

    /// Finds the element of `found` that exceeds its bound the most, as
    /// [`Product::worst`] does.
    pub fn worst<O: Element>(&self, found: &[O]) -> Option<(usize, f64)> {
        worst(found, &self.values, |index| self.bound(index, O::DTYPE))
    }
}

/// Everything that the argument of the activation is computed from.
struct Arguments<'a> {
    product: &'a Product,
    epilogue: &'a Epilogue,
    input: DType,
    elements: InputElements,
}

impl Arguments<'_> {
    /// Returns an error unless all inputs of the epilogue are there.
    fn check(&self) -> Result<(), Error> {
        let form = self.epilogue.form();
        let has_source = self.epilogue.values().beta != 0.0;
        for (argument, is_needed, given) in [
            ("source", has_source, &self.elements.source),
            ("bias", form.bias.is_some(), &self.elements.bias),
            ("row_scale", form.row_scale, &self.elements.row_scale),
            ("col_scale", form.col_scale, &self.elements.col_scale),
        ] {
            if is_needed && given.is_none() {
                return Err(Error::Epilogue {
                    argument,
                    found: "not given".into(),
                    accepted: "what the epilogue has",
                });
            }
        }
        Ok(())
    }

    /// The argument of the activation. `row` counts through all products.
    fn value(&self, row: usize, col: usize) -> Approximate {
        let [_, m, n] = self.product.shape;
        let Values { alpha, beta, .. } = self.epilogue.values();
        let index = row * n + col;
        let sum = Approximate {
            value: self.product.values[index],
            error: self.product.sum_bound(index, self.input),
        };
        let form = self.epilogue.form();
        if form.is_plain() {
            return sum;
        }
        let of_vector = |elements: &Option<Vec<f64>>, index: usize| {
            elements.as_ref().map(|elements| elements[index])
        };
        let row_scale = of_vector(&self.elements.row_scale, row % m).unwrap_or(1.0);
        let col_scale = of_vector(&self.elements.col_scale, col).unwrap_or(1.0);
        let factor = f64::from(alpha) * row_scale * col_scale;
        let source = match &self.elements.source {
            None => 0.0,
            Some(source) => f64::from(beta) * source[index % source.len()],
        };
        let bias = match form.bias {
            None => 0.0,
            Some(Bias::PerRow) => of_vector(&self.elements.bias, row % m).unwrap_or(0.0),
            Some(Bias::PerColumn) => of_vector(&self.elements.bias, col).unwrap_or(0.0),
        };
        let error = factor.abs() * sum.error;
        let magnitude = (factor * sum.value).abs() + error + source.abs() + bias.abs();
        // A product of a small α and small scales may be subnormal before the sum is.
        let subnormal = 2.0_f64.powi(-149) * (ROUNDINGS + sum.value.abs());
        Approximate {
            value: factor * sum.value + source + bias,
            error: error + (ROUNDINGS + 1.0) * U * magnitude + subnormal,
        }
    }
}

/// A value in f64, and the largest error of the same value in f32.
#[derive(Clone, Copy)]
struct Approximate {
    value: f64,
    error: f64,
}

impl Approximate {
    /// The product of both.
    fn times(self, other: Approximate) -> Approximate {
        let value = self.value * other.value;
        let error = self.error * other.value.abs()
            + self.value.abs() * other.error
            + self.error * other.error;
        Approximate {
            value,
            error: error + U * (value.abs() + error) + 2.0_f64.powi(-149),
        }
    }
}

/// The activation of `x`. The error is that of `x` times the largest slope of the function,
/// and that of the function itself: GPUs approximate exponentials and reciprocals to about
/// 2⁻²², and an exponent of t is off by t·2⁻²⁴.
fn activate(activation: Activation, leaky: f64, x: Approximate) -> Approximate {
    let Approximate { value: x, error } = x;
    let (value, slope, exponent) = match activation {
        Activation::Identity => return Approximate { value: x, error },
        Activation::Relu => {
            let value = x.max(0.0);
            return Approximate { value, error };
        }
        Activation::LeakyRelu => {
            let value = if x > 0.0 { x } else { leaky * x };
            let error = error * leaky.abs().max(1.0);
            return Approximate {
                value,
                error: error + U * (value.abs() + error) + 2.0_f64.powi(-149),
            };
        }
        Activation::Silu => (x / (1.0 + (-x).exp()), 1.1, x),
        Activation::GeluTanh => {
            let z = FRAC_2_PI.sqrt() * (x + 0.044_715 * x.powi(3));
            // (1 + tanh z) / 2 is the logistic function of 2z.
            (x / (1.0 + (-2.0 * z).exp()), 1.13, 2.0 * z)
        }
        Activation::Gelu => {
            let value = 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2);
            (value, 1.13, 1.6 * x.abs() + 0.08 * x.abs().powi(3))
        }
    };
    // Where the exponent is larger, the function is 0 or x in f32 too.
    let exponent = exponent.abs().min(128.0);
    let relative = (8.0 + 4.0 * exponent) * U;
    // GELU is a polynomial on a GPU, and tiny results are 0.
    let absolute = match activation {
        Activation::Gelu => 4e-7,
        _ => 1e-35,
    };
    Approximate {
        value,
        error: slope * error + relative * (value.abs() + slope * error) + absolute,
    }
}
