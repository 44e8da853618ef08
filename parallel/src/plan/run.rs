//! [`Run`]: the operands of one run.

use tilewise::{MatrixView, MatrixViewMut};

/// The operands of a run.
pub(super) struct Run<'r, 'a, 'c, T, O> {
    pub a: &'r [MatrixView<'a, T>],
    pub b: &'r [MatrixView<'a, T>],
    pub c: &'r mut [MatrixViewMut<'c, O>],
    pub bias: Option<&'r [MatrixView<'a, O>]>,
}
