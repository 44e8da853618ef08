//! [`Description`]: what a rank tells the others of the operation that it plans.

use serde::{Deserialize, Serialize};
use tilewise::{Element, Layout};

use crate::error::Error;
use crate::operands::Operands;
use crate::options::Options;
use crate::program::Operation;
use crate::rank_error::RankError;

/// An operation, as one rank plans it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Description {
    /// What has to be the same on all ranks, by name.
    same: Vec<(String, String)>,
    /// Rows, columns and strides of A, B and C.
    layouts: [[usize; 4]; 3],
    alignments: [u64; 3],
}

impl Description {
    /// The operation on operands with these layouts and alignments.
    pub fn new<T: Element, O: Element>(
        operation: Operation,
        options: &Options,
        layouts: [Layout; 3],
        alignments: [u64; 3],
    ) -> Self {
        let chunks = match options.chunks {
            Some(chunks) => chunks.to_string(),
            None => "chosen by the estimate".into(),
        };
        let same = [
            ("the operation", format!("{operation:?}")),
            ("the element type of a and b", T::DTYPE.name().into()),
            ("the element type of c", O::DTYPE.name().into()),
            ("the option bias", options.bias.to_string()),
            ("the option activation", format!("{:?}", options.activation)),
            ("the option precision", format!("{:?}", options.precision)),
            ("the number of chunks", chunks),
            ("the engine", format!("{:?}", options.engine)),
        ];
        Description {
            same: same.map(|(name, value)| (name.into(), value)).into(),
            layouts: layouts.map(|l| [l.rows, l.cols, l.row_stride, l.col_stride]),
            alignments,
        }
    }

    /// The operands of all ranks, if their descriptions agree and fit together.
    pub fn operands<T, O>(operation: Operation, all: &[Description]) -> Result<Operands, Error> {
        for (rank, description) in all.iter().enumerate() {
            let pairs = description.same.iter().zip(&all[0].same);
            if let Some((found, accepted)) = pairs.into_iter().find(|(own, first)| own != first) {
                return Err(Error::Rank(RankError::Disagreement {
                    argument: found.0.clone(),
                    rank,
                    found: found.1.clone(),
                    accepted: format!("{}, as on rank 0", accepted.1),
                }));
            }
        }
        let layout = |[rows, cols, row_stride, col_stride]: [usize; 4]| {
            Layout::strided(rows, cols, row_stride, col_stride)
        };
        let of = |operand: usize| all.iter().map(move |one| layout(one.layouts[operand]));
        let aligned = |operand: usize| all.iter().map(move |one| one.alignments[operand]);
        Operands::of::<T, O>(
            operation,
            [0, 1, 2].map(|operand| of(operand).collect()),
            [0, 1, 2].map(|operand| aligned(operand).collect()),
        )
    }
}
