//! [`Epilogue`]: what a product does with A·B before it becomes C.

use gpu_kernels::epilogue::{Activation as Function, SourceUse};

use crate::epilogue_form::{Bias, EpilogueForm, Gated};
use crate::error::Error;
use crate::layout::Layout;

/// An activation function, computed in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// x.
    #[default]
    Identity,
    /// max(x, 0); NaN stays NaN.
    Relu,
    /// x for x > 0, else the given slope times x.
    LeakyRelu(f32),
    /// x·Φ(x), with Φ the standard normal distribution function (the erf form).
    Gelu,
    /// x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2.
    GeluTanh,
    /// x / (1 + e⁻ˣ).
    Silu,
}

/// What a product does with A·B before it becomes C:
///
/// ```text
/// C = act(α · rᵢ · cⱼ · (A·B)ᵢⱼ + β · Sᵢⱼ + bias)
/// ```
///
/// S is the *source*, as CUTLASS calls it: a matrix of the shape and the type of C, or C's
/// own old values. r and c are vectors of f32, the bias is a vector of C's type, and α and β
/// are numbers. The arithmetic is f32; the result is rounded once, to the type of C.
///
/// An epilogue says which of these parts there are. Their matrices and vectors are the
/// [`Inputs`](crate::Inputs) of a run.
///
/// ```
/// use tilewise::{Activation, Bias, Device, Epilogue, Gemm, Inputs};
///
/// # fn main() -> Result<(), tilewise::Error> {
/// let device = Device::best();
/// let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
/// let bias = device.from_slice(&[0.5_f32, -20.0], 1, 2)?;
/// let mut c = device.zeros::<f32>(2, 2)?;
///
/// let epilogue = Epilogue::new()
///     .alpha(2.0)
///     .bias(Bias::PerColumn)
///     .activation(Activation::Relu);
/// let mut plan = Gemm::new(&device).epilogue(epilogue).plan(&a, &a, &mut c)?;
/// let inputs = Inputs::new().bias(bias.view());
/// plan.run_with(&a, &a, &mut c, &inputs)?;
/// assert_eq!(c.to_vec()?, [14.5, 0.0, 30.5, 24.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Gated pairs
///
/// With [`Epilogue::gated`], two columns of the product, *gate* and *up*, make one column of
/// C: C = act(gate) · up. B then has N columns, an even number, and C has N/2. α, r, c and the
/// bias apply to all N columns, and c and a bias by column have N elements. SwiGLU is
/// [`Activation::Silu`] with gated pairs, and GeGLU is [`Activation::Gelu`]. There is no source.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Epilogue {
    alpha: f32,
    beta: f32,
    bias: Option<Bias>,
    row_scale: bool,
    col_scale: bool,
    activation: Activation,
    gated: Option<Gated>,
}

impl Epilogue {
    /// C = A·B.
    pub fn new() -> Self {
        Epilogue {
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            row_scale: false,
            col_scale: false,
            activation: Activation::Identity,
            gated: None,
        }
    }

    /// Sets α, by which A·B is multiplied; 1 at first.
    pub fn alpha(self, alpha: f32) -> Self {
        Epilogue { alpha, ..self }
    }

    /// Sets β, by which the source is multiplied. With 0, the initial value, there is no
    /// source: none is read, and NaN in it does not matter.
    pub fn beta(self, beta: f32) -> Self {
        Epilogue { beta, ..self }
    }

    /// Adds a bias.
    pub fn bias(self, bias: Bias) -> Self {
        Epilogue {
            bias: Some(bias),
            ..self
        }
    }

    /// Multiplies each row of A·B by its element of a vector.
    pub fn row_scale(self) -> Self {
        Epilogue {
            row_scale: true,
            ..self
        }
    }

    /// Multiplies each column of A·B by its element of a vector.
    pub fn col_scale(self) -> Self {
        Epilogue {
            col_scale: true,
            ..self
        }
    }

    /// Sets the activation.
    pub fn activation(self, activation: Activation) -> Self {
        Epilogue { activation, ..self }
    }

    /// Makes each pair of columns of the product a column of C.
    pub fn gated(self, gated: Gated) -> Self {
        Epilogue {
            gated: Some(gated),
            ..self
        }
    }

    /// The parts that this epilogue has, without their values.
    pub fn form(&self) -> EpilogueForm {
        EpilogueForm {
            scaled: self.alpha != 1.0,
            source: if self.beta != 0.0 {
                SourceUse::Add
            } else {
                SourceUse::None
            },
            bias: self.bias,
            bias_type: None,
            row_scale: self.row_scale,
            col_scale: self.col_scale,
            activation: match self.activation {
                Activation::Identity => Function::Identity,
                Activation::Relu => Function::Relu,
                Activation::LeakyRelu(_) => Function::LeakyRelu,
                Activation::Gelu => Function::Gelu,
                Activation::GeluTanh => Function::GeluTanh,
                Activation::Silu => Function::Silu,
            },
            gated: self.gated,
        }
    }

    /// α, β and the slope of a leaky ReLU, which are arguments of a launch.
    pub(crate) fn values(&self) -> Values {
        Values {
            alpha: self.alpha,
            beta: self.beta,
            slope: match self.activation {
                Activation::LeakyRelu(slope) => slope,
                _ => 0.0,
            },
        }
    }

    /// Rows and columns of the product that `c` is made of, where B is `b`.
    ///
    /// # Errors
    /// [`Error::Epilogue`] if the epilogue is gated and has a source, or B does not have
    /// twice as many columns as C.
    pub(crate) fn product_of(&self, b: Layout, c: Layout) -> Result<(usize, usize), Error> {
        if self.gated.is_none() {
            return Ok((c.rows, c.cols));
        }
        let wrong = |argument, found, accepted| {
            Err(Error::Epilogue {
                argument,
                found,
                accepted,
            })
        };
        if self.beta != 0.0 {
            let found = format!("{} with gated pairs", self.beta);
            return wrong("beta", found, "0, because gated pairs have no source");
        }
        if !b.cols.is_multiple_of(2) || c.cols != b.cols / 2 {
            let found = format!("true for B with {} and C with {} columns", b.cols, c.cols);
            let accepted = "B with an even number of columns, and C with half as many";
            return wrong("gated", found, accepted);
        }
        Ok((c.rows, b.cols))
    }
}

impl Default for Epilogue {
    fn default() -> Self {
        Epilogue::new()
    }
}

/// The numbers of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// The slope of a leaky ReLU.
    pub(crate) slope: f32,
}
