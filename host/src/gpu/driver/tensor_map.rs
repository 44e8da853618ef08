//! Encodes tensor maps.
//!
//! The driver's function is newer than `cust_raw`, so both bindings look it up by name.

use std::ffi::c_void;

use gpu_kernels::DType;

use super::{driver_version, libcuda};
use crate::error::Error;
use crate::gpu::tensor_map::{EncodedMap, TensorMapSpec};
use crate::operand::Operand;

/// Values of the driver's enums (cuda.h).
mod cuda_h {
    pub(super) const TENSOR_MAP_DATA_TYPE_FLOAT16: u32 = 6;
    pub(super) const TENSOR_MAP_DATA_TYPE_FLOAT32: u32 = 7;
    pub(super) const TENSOR_MAP_DATA_TYPE_BFLOAT16: u32 = 9;
    pub(super) const TENSOR_MAP_DATA_TYPE_TFLOAT32: u32 = 11;
    pub(super) const TENSOR_MAP_INTERLEAVE_NONE: u32 = 0;
    pub(super) const TENSOR_MAP_SWIZZLE_NONE: u32 = 0;
    pub(super) const TENSOR_MAP_SWIZZLE_32B: u32 = 1;
    pub(super) const TENSOR_MAP_SWIZZLE_64B: u32 = 2;
    pub(super) const TENSOR_MAP_SWIZZLE_128B: u32 = 3;
    pub(super) const TENSOR_MAP_L2_PROMOTION_L2_128B: u32 = 2;
    pub(super) const TENSOR_MAP_FLOAT_OOB_FILL_NONE: u32 = 0;
}

/// The signature of `cuTensorMapEncodeTiled`.
type EncodeTiled = unsafe extern "C" fn(
    map: *mut c_void,
    data_type: u32,
    rank: u32,
    address: *mut c_void,
    dims: *const u64,
    strides: *const u64,
    box_dims: *const u32,
    element_strides: *const u32,
    interleave: u32,
    swizzle: u32,
    l2_promotion: u32,
    oob_fill: u32,
) -> u32;

/// Encodes the map of `spec` for the matrix at device address `address`, a multiple
/// of 16. `operand` is only for the error.
pub(super) fn encode(
    operand: Operand,
    spec: &TensorMapSpec,
    address: u64,
) -> Result<EncodedMap, Error> {
    // SAFETY: the driver API has had this signature since CUDA 12.0.
    let encode = unsafe { libcuda::function::<EncodeTiled>(c"cuTensorMapEncodeTiled") };
    let encode = encode.ok_or_else(|| Error::DriverTooOld {
        driver: driver_version(),
        lacks: "function cuTensorMapEncodeTiled".into(),
    })?;
    let data_type = match spec.dtype {
        DType::F16 => cuda_h::TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => cuda_h::TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::F32 | DType::F16x3 => cuda_h::TENSOR_MAP_DATA_TYPE_FLOAT32,
        // The copy engine rounds f32 to TF32, to nearest even (`docs/perf-log.md`, "TMA rounds to
        // TF32").
        DType::Tf32 => cuda_h::TENSOR_MAP_DATA_TYPE_TFLOAT32,
    };
    let swizzle = match spec.swizzle_bytes {
        128 => cuda_h::TENSOR_MAP_SWIZZLE_128B,
        64 => cuda_h::TENSOR_MAP_SWIZZLE_64B,
        32 => cuda_h::TENSOR_MAP_SWIZZLE_32B,
        _ => cuda_h::TENSOR_MAP_SWIZZLE_NONE,
    };
    let mut map = EncodedMap([0; 16]);
    // A box has one plane.
    let planes = spec
        .planes
        .map_or((1, 0), |planes| (planes.count, planes.pitch_bytes));
    let dims = [spec.dims[0], spec.dims[1], planes.0];
    let strides = [spec.pitch_bytes, planes.1];
    let box_dims = [spec.box_dims[0], spec.box_dims[1], 1];
    let element_strides = [1, 1, 1];
    // SAFETY: all arrays have three elements (the strides one fewer) and
    // outlive the call; the address is only encoded.
    let code = unsafe {
        encode(
            (&raw mut map).cast(),
            data_type,
            if spec.planes.is_some() { 3 } else { 2 },
            address as *mut c_void,
            dims.as_ptr(),
            strides.as_ptr(),
            box_dims.as_ptr(),
            element_strides.as_ptr(),
            cuda_h::TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            // 256 bytes were a fifth slower where the pitch is not a multiple of 128,
            // and no faster elsewhere (`docs/perf-log.md`).
            cuda_h::TENSOR_MAP_L2_PROMOTION_L2_128B,
            cuda_h::TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    match code {
        0 => Ok(map),
        code => Err(Error::TensorMap {
            operand,
            map: format!("{spec:?} at {address:#x}"),
            code,
        }),
    }
}
