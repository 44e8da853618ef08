//! The options of a product, from Python values.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tilewise::{Activation, Gated, Gemm, Precision};
use tilewise_benches::problem::names::{self, KernelChoice};

/// The slope of `"leaky_relu"` without one: PyTorch's.
const DEFAULT_SLOPE: f32 = 0.01;

/// The choices that the caller may force, by their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forced<'a> {
    /// The order of tiles.
    pub order: Option<&'a str>,
    /// The schedule.
    pub schedule: Option<&'a str>,
    /// A family of kernels, or one entry point.
    pub kernel: Option<&'a str>,
    /// The arithmetic of f32.
    pub precision: Option<&'a str>,
    /// Whether the bits of a row are to be the same in all products.
    pub batch_invariant: bool,
}

impl Forced<'_> {
    /// `gemm` with these choices.
    pub fn apply(&self, gemm: Gemm) -> PyResult<Gemm> {
        let mut gemm = gemm.batch_invariant(self.batch_invariant);
        if let Some(order) = self.order {
            gemm = gemm.order(parse("order", order)?);
        }
        if let Some(schedule) = self.schedule {
            let parsed = names::parse_schedule(schedule);
            gemm = gemm.schedule(parsed.map_err(|reason| refused("schedule", &reason))?);
        }
        if let Some(kernel) = self.kernel {
            gemm = match parse("kernel", kernel)? {
                KernelChoice::Family(family) => gemm.family(family),
                KernelChoice::Entry(name) => gemm.kernel(name),
            };
        }
        Ok(match self.precision {
            None | Some("ieee") => gemm,
            Some("tf32") => gemm.precision(Precision::Tf32),
            Some("f16x3") => gemm.precision(Precision::F16x3),
            Some(other) => {
                return Err(unknown("precision", other, "None, 'ieee', 'tf32', 'f16x3'"));
            }
        })
    }
}

fn parse<T: std::str::FromStr<Err: ToString>>(argument: &str, text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|reason: T::Err| refused(argument, &reason.to_string()))
}

fn refused(argument: &str, reason: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: {reason}"))
}

fn unknown(argument: &str, found: &str, accepted: &str) -> PyErr {
    PyValueError::new_err(format!("{argument} is '{found}'; accepted: {accepted}"))
}

/// An activation by its name, or `("leaky_relu", slope)`.
pub fn activation(value: Option<&Bound<PyAny>>) -> PyResult<Activation> {
    const ACCEPTED: &str = "None, 'relu', 'leaky_relu', ('leaky_relu', slope), 'gelu', \
                            'gelu_tanh', 'silu'";
    let Some(value) = value else {
        return Ok(Activation::Identity);
    };
    if let Ok(name) = value.cast::<PyString>() {
        return match &*name.to_cow()? {
            "relu" => Ok(Activation::Relu),
            "leaky_relu" => Ok(Activation::LeakyRelu(DEFAULT_SLOPE)),
            "gelu" => Ok(Activation::Gelu),
            "gelu_tanh" => Ok(Activation::GeluTanh),
            "silu" => Ok(Activation::Silu),
            other => Err(unknown("activation", other, ACCEPTED)),
        };
    }
    match value.extract::<(String, f32)>() {
        Ok((name, slope)) if name == "leaky_relu" => Ok(Activation::LeakyRelu(slope)),
        _ => Err(PyTypeError::new_err(format!(
            "activation is {}; accepted: {ACCEPTED}",
            value.repr()?
        ))),
    }
}

/// How gate and up are stored, by its name.
pub fn gated(name: Option<&str>) -> PyResult<Option<Gated>> {
    Ok(match name {
        None => None,
        Some("halves") => Some(Gated::Halves),
        Some("interleaved") => Some(Gated::Interleaved),
        Some(other) => {
            let accepted = "None, 'halves', 'interleaved'";
            return Err(unknown("gated", other, accepted));
        }
    })
}
