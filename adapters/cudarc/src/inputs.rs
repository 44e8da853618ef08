//! [`Inputs`]: the operands of an epilogue, in cudarc's memory.

use tilewise::Element;

use crate::slice::MatrixSlice;

/// The operands of an epilogue, for one run: as [`tilewise::Inputs`], with cudarc's slices.
#[derive(Clone, Copy)]
pub struct Inputs<'a, O> {
    pub(crate) source: Source<'a, O>,
    pub(crate) bias: Option<MatrixSlice<'a, O>>,
    pub(crate) row_scale: Option<MatrixSlice<'a, f32>>,
    pub(crate) col_scale: Option<MatrixSlice<'a, f32>>,
}

/// What beta multiplies.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a, O> {
    None,
    InPlace,
    Matrix(MatrixSlice<'a, O>),
}

impl<O> Default for Inputs<'_, O> {
    fn default() -> Self {
        Inputs {
            source: Source::None,
            bias: None,
            row_scale: None,
            col_scale: None,
        }
    }
}

impl<'a, O: Element> Inputs<'a, O> {
    /// No operands.
    pub fn new() -> Self {
        Self::default()
    }

    /// Beta multiplies `source`, M×N with any strides.
    pub fn source(mut self, source: MatrixSlice<'a, O>) -> Self {
        self.source = Source::Matrix(source);
        self
    }

    /// Beta multiplies the old values of C.
    pub fn in_place(mut self) -> Self {
        self.source = Source::InPlace;
        self
    }

    /// The bias: M×1 or 1×N, contiguous.
    pub fn bias(mut self, bias: MatrixSlice<'a, O>) -> Self {
        self.bias = Some(bias);
        self
    }

    /// The factors of the rows: M×1, contiguous.
    pub fn row_scale(mut self, row_scale: MatrixSlice<'a, f32>) -> Self {
        self.row_scale = Some(row_scale);
        self
    }

    /// The factors of the columns: 1×N, contiguous.
    pub fn col_scale(mut self, col_scale: MatrixSlice<'a, f32>) -> Self {
        self.col_scale = Some(col_scale);
        self
    }
}
