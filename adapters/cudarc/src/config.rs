//! [`MatmulConfig`]: the fields of cudarc's cuBLASLt `Matmul`, and the layouts that they
//! mean.

use std::ffi::c_int;

use tilewise::{Activation as Tilewise, Layout};

use crate::error::Error;

/// The fields of `cudarc::cublaslt::MatmulConfig`, with the same names, types and meaning.
///
/// The product is C ← act(alpha · op(A) · op(B) + beta · C + bias), with op(A) m×k, op(B) k×n
/// and C m×n. Matrices are column-major: element (i, j) of a stored matrix is
/// `i + j · ld` elements after the first. Strides and leading dimensions count elements.
///
/// Two fields accept more than cuBLASLt does: `transc`, and a stride of 0.
#[derive(Clone, Copy, Debug)]
pub struct MatmulConfig {
    /// Whether A is stored transposed, as k×m.
    pub transa: bool,
    /// Whether B is stored transposed, as n×k.
    pub transb: bool,
    /// Whether C is stored transposed, as n×m. (cuBLASLt accepts `false` only.)
    pub transc: bool,
    /// Rows of op(A) and C.
    pub m: u64,
    /// Columns of op(B) and C.
    pub n: u64,
    /// Columns of op(A) and rows of op(B).
    pub k: u64,
    /// The factor of the product.
    pub alpha: f32,
    /// Leading dimension of A: at least the rows of A as stored.
    pub lda: i64,
    /// Leading dimension of B: at least the rows of B as stored.
    pub ldb: i64,
    /// The factor of the old values of C. With 0, they are not read.
    pub beta: f32,
    /// Leading dimension of C: at least the rows of C as stored.
    pub ldc: i64,
    /// Elements between one A of a batch and the next; 0 repeats one A. Needed with
    /// `batch_size`, and not read without.
    pub stride_a: Option<i64>,
    /// The same for B.
    pub stride_b: Option<i64>,
    /// The same for C, whose matrices must not overlap.
    pub stride_c: Option<i64>,
    /// Elements between one bias of a batch and the next. `None` means 0: one bias for all.
    pub stride_bias: Option<i64>,
    /// Number of products. `None` means one.
    pub batch_size: Option<c_int>,
}

/// The activations of cudarc's cuBLASLt `Matmul`. [`Blas::run`](crate::Blas::run) takes any of
/// tilewise's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// GELU by its tanh approximation, as in cuBLASLt.
    Gelu,
}

impl From<Activation> for Tilewise {
    fn from(activation: Activation) -> Tilewise {
        match activation {
            Activation::Relu => Tilewise::Relu,
            Activation::Gelu => Tilewise::GeluTanh,
        }
    }
}

/// The matrices of a [`MatmulConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layouts {
    /// op(A), m×k.
    pub a: Layout,
    /// op(B), k×n.
    pub b: Layout,
    /// C, m×n.
    pub c: Layout,
    /// The bias, m×1, once if all products share it.
    pub bias: Layout,
}

impl MatmulConfig {
    /// The layouts of the matrices.
    pub(crate) fn layouts(&self) -> Result<Layouts, Error> {
        let m = size("m", self.m)?;
        let n = size("n", self.n)?;
        let k = size("k", self.k)?;
        let layouts = Layouts {
            a: column_major(m, k, self.transa, "lda", self.lda)?,
            b: column_major(k, n, self.transb, "ldb", self.ldb)?,
            c: column_major(m, n, self.transc, "ldc", self.ldc)?,
            bias: Layout::row_major(m, 1),
        };
        let Some(batches) = self.batch_size else {
            return Ok(layouts);
        };
        let batches = match usize::try_from(batches) {
            Ok(batches) if batches > 0 => batches,
            _ => {
                return Err(argument(
                    "batch_size",
                    batches,
                    "at least 1, or None for one",
                ));
            }
        };
        let bias = match self.stride_bias {
            None | Some(0) => layouts.bias,
            stride => batched(layouts.bias, batches, "stride_bias", stride)?,
        };
        Ok(Layouts {
            a: batched(layouts.a, batches, "stride_a", self.stride_a)?,
            b: batched(layouts.b, batches, "stride_b", self.stride_b)?,
            c: batched(layouts.c, batches, "stride_c", self.stride_c)?,
            bias,
        })
    }
}

/// A dimension as a `usize`.
fn size(name: &'static str, value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| argument(name, value, format!("at most {}", usize::MAX)))
}

/// `rows`×`cols` in column-major order, or stored transposed, which is row-major order.
fn column_major(
    rows: usize,
    cols: usize,
    transposed: bool,
    name: &'static str,
    leading: i64,
) -> Result<Layout, Error> {
    let stored_rows = if transposed { cols } else { rows };
    let stride = match usize::try_from(leading) {
        Ok(stride) if stride >= stored_rows.max(1) => stride,
        _ => {
            let accepted = format!("at least {}, the rows as stored", stored_rows.max(1));
            return Err(argument(name, leading, accepted));
        }
    };
    let (row_stride, col_stride) = if transposed { (stride, 1) } else { (1, stride) };
    Ok(Layout {
        row_stride,
        col_stride,
        ..Layout::row_major(rows, cols)
    })
}

/// `layout`, `batches` times.
fn batched(
    layout: Layout,
    batches: usize,
    name: &'static str,
    stride: Option<i64>,
) -> Result<Layout, Error> {
    let accepted = "Some(stride >= 0) with batch_size";
    let stride = stride.ok_or_else(|| argument(name, "None", accepted))?;
    let elements = usize::try_from(stride).map_err(|_| argument(name, stride, accepted))?;
    Ok(layout.batched_by(batches, elements))
}

/// The error for a field that is out of range.
fn argument(name: &'static str, found: impl ToString, accepted: impl Into<String>) -> Error {
    Error::Argument {
        argument: name,
        found: found.to_string(),
        accepted: accepted.into(),
    }
}

#[cfg(test)]
mod tests;
