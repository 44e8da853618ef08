//! Conversion to C's type, and stores from registers.

use crate::dtype::{DType, ElementType};
use crate::element::{Bf16, F16, F32};
use crate::isa::hint::{compute_here_u64, compute_late};
use crate::isa::{convert, global};
use crate::problem::GemmParams;
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// C of product `batch`, as if it were the only one.
#[inline(always)]
pub fn c_of(params: &GemmParams, batch: u32) -> TensorRef {
    params.c.of_batch(compute_late(batch), params.form.output)
}

/// Stores element (row, col) of C, in the output type of the launch. `c` is [`c_of`] a
/// product.
///
/// # Safety
/// The element is inside `c`, which describes a live allocation.
#[inline(always)]
pub unsafe fn store(params: &GemmParams, c: &TensorRef, row: u32, col: u32, value: f32) {
    let index = row as u64 * c.row_stride + col as u64 * c.col_stride;
    // SAFETY: the caller's duty.
    unsafe {
        match params.form.output {
            DType::F16 => global::store_u16(c.address + 2 * index, F16::from_f32(value)),
            DType::Bf16 => global::store_u16(c.address + 2 * index, Bf16::from_f32(value)),
            _ => global::store_u32(c.address + 4 * index, value.to_bits()),
        }
    }
}

/// Two elements of a 16-bit type in one register, `low` at the lower address.
#[inline(always)]
pub fn pack_pair(dtype: DType, low: f32, high: f32) -> u32 {
    match dtype {
        DType::Bf16 => convert::bf16x2_from_f32(low, high),
        _ => convert::f16x2_from_f32(low, high),
    }
}

/// [`pack_pair`] for sm_75, which converts one value at a time, and to bf16 in integer
/// arithmetic.
#[inline(always)]
pub fn pack_pair_sm75(dtype: DType, low: f32, high: f32) -> u32 {
    match dtype {
        DType::Bf16 => Bf16::from_f32(low) | Bf16::from_f32(high) << 16,
        _ => F16::from_f32(low) | F16::from_f32(high) << 16,
    }
}

/// Stores the part of a 4×4 piece of C, first element (row, col), that is inside the
/// matrix, in the output type of the launch. Four elements are stored as one vector where
/// C is contiguous along a row or a column, and aligned. `c` is [`c_of`] a product.
///
/// # Safety
/// `c` describes a live allocation.
#[inline(always)]
pub unsafe fn store_4x4(
    params: &GemmParams,
    c: &TensorRef,
    row: u32,
    col: u32,
    values: &[[f32; 4]; 4],
) {
    // SAFETY: the caller's duty.
    unsafe {
        match params.form.output {
            DType::F16 => store_4x4_as::<F16>(params, c, row, col, values),
            DType::Bf16 => store_4x4_as::<Bf16>(params, c, row, col, values),
            _ => store_4x4_as::<F32>(params, c, row, col, values),
        }
    }
}

/// # Safety
/// See [`store_4x4`]; the elements of the matrix have type `C`.
#[inline(always)]
unsafe fn store_4x4_as<C: ElementType>(
    params: &GemmParams,
    c: &TensorRef,
    row: u32,
    col: u32,
    values: &[[f32; 4]; 4],
) {
    let bytes = C::DTYPE.bytes() as u64;
    let row_bytes = compute_here_u64(c.row_stride) * bytes;
    let col_bytes = compute_here_u64(c.col_stride) * bytes;
    let address = c.address + row as u64 * row_bytes + col as u64 * col_bytes;
    let inside = row + 4 <= params.m && col + 4 <= params.n;
    // All four vectors are aligned if the piece's origin and its pitch are.
    let aligned = |pitch: u64| (address | pitch).is_multiple_of(4 * bytes);
    if inside && c.col_stride == 1 && aligned(row_bytes) {
        unroll!(R < 4, {
            // SAFETY: inside C, aligned.
            unsafe { store_vector::<C>(address + R as u64 * row_bytes, values[R]) };
        });
    } else if inside && c.row_stride == 1 && aligned(col_bytes) {
        unroll!(J < 4, {
            let column = [values[0][J], values[1][J], values[2][J], values[3][J]];
            // SAFETY: inside C, aligned.
            unsafe { store_vector::<C>(address + J as u64 * col_bytes, column) };
        });
    } else {
        unroll!(R < 4, {
            unroll!(J < 4, {
                if row + (R as u32) < params.m && col + (J as u32) < params.n {
                    let address = address + R as u64 * row_bytes + J as u64 * col_bytes;
                    let bits = C::from_f32(values[R][J]);
                    // SAFETY: inside C.
                    unsafe {
                        if bytes == 4 {
                            global::store_u32(address, bits)
                        } else {
                            global::store_u16(address, bits)
                        }
                    }
                }
            });
        });
    }
}

/// Stores four adjacent elements of C.
///
/// # Safety
/// `address` is writable and aligned to four elements.
#[inline(always)]
unsafe fn store_vector<C: ElementType>(address: u64, [x, y, z, w]: [f32; 4]) {
    let (x, y, z, w) = (
        C::from_f32(x),
        C::from_f32(y),
        C::from_f32(z),
        C::from_f32(w),
    );
    // SAFETY: the caller's duty.
    unsafe {
        if C::DTYPE.bytes() == 4 {
            global::store_u32x4(address, [x, y, z, w])
        } else {
            global::store_u32x2(address, [x | y << 16, z | w << 16])
        }
    }
}
