//! From f32 accumulators to elements of C.

use core::marker::PhantomData;

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

/// Stores neighbouring columns two at a time, as tensor-core accumulators hold
/// them, and masks the edge.
pub struct PairStore<'a, T> {
    params: &'a GemmParams,
    /// Every pair that starts at an even column is one aligned access.
    packed: bool,
    element: PhantomData<T>,
}

impl<'a, T: Element> PairStore<'a, T> {
    /// Looks once at how C lies in memory.
    #[inline(always)]
    pub fn new(params: &'a GemmParams) -> Self {
        let c = &params.c;
        let bytes = match params.output {
            OutputType::F32 => 4,
            OutputType::Input => T::DTYPE.bytes() as u64,
        };
        let packed =
            c.col_stride == 1 && c.row_stride.is_multiple_of(2) && c.address & (2 * bytes - 1) == 0;
        PairStore {
            params,
            packed,
            element: PhantomData,
        }
    }

    /// Stores C(row, col) and C(row, col + 1), as far as they exist.
    ///
    /// # Safety
    /// `params.c` describes a live allocation; `col` is even.
    #[inline(always)]
    pub unsafe fn store(&self, row: u32, col: u32, low: f32, high: f32) {
        let params = self.params;
        if row >= params.m || col >= params.n {
            return;
        }
        // SAFETY: the caller's duty, and the masks.
        unsafe {
            if self.packed && col + 1 < params.n {
                let index = row as u64 * params.c.row_stride + col as u64;
                if T::DTYPE.bytes() == 4 || params.output as u32 == OutputType::F32 as u32 {
                    let address = params.c.address + 4 * index;
                    global::store_u32x2(address, [low.to_bits(), high.to_bits()]);
                } else {
                    global::store_u32(params.c.address + 2 * index, pack::<T>(low, high));
                }
            } else {
                store::<T>(params, row, col, low);
                if col + 1 < params.n {
                    store::<T>(params, row, col + 1, high);
                }
            }
        }
    }
}
