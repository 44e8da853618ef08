//! [`BoundEpilogue`]: the epilogue of one run, as a launch takes it.

use gpu_kernels::EpilogueArguments;

use crate::epilogue::Values;
use crate::problem::Strides;

/// The epilogue of one run on a GPU: numbers and addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundEpilogue {
    pub(crate) values: Values,
    /// The source, in the orientation of C.
    pub(crate) source: Option<(Strides, u64)>,
    /// 0 where there is no bias; so for the others.
    pub(crate) bias: u64,
    pub(crate) row_scale: u64,
    pub(crate) col_scale: u64,
}

impl BoundEpilogue {
    /// The same epilogue for Cᵀ.
    pub(crate) fn transposed(self) -> Self {
        BoundEpilogue {
            source: (self.source).map(|(strides, address)| (strides.transposed(), address)),
            row_scale: self.col_scale,
            col_scale: self.row_scale,
            ..self
        }
    }

    /// The launch parameters.
    pub(crate) fn arguments(&self) -> EpilogueArguments {
        let Values { alpha, beta, slope } = self.values;
        EpilogueArguments {
            source: match self.source {
                None => EpilogueArguments::NONE.source,
                Some((strides, address)) => strides.at(address),
            },
            bias: self.bias,
            row_scale: self.row_scale,
            col_scale: self.col_scale,
            alpha,
            beta,
            slope,
            ..EpilogueArguments::NONE
        }
    }
}
