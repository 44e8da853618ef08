//! From f32 accumulators to elements of C.
//!
//! The kernel's [`Epilogue`], a type parameter, computes each value of C from a sum;
//! conversion and store are the same for all epilogues.
//!
//! # A new epilogue
//!
//! 1. Write a type that implements [`Epilogue`], and add its parameters to [`GemmParams`].
//! 2. List kernels with it as their last type parameter in `entry.rs`.

use crate::dtype::DType;
use crate::dtype::ElementType;
use crate::element::F32;
use crate::isa::hint::compute_here_u64;
use crate::isa::{convert, global};
use crate::problem::{GemmParams, OutputType};
use crate::unroll::unroll;

/// The computation on the sums before they become elements of C, for example scaling, a
/// bias or an activation. It is a type parameter of every kernel.
pub trait Epilogue {
    /// The epilogue of one launch.
    fn new(params: &GemmParams) -> Self;

    /// The values of C(row, col), C(row, col + 1), … for these sums over all of K.
    ///
    /// The thread that has an element's sum calls this, once for each element of C. At the
    /// edges it is also called for elements outside C, whose values are dropped, so an
    /// implementation must mask its reads of memory.
    fn apply<const N: usize>(&self, sums: [f32; N], row: u32, col: u32) -> [f32; N];
}

/// C = A · B.
pub struct Identity;

impl Epilogue for Identity {
    #[inline(always)]
    fn new(_: &GemmParams) -> Self {
        Identity
    }

    #[inline(always)]
    fn apply<const N: usize>(&self, sums: [f32; N], _: u32, _: u32) -> [f32; N] {
        sums
    }
}

/// Stores C(row, col), in the output type of the launch.
///
/// # Safety
/// `row < m` and `col < n`, and `params.c` describes a live allocation.
#[inline(always)]
pub unsafe fn store<T: ElementType>(params: &GemmParams, row: u32, col: u32, value: f32) {
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
pub fn pack_pair<T: ElementType>(low: f32, high: f32) -> u32 {
    match T::DTYPE {
        DType::Bf16 => convert::bf16x2_from_f32(low, high),
        _ => convert::f16x2_from_f32(low, high),
    }
}

/// Stores the part of a 4×4 piece of C, first element (row, col), that is inside the
/// matrix, in the output type of the launch. Four elements are stored as one vector where
/// C is contiguous along a row or a column, and aligned.
///
/// # Safety
/// `params.c` describes a live allocation.
#[inline(always)]
pub unsafe fn store_4x4<T: ElementType>(
    params: &GemmParams,
    row: u32,
    col: u32,
    values: &[[f32; 4]; 4],
) {
    // SAFETY: the caller's duty.
    unsafe {
        match params.output {
            OutputType::F32 => store_4x4_as::<F32>(params, row, col, values),
            OutputType::Input => store_4x4_as::<T>(params, row, col, values),
        }
    }
}

/// # Safety
/// See [`store_4x4`]; the elements of the matrix have type `C`.
#[inline(always)]
unsafe fn store_4x4_as<C: ElementType>(
    params: &GemmParams,
    row: u32,
    col: u32,
    values: &[[f32; 4]; 4],
) {
    let bytes = C::DTYPE.bytes() as u64;
    let row_bytes = compute_here_u64(params.c.row_stride) * bytes;
    let col_bytes = compute_here_u64(params.c.col_stride) * bytes;
    let address = params.c.address + row as u64 * row_bytes + col as u64 * col_bytes;
    let inside = row + 4 <= params.m && col + 4 <= params.n;
    // All four vectors are aligned if the piece's origin and its pitch are.
    let aligned = |pitch: u64| (address | pitch).is_multiple_of(4 * bytes);
    if inside && params.c.col_stride == 1 && aligned(row_bytes) {
        unroll!(R < 4, {
            // SAFETY: inside C, aligned.
            unsafe { store_vector::<C>(address + R as u64 * row_bytes, values[R]) };
        });
    } else if inside && params.c.row_stride == 1 && aligned(col_bytes) {
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
