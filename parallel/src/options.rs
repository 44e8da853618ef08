//! What is asked of an operation, beside its operands.

use tilewise::{Activation, Bias, Device, Epilogue, Gemm, Precision};

/// What is done to the product, and how.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Options {
    pub(crate) bias: bool,
    pub(crate) activation: Activation,
    pub(crate) precision: Precision,
    pub(crate) chunks: Option<usize>,
}

impl Options {
    /// A plain product.
    pub fn new() -> Self {
        Options::default()
    }

    /// Adds a bias to each row of C. [`Plan::run_with_bias`](crate::Plan::run_with_bias) takes
    /// it, one vector for each rank, with as many elements as that rank's C has columns.
    pub fn bias(self) -> Self {
        Options { bias: true, ..self }
    }

    /// Applies `activation` to the sum.
    pub fn activation(self, activation: Activation) -> Self {
        Options { activation, ..self }
    }

    /// The precision of f32 operands.
    pub fn precision(self, precision: Precision) -> Self {
        Options { precision, ..self }
    }

    /// Cuts the rows of each rank into at most `chunks` launches. Unless this is called, the
    /// estimate chooses ([`crate::estimate`]).
    pub fn chunks(self, chunks: usize) -> Self {
        Options {
            chunks: Some(chunks.max(1)),
            ..self
        }
    }

    /// One product of a sum on `device`: with a source to add, if it `adds`; with bias and
    /// activation, if it `is_last`.
    pub(crate) fn gemm(&self, device: &Device, adds: bool, is_last: bool) -> Gemm {
        let mut epilogue = Epilogue::new();
        if adds {
            epilogue = epilogue.beta(1.0);
        }
        if is_last {
            epilogue = epilogue.activation(self.activation);
            if self.bias {
                epilogue = epilogue.bias(Bias::PerColumn);
            }
        }
        Gemm::new(device)
            .precision(self.precision)
            .batch_invariant(true)
            .epilogue(epilogue)
    }
}
