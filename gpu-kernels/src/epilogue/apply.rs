//! The formula, for the sums that one thread holds.

use super::activation::activate;
use super::form::{BiasAxis, Form, SourceUse};
use crate::dtype::DType;
use crate::isa::arithmetic::fma;
use crate::isa::global;
use crate::isa::hint::compute_here;
use crate::problem::GemmParams;
use crate::unroll::unroll;

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

    #[inline(always)]
    fn form(&self) -> &'a Form {
        &self.params.form
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
        // SAFETY: the caller's duty.
        unsafe {
            let source = self.source(row, col);
            let scaled = self.scale(sums, row, col);
            let values = self.add_bias(self.add_source(scaled, source), row, col);
            self.activate(values, source)
        }
    }

    /// α · rᵢ · cⱼ · sum.
    ///
    /// # Safety
    /// See [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn scale<const N: usize>(&self, sums: [f32; N], row: u32, col: u32) -> [f32; N] {
        let (form, arguments) = (self.form(), &self.params.epilogue);
        let mut values = sums;
        if form.scaled != 0 {
            values = times(values, [arguments.alpha; N]);
        }
        if form.row_scale != 0 {
            // SAFETY: masked to the rows of C.
            let scale = unsafe { self.row_value(DType::F32, arguments.row_scale, row) };
            values = times(values, [scale; N]);
        }
        if form.col_scale != 0 {
            // SAFETY: masked to the columns of C.
            let scales = unsafe { self.column_values(DType::F32, arguments.col_scale, col) };
            values = times(values, scales);
        }
        values
    }

    /// The elements of the source, or zeros.
    ///
    /// # Safety
    /// See [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn source<const N: usize>(&self, row: u32, col: u32) -> [f32; N] {
        let mut values = [0.0; N];
        if matches!(self.form().source, SourceUse::None) {
            return values;
        }
        let source = &self.params.epilogue.source;
        let bytes = self.form().source_type.bytes() as u64;
        let first = self.batch as u64 * source.batch_stride
            + row as u64 * source.row_stride
            + col as u64 * source.col_stride;
        unroll!(I < 8, {
            if I < N && row < self.params.m && col + (I as u32) < self.params.n {
                let address = source.address + (first + I as u64 * source.col_stride) * bytes;
                // SAFETY: inside the source, which has the shape of C.
                values[I] = unsafe { global::load_written_as(self.form().source_type, address) };
            }
        });
        values
    }

    /// β·S added.
    #[inline(always)]
    pub fn add_source<const N: usize>(&self, values: [f32; N], source: [f32; N]) -> [f32; N] {
        let mut values = values;
        if matches!(self.form().source, SourceUse::Add) {
            unroll!(I < 8, {
                if I < N {
                    values[I] = fma(self.params.epilogue.beta, source[I], values[I]);
                }
            });
        }
        values
    }

    /// The bias added.
    ///
    /// # Safety
    /// See [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn add_bias<const N: usize>(&self, values: [f32; N], row: u32, col: u32) -> [f32; N] {
        let (form, bias) = (self.form(), self.params.epilogue.bias);
        // SAFETY: masked to the rows and columns of C.
        unsafe {
            match form.bias {
                BiasAxis::None => values,
                BiasAxis::PerRow => plus(values, [self.row_value(form.output, bias, row); N]),
                BiasAxis::PerColumn => plus(values, self.column_values(form.output, bias, col)),
            }
        }
    }

    /// The activation of the values; where the source is a gate, the values times the
    /// activation of the source.
    #[inline(always)]
    pub fn activate<const N: usize>(&self, values: [f32; N], source: [f32; N]) -> [f32; N] {
        let slope = self.params.epilogue.slope;
        // Each use reads the activation anew, or LLVM would compile the whole epilogue of a
        // thread once for each activation.
        match self.form().source {
            SourceUse::Gate => times(values, activate(self.form().activation, slope, source)),
            _ => activate(self.form().activation, slope, values),
        }
    }

    /// The element for `row` of a vector with M elements; 0 past its end.
    ///
    /// # Safety
    /// The vector begins at `address` and has M elements of type `dtype`.
    #[inline(always)]
    pub unsafe fn row_value(&self, dtype: DType, address: u64, row: u32) -> f32 {
        if compute_here(row) < self.params.m {
            // SAFETY: inside the vector.
            unsafe { global::load_as(dtype, address + row as u64 * dtype.bytes() as u64) }
        } else {
            0.0
        }
    }

    /// The elements for `col`, `col + 1`, … of a vector with N elements; 0 past its end.
    ///
    /// # Safety
    /// The vector begins at `address` and has as many elements of type `dtype` as B has
    /// columns.
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

/// Products, element by element.
#[inline(always)]
fn times<const N: usize>(mut values: [f32; N], factors: [f32; N]) -> [f32; N] {
    unroll!(I < 8, {
        if I < N {
            values[I] *= factors[I];
        }
    });
    values
}

/// Sums, element by element.
#[inline(always)]
fn plus<const N: usize>(mut values: [f32; N], terms: [f32; N]) -> [f32; N] {
    unroll!(I < 8, {
        if I < N {
            values[I] += terms[I];
        }
    });
    values
}
