//! Tensor maps: what TMA must know of a matrix to copy boxes of it.
//!
//! A map is 128 opaque bytes that the driver encodes from the matrix's base,
//! shape and pitch (CUDA driver API, "Tensor Map Object Management"). The
//! function is newer than `cust_raw`, so it is looked up by name. Elements
//! outside the matrix read as zeros and are not written.

use std::ffi::c_void;

use gpu_kernels::DType;

use super::libcuda;
use crate::error::Error;
use crate::operand::Operand;

/// An encoded map. The driver asks for 64-byte alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TensorMap([u8; TensorMap::BYTES]);

/// A matrix as TMA sees it, wherever it is; index 0 is the direction in which elements are
/// contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorMapSpec {
    /// Element type.
    pub(crate) dtype: DType,
    /// Elements in each direction.
    pub(crate) dims: [u64; 2],
    /// Bytes from one line of contiguous elements to the next: a multiple of
    /// 16, below 2⁴⁰.
    pub(crate) pitch_bytes: u64,
    /// Elements one copy moves in each direction, at most 256; as many bytes as
    /// the swizzle spans or fewer along the first.
    pub(crate) box_dims: [u32; 2],
    /// Bytes within which the swizzle permutes 16-byte chunks: 32, 64 or 128;
    /// 16 for none.
    pub(crate) swizzle_bytes: u32,
}

/// Values of the driver's enums (cuda.h).
mod cuda_h {
    pub(super) const TENSOR_MAP_DATA_TYPE_FLOAT16: u32 = 6;
    pub(super) const TENSOR_MAP_DATA_TYPE_FLOAT32: u32 = 7;
    pub(super) const TENSOR_MAP_DATA_TYPE_BFLOAT16: u32 = 9;
    pub(super) const TENSOR_MAP_INTERLEAVE_NONE: u32 = 0;
    pub(super) const TENSOR_MAP_SWIZZLE_NONE: u32 = 0;
    pub(super) const TENSOR_MAP_SWIZZLE_32B: u32 = 1;
    pub(super) const TENSOR_MAP_SWIZZLE_64B: u32 = 2;
    pub(super) const TENSOR_MAP_SWIZZLE_128B: u32 = 3;
    pub(super) const TENSOR_MAP_L2_PROMOTION_L2_128B: u32 = 2;
    pub(super) const TENSOR_MAP_FLOAT_OOB_FILL_NONE: u32 = 0;
}

/// `cuTensorMapEncodeTiled`.
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

impl TensorMap {
    /// Bytes of an encoded map.
    pub(crate) const BYTES: usize = 128;

    /// The encoded bytes.
    pub(crate) fn bytes(&self) -> &[u8; TensorMap::BYTES] {
        &self.0
    }
}

impl TensorMapSpec {
    /// Encodes the map for the matrix at device address `address`, a multiple
    /// of 16. `operand` is for the error.
    pub(crate) fn encode(&self, operand: Operand, address: u64) -> Result<TensorMap, Error> {
        let encode =
            libcuda::symbol(c"cuTensorMapEncodeTiled").ok_or_else(|| Error::DriverTooOld {
                driver: super::gpu::driver_version(),
                lacks: "function cuTensorMapEncodeTiled".into(),
            })?;
        // SAFETY: the signature is that of the driver API since CUDA 12.0.
        let encode = unsafe { std::mem::transmute::<*const c_void, EncodeTiled>(encode) };
        let data_type = match self.dtype {
            DType::F16 => cuda_h::TENSOR_MAP_DATA_TYPE_FLOAT16,
            DType::Bf16 => cuda_h::TENSOR_MAP_DATA_TYPE_BFLOAT16,
            DType::F32 | DType::Tf32 => cuda_h::TENSOR_MAP_DATA_TYPE_FLOAT32,
            // Stored as f32, rounded on the way into shared memory.
        };
        let swizzle = match self.swizzle_bytes {
            128 => cuda_h::TENSOR_MAP_SWIZZLE_128B,
            64 => cuda_h::TENSOR_MAP_SWIZZLE_64B,
            32 => cuda_h::TENSOR_MAP_SWIZZLE_32B,
            _ => cuda_h::TENSOR_MAP_SWIZZLE_NONE,
        };
        let mut map = TensorMap([0; TensorMap::BYTES]);
        let element_strides = [1, 1];
        // SAFETY: all arrays have `rank` elements (the strides one fewer) and
        // outlive the call; the address is only encoded.
        let code = unsafe {
            encode(
                (&raw mut map).cast(),
                data_type,
                2,
                address as *mut c_void,
                self.dims.as_ptr(),
                &self.pitch_bytes,
                self.box_dims.as_ptr(),
                element_strides.as_ptr(),
                cuda_h::TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                // 256 bytes were a fifth slower where the pitch is no multiple of 128,
                // and no faster elsewhere (`docs/perf-log.md`).
                cuda_h::TENSOR_MAP_L2_PROMOTION_L2_128B,
                cuda_h::TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        match code {
            0 => Ok(map),
            code => Err(Error::TensorMap {
                operand,
                map: format!("{self:?} at {address:#x}"),
                code,
            }),
        }
    }
}
