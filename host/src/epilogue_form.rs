//! [`EpilogueForm`]: the parts of an epilogue, without their values.

use std::fmt;

use gpu_kernels::epilogue::{Activation, BiasAxis, SourceUse};
use gpu_kernels::{DType, Form, Planes};

/// Which elements of C share an element of the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bias {
    /// The bias has M elements, one for each row.
    PerRow,
    /// The bias has N elements, one for each column.
    PerColumn,
}

/// The places of the two columns of A·B, gate and up, that make a column of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gated {
    /// Column j of C comes from the columns 2j (gate) and 2j + 1 (up).
    Interleaved,
    /// Column j of C comes from the columns j (gate) and N/2 + j (up).
    Halves,
}

/// The parts that an [`Epilogue`](crate::Epilogue) has, without their values. The selection
/// of a kernel, and everything that remembers a selection, goes by them.
///
/// ```
/// use tilewise::Epilogue;
/// use tilewise::select::EpilogueForm;
///
/// assert_eq!(Epilogue::new().form(), EpilogueForm::default());
/// // Only that there is an α matters, not its value.
/// assert_eq!(Epilogue::new().alpha(2.0).form(), Epilogue::new().alpha(3.0).form());
/// assert_ne!(Epilogue::new().alpha(2.0).form(), Epilogue::new().form());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpilogueForm {
    /// Whether α is not 1.
    pub(crate) scaled: bool,
    /// What the source does. A gate is f32.
    pub(crate) source: SourceUse,
    pub(crate) bias: Option<Bias>,
    /// The element type of the bias, if it is not that of C.
    pub(crate) bias_type: Option<DType>,
    pub(crate) row_scale: bool,
    pub(crate) col_scale: bool,
    pub(crate) activation: Activation,
    pub(crate) gated: Option<Gated>,
}

impl EpilogueForm {
    /// The form of C = A·B.
    pub const PLAIN: EpilogueForm = EpilogueForm {
        scaled: false,
        source: SourceUse::None,
        bias: None,
        bias_type: None,
        row_scale: false,
        col_scale: false,
        activation: Activation::Identity,
        gated: None,
    };

    /// Whether C is the product itself.
    pub fn is_plain(&self) -> bool {
        *self == EpilogueForm::PLAIN
    }

    /// The form for Cᵀ: rows and columns are exchanged.
    pub(crate) const fn transposed(self) -> Self {
        EpilogueForm {
            bias: match self.bias {
                None => None,
                Some(Bias::PerRow) => Some(Bias::PerColumn),
                Some(Bias::PerColumn) => Some(Bias::PerRow),
            },
            row_scale: self.col_scale,
            col_scale: self.row_scale,
            ..self
        }
    }

    /// Columns of C where B has `n`.
    pub(crate) const fn c_cols(&self, n: u32) -> u32 {
        match self.gated {
            None => n,
            Some(_) => n / 2,
        }
    }

    /// The form of a launch that computes the gates of a gated product with C of type
    /// `output`, before [`EpilogueForm::of_ups`].
    pub(crate) const fn of_gates(self, output: DType) -> Self {
        EpilogueForm {
            activation: Activation::Identity,
            bias_type: Some(output),
            gated: None,
            ..self
        }
    }

    /// The form of a launch that computes the other half of a gated product, and multiplies
    /// it by the activation of the gates, its source.
    pub(crate) const fn of_ups(self) -> Self {
        EpilogueForm {
            source: SourceUse::Gate,
            gated: None,
            ..self
        }
    }

    /// The form of a launch of `batches` products with C of type `output`.
    pub(crate) fn of_launch(&self, output: DType, batches: u32) -> Form {
        Form {
            source_type: match self.source {
                SourceUse::None | SourceUse::Add => output,
                SourceUse::Gate => DType::F32,
            },
            bias_type: self.bias_type.unwrap_or(output),
            source: self.source,
            bias: match self.bias {
                None => BiasAxis::None,
                Some(Bias::PerRow) => BiasAxis::PerRow,
                Some(Bias::PerColumn) => BiasAxis::PerColumn,
            },
            activation: self.activation,
            gated: self.gated.is_some().into(),
            scaled: self.scaled.into(),
            row_scale: self.row_scale.into(),
            col_scale: self.col_scale.into(),
            planes: Planes::of_batch(batches),
            ..Form::plain(output)
        }
    }
}

impl Default for EpilogueForm {
    fn default() -> Self {
        EpilogueForm::PLAIN
    }
}

/// Writes the parts, such as `alpha, bias by column, Gelu`; nothing for a plain product.
impl fmt::Display for EpilogueForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EpilogueForm {
            scaled,
            source,
            bias,
            // It follows from the types of the product.
            bias_type: _,
            row_scale,
            col_scale,
            activation,
            gated,
        } = self;
        let mut parts = Vec::new();
        parts.extend(scaled.then_some("alpha"));
        parts.extend(match source {
            SourceUse::None => None,
            SourceUse::Add => Some("beta"),
            SourceUse::Gate => Some("gate"),
        });
        parts.extend(bias.map(|bias| match bias {
            Bias::PerRow => "bias by row",
            Bias::PerColumn => "bias by column",
        }));
        parts.extend(row_scale.then_some("row scale"));
        parts.extend(col_scale.then_some("column scale"));
        parts.extend(match activation {
            Activation::Identity => None,
            Activation::Relu => Some("relu"),
            Activation::LeakyRelu => Some("leaky relu"),
            Activation::Gelu => Some("gelu"),
            Activation::GeluTanh => Some("gelu by tanh"),
            Activation::Silu => Some("silu"),
        });
        parts.extend(gated.map(|gated| match gated {
            Gated::Interleaved => "gated, interleaved",
            Gated::Halves => "gated, halves",
        }));
        f.write_str(&parts.join(", "))
    }
}
