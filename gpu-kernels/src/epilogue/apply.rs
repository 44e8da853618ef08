//! The formula, for the sums that one thread holds.

use super::activation::activate;
use crate::dtype::DType;
use crate::f16x3;
use crate::form::{BiasAxis, SourceUse};
use crate::isa::arithmetic::fma;
use crate::isa::global;
use crate::problem::GemmParams;
use crate::unroll::unroll;

/// What the formula adds to `N` sums and multiplies them with. Terms that the form does not
/// have are never used.
#[derive(Clone, Copy)]
pub struct Terms<const N: usize> {
    /// The rᵢ of each sum.
    pub row_scale: [f32; N],
    /// The cⱼ of each sum.
    pub col_scale: [f32; N],
    /// The element of the source for each sum.
    pub source: [f32; N],
    /// The element of the bias for each sum.
    pub bias: [f32; N],
}

impl<const N: usize> Terms<N> {
    /// Zeros.
    pub const ZERO: Terms<N> = Terms {
        row_scale: [0.0; N],
        col_scale: [0.0; N],
        source: [0.0; N],
        bias: [0.0; N],
    };
}

/// The epilogue of one product of a batch.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    params: &'a GemmParams,
    /// Index of the product.
    batch: u32,
}

impl<'a> Epilogue<'a> {
    /// The epilogue of product `batch`.
    #[inline(always)]
    pub fn new(params: &'a GemmParams, batch: u32) -> Self {
        Epilogue { params, batch }
    }

    /// The values of C(row, col), C(row, col + 1), … for these sums over all of K.
    ///
    /// The thread that has an element's sum calls this, once for each element of C. At the
    /// edges it is also called for elements outside C, whose values are dropped; nothing is
    /// read for them.
    ///
    /// # Safety
    /// The addresses and strides in the parameters describe live allocations.
    #[inline(always)]
    pub unsafe fn apply<const N: usize>(&self, sums: [f32; N], row: u32, col: u32) -> [f32; N] {
        let (form, arguments) = (&self.params.form, &self.params.epilogue);
        let mut terms = Terms::ZERO;
        // SAFETY: masked to the rows and columns of C; the rest is the caller's duty.
        unsafe {
            if form.row_scale != 0 {
                terms.row_scale = [self.row_value(DType::F32, arguments.row_scale, row); N];
            }
            if form.col_scale != 0 {
                terms.col_scale = self.column_values(DType::F32, arguments.col_scale, col);
            }
            match form.bias {
                BiasAxis::None => {}
                BiasAxis::PerRow => {
                    terms.bias = [self.row_value(form.bias_type, arguments.bias, row); N];
                }
                BiasAxis::PerColumn => {
                    terms.bias = self.column_values(form.bias_type, arguments.bias, col);
                }
            }
            if !matches!(form.source, SourceUse::None) {
                terms.source = self.source(row, col);
            }
        }
        self.finish(self.combine(sums, &terms), &terms)
    }

    /// The address of the exponents of this product's lines: `lines` rows of A (operand 0), or
    /// columns of B (1).
    #[inline(always)]
    pub fn exponents(&self, operand: usize, lines: u32) -> u64 {
        let strides = [self.params.a.batch_stride, self.params.b.batch_stride];
        let matrix = if strides[operand] == 0 { 0 } else { self.batch };
        self.params.exponents[operand] + matrix as u64 * lines as u64 * 4
    }

    /// The sums of products of elements in two parts ([`f16x3`]) for row `row` and the columns
    /// from `col` on, from `sums`, the sums of products of their parts.
    ///
    /// # Safety
    /// The exponents are live.
    #[inline(always)]
    pub unsafe fn unscaled<const N: usize>(
        &self,
        mut sums: [f32; N],
        row: u32,
        col: u32,
    ) -> [f32; N] {
        let (of_rows, of_columns) = (
            self.exponents(0, self.params.m),
            self.exponents(1, self.params.n),
        );
        // SAFETY: masked to the rows and columns.
        let (of_row, of_columns): (f32, [f32; N]) = unsafe {
            (
                self.row_value(DType::F32, of_rows, row),
                self.column_values(DType::F32, of_columns, col),
            )
        };
        unroll!(I < 8, {
            if I < N {
                let exponent = of_row.to_bits() as i32 + of_columns[I].to_bits() as i32;
                sums[I] = f16x3::unscaled(sums[I], exponent);
            }
        });
        sums
    }

    /// α · r · c · sum + β·S + bias.
    #[inline(always)]
    pub fn combine<const N: usize>(&self, sums: [f32; N], terms: &Terms<N>) -> [f32; N] {
        let (form, arguments) = (&self.params.form, &self.params.epilogue);
        let mut values = sums;
        if form.scaled != 0 {
            values = times(values, [arguments.alpha; N]);
        }
        if form.row_scale != 0 {
            values = times(values, terms.row_scale);
        }
        if form.col_scale != 0 {
            values = times(values, terms.col_scale);
        }
        if matches!(form.source, SourceUse::Add) {
            unroll!(I < 8, {
                if I < N {
                    values[I] = fma(arguments.beta, terms.source[I], values[I]);
                }
            });
        }
        if !matches!(form.bias, BiasAxis::None) {
            unroll!(I < 8, {
                if I < N {
                    values[I] += terms.bias[I];
                }
            });
        }
        values
    }

    /// The activation of the values; where the source is a gate, the values times the
    /// activation of the source.
    #[inline(always)]
    pub fn finish<const N: usize>(&self, values: [f32; N], terms: &Terms<N>) -> [f32; N] {
        let (form, slope) = (&self.params.form, self.params.epilogue.slope);
        let is_gate = matches!(form.source, SourceUse::Gate);
        let activated = activate(
            form.activation,
            slope,
            if is_gate { terms.source } else { values },
        );
        if is_gate {
            times(values, activated)
        } else {
            activated
        }
    }

    /// The elements of the source; 0 outside C.
    ///
    /// # Safety
    /// See [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn source<const N: usize>(&self, row: u32, col: u32) -> [f32; N] {
        let dtype = self.params.form.source_type;
        let source = self.params.epilogue.source.of_batch(self.batch, dtype);
        let first = row as u64 * source.row_stride + col as u64 * source.col_stride;
        let mut values = [0.0; N];
        unroll!(I < 8, {
            if I < N && row < self.params.m && col + (I as u32) < self.params.n {
                let index = first + I as u64 * source.col_stride;
                let address = source.address + index * dtype.bytes() as u64;
                // SAFETY: inside the source, which has the shape of C.
                values[I] = unsafe { global::load_written_as(dtype, address) };
            }
        });
        values
    }

    /// The element for `row` of a vector with M elements; 0 past its end.
    ///
    /// # Safety
    /// The vector begins at `address` and has M elements of type `dtype`.
    #[inline(always)]
    pub unsafe fn row_value(&self, dtype: DType, address: u64, row: u32) -> f32 {
        if row < self.params.m {
            // SAFETY: inside the vector.
            unsafe { global::load_as(dtype, address + row as u64 * dtype.bytes() as u64) }
        } else {
            0.0
        }
    }

    /// The elements for `col`, `col + 1`, … of a vector with N elements; 0 past its end.
    ///
    /// # Safety
    /// The vector begins at `address` and has N elements of type `dtype`.
    #[inline(always)]
    pub unsafe fn column_values<const N: usize>(
        &self,
        dtype: DType,
        address: u64,
        col: u32,
    ) -> [f32; N] {
        let mut values = [0.0; N];
        unroll!(I < 8, {
            if I < N && col + (I as u32) < self.params.n {
                let offset = (col as u64 + I as u64) * dtype.bytes() as u64;
                // SAFETY: inside the vector.
                values[I] = unsafe { global::load_as(dtype, address + offset) };
            }
        });
        values
    }
}

/// Sums of a lane's eight values, element by element.
#[inline(always)]
pub fn plus(mut values: [f32; 8], addends: [f32; 8]) -> [f32; 8] {
    unroll!(I < 8, {
        values[I] += addends[I];
    });
    values
}

/// Products, element by element.
#[inline(always)]
pub fn times<const N: usize>(mut values: [f32; N], factors: [f32; N]) -> [f32; N] {
    unroll!(I < 8, {
        if I < N {
            values[I] *= factors[I];
        }
    });
    values
}
