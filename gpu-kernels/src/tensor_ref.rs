//! [`TensorRef`]: where the elements of an operand lie.

use crate::dtype::DType;
use crate::isa::hint::compute_late_u64;

/// A batch of matrices in device memory: element `(row, col)` of matrix `batch` lies at
/// `address + (batch · batch_stride + row · row_stride + col · col_stride) ·
/// size_of(element)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TensorRef {
    /// Device address of element (0, 0) of the first matrix.
    pub address: u64,
    /// Elements between (r, c) and (r + 1, c). Zero repeats a row (inputs only).
    pub row_stride: u64,
    /// Elements between (r, c) and (r, c + 1). Zero repeats a column (inputs only).
    pub col_stride: u64,
    /// Elements from one matrix to the next. Zero repeats the matrix (inputs only).
    pub batch_stride: u64,
}

impl TensorRef {
    /// No matrix.
    pub const NONE: TensorRef = TensorRef {
        address: 0,
        row_stride: 0,
        col_stride: 0,
        batch_stride: 0,
    };

    /// Matrix `batch`, whose elements have type `dtype`.
    #[inline(always)]
    pub fn of_batch(self, batch: u32, dtype: DType) -> TensorRef {
        let offset = batch as u64 * compute_late_u64(self.batch_stride) * dtype.bytes() as u64;
        TensorRef {
            address: self.address + offset,
            ..self
        }
    }
}
