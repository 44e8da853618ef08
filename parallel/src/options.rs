//! What is asked of an operation, beside its operands.

use tilewise::{Activation, Bias, Device, Epilogue, Gemm, Precision};

/// How ranks exchange rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// By copies into the memory of the other ranks, behind the products. No rank waits for
    /// another in a kernel, and the bits are those that [the crate](crate#results) promises.
    #[default]
    Peer,
    /// By NCCL's collectives, before the product or after it. They take dense matrices, in equal
    /// parts, each rank on a GPU of its own, and no bias and no activation on a sum over ranks.
    /// NCCL adds in an order of its own, and rounds each product to the type of C before. Its
    /// kernels wait for those of the other ranks: where the process runs collectives of another
    /// communicator on the same GPUs, NCCL wants their order to be the same on all of them.
    Nccl,
    /// By NCCL where it is found, can do the operation, and is about as fast by the estimate; else
    /// by copies. NCCL is taken for few rows, where there is little to hide an exchange behind. Ranks
    /// that are processes ([`Member`](crate::Member)) take copies on one host, and NCCL on several.
    Auto,
}

/// What is done to the product, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Options {
    pub(crate) bias: bool,
    pub(crate) activation: Activation,
    pub(crate) precision: Precision,
    pub(crate) chunks: Option<usize>,
    pub(crate) engine: Engine,
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

    /// Cuts the rows of each rank into at most `chunks` launches, where ranks copy them. Unless
    /// this is called, the estimate chooses ([`crate::estimate`]).
    pub fn chunks(self, chunks: usize) -> Self {
        Options {
            chunks: Some(chunks.max(1)),
            ..self
        }
    }

    /// How ranks exchange rows; [`Engine::Peer`] unless this is called.
    pub fn engine(self, engine: Engine) -> Self {
        Options { engine, ..self }
    }

    /// Whether anything follows the sum over ranks.
    pub(crate) fn finishes(&self) -> bool {
        self.bias || self.activation != Activation::Identity
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
