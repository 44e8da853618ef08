//! The epilogue on the CPU, in f32 as on a GPU.

use gpu_kernels::epilogue::{Activation, SourceUse};

use crate::element::Element;
use crate::epilogue::Values;
use crate::epilogue_form::{Bias, EpilogueForm};
use crate::host_matrix::HostMatrix;

/// The epilogue of one run on the CPU.
#[derive(Clone, Copy)]
pub(crate) struct HostEpilogue<O> {
    pub(crate) form: EpilogueForm,
    pub(crate) values: Values,
    /// M×N, for each matrix of C or for all.
    pub(crate) source: Option<HostMatrix<O>>,
    /// M or N elements, as the form says.
    pub(crate) bias: Option<*const O>,
    /// M elements.
    pub(crate) row_scale: Option<*const f32>,
    /// N elements.
    pub(crate) col_scale: Option<*const f32>,
}

impl<O: Element> HostEpilogue<O> {
    /// The epilogue of product `index` of a batch.
    pub(super) fn batch(&self, index: usize) -> Self {
        HostEpilogue {
            source: self.source.map(|source| source.batch(index)),
            ..*self
        }
    }

    /// Turns sums into values of C. `sums` begin at row `row` of the product, and their
    /// columns are its columns `col`, `col + step`, and so on. With `gates`, each value is
    /// multiplied by the activation of its gate.
    ///
    /// # Safety
    /// The operands of the epilogue can be read, and `sums` and `gates`, of the same shape,
    /// can be written; no other code uses them.
    pub(super) unsafe fn finish(
        &self,
        sums: HostMatrix<f32>,
        gates: Option<HostMatrix<f32>>,
        row: usize,
        col: usize,
        step: usize,
    ) {
        let act = |x| activate(self.form.activation, self.values.slope, x);
        // SAFETY: the caller ensures it.
        unsafe {
            each(sums, |i, j, sum| {
                let value = self.value(sum, row + i, col + j * step);
                match gates {
                    Some(gates) => act(*gates.element(i, j)) * value,
                    None => act(value),
                }
            });
        }
    }

    /// Turns sums into gates, which [`HostEpilogue::finish`] takes. The arguments are as
    /// there.
    ///
    /// # Safety
    /// As for [`HostEpilogue::finish`].
    pub(super) unsafe fn finish_gates(
        &self,
        sums: HostMatrix<f32>,
        row: usize,
        col: usize,
        step: usize,
    ) {
        // SAFETY: the caller ensures it.
        unsafe { each(sums, |i, j, sum| self.value(sum, row + i, col + j * step)) };
    }

    /// The argument of the activation, for element (row, col) of the product.
    ///
    /// # Safety
    /// The operands of the epilogue can be read, and have such an element.
    unsafe fn value(&self, sum: f32, row: usize, col: usize) -> f32 {
        let Values { alpha, beta, .. } = self.values;
        let mut value = sum;
        if self.form.scaled {
            value *= alpha;
        }
        // SAFETY: the vectors have M and N elements, and the source has the shape of C.
        unsafe {
            if let Some(scale) = self.row_scale {
                value *= *scale.add(row);
            }
            if let Some(scale) = self.col_scale {
                value *= *scale.add(col);
            }
            if let (SourceUse::Add, Some(source)) = (self.form.source, self.source) {
                value = beta.mul_add(wide(*source.element(row, col)), value);
            }
            if let (Some(axis), Some(bias)) = (self.form.bias, self.bias) {
                value += wide(*bias.add(match axis {
                    Bias::PerRow => row,
                    Bias::PerColumn => col,
                }));
            }
        }
        value
    }
}

/// Replaces each element of `matrix` by `function` of its row, its column and itself.
///
/// # Safety
/// The matrix can be read and written, and no other code uses it.
unsafe fn each(matrix: HostMatrix<f32>, function: impl Fn(usize, usize, f32) -> f32) {
    for row in 0..matrix.layout.rows {
        for col in 0..matrix.layout.cols {
            // SAFETY: the caller ensures it.
            unsafe {
                let element = matrix.element(row, col);
                *element = function(row, col, *element);
            }
        }
    }
}

/// An element in f32, exactly.
fn wide<O: Element>(element: O) -> f32 {
    let mut wide = [0.0];
    O::widen(&[element], &mut wide);
    wide[0]
}

/// The activation of `x`.
fn activate(activation: Activation, slope: f32, x: f32) -> f32 {
    /// 2·√(2/π).
    const TWICE_ROOT_2_OVER_PI: f32 = std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::SQRT_2;

    // Unlike 1 + tanh or 1 + erf, these forms keep their precision for large negative x.
    let times_sigmoid = |t: f32| x / (1.0 + (-t).exp());
    match activation {
        Activation::Identity => x,
        Activation::Relu => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Activation::LeakyRelu => {
            if x > 0.0 {
                x
            } else {
                x * slope
            }
        }
        Activation::Gelu => 0.5 * x * libm::erfcf(-x * std::f32::consts::FRAC_1_SQRT_2),
        Activation::GeluTanh => times_sigmoid(TWICE_ROOT_2_OVER_PI * x * (1.0 + 0.044_715 * x * x)),
        Activation::Silu => times_sigmoid(x),
    }
}
