//! From f32 accumulators to elements of C.

use crate::element::Element;
use crate::isa::{convert, global};
use crate::problem::{DType, GemmParams, OutputType};

/// Stores C(row, col), in the output type of the launch.
///
/// # Safety
/// `row < m` and `col < n`, and `params.c` describes a live allocation.
#[inline(always)]
pub unsafe fn store<T: Element>(params: &GemmParams, row: u32, col: u32, value: f32) {
    let c = &params.c;
    let index = row as u64 * c.row_stride + col as u64 * c.col_stride;
    // SAFETY: the caller's duty.
    unsafe {
        match params.output {
            OutputType::F32 => global::store_u32(c.address + 4 * index, value.to_bits()),
            OutputType::Input if T::DTYPE.bytes() == 4 => {
                global::store_u32(c.address + 4 * index, T::from_f32(value))
            }
            OutputType::Input => global::store_u16(c.address + 2 * index, T::from_f32(value)),
        }
    }
}

/// Two 16-bit elements in one register, `low` at the lower address.
#[inline(always)]
pub fn pack<T: Element>(low: f32, high: f32) -> u32 {
    match T::DTYPE {
        DType::Bf16 => convert::bf16x2_from_f32(low, high),
        _ => convert::f16x2_from_f32(low, high),
    }
}
