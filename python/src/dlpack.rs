//! The parts of DLPack's C interface (`dlpack.h`, version 1.3) that reading an array needs.
//!
//! No crate has [`ExchangeApi`] yet. Through it a framework describes a tensor and its
//! current stream to C code, at a cost of nanoseconds.

use std::ffi::{CStr, c_int, c_void};

use pyo3::ffi::PyObject;

/// `DLDeviceType` of ordinary host memory.
pub const CPU: i32 = 1;
/// `DLDeviceType` of CUDA device memory.
pub const CUDA: i32 = 2;
/// `DLDeviceType` of pinned host memory.
pub const CUDA_HOST: i32 = 3;
/// `DLDeviceType` of CUDA managed memory.
pub const CUDA_MANAGED: i32 = 13;

/// `DLDataTypeCode` of IEEE floating point.
pub const FLOAT: u8 = 2;
/// `DLDataTypeCode` of bfloat16.
pub const BFLOAT: u8 = 4;

/// The major version of the structures below.
pub const MAJOR: u32 = 1;

/// `DLDevice`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Device {
    /// `DLDeviceType`.
    pub kind: i32,
    /// Index of the device among those of its kind.
    pub index: i32,
}

/// `DLDataType`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Elements of a vector type; 1 for scalars.
    pub lanes: u16,
}

/// `DLTensor`. Strides count elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tensor {
    /// The allocation.
    pub data: *mut c_void,
    /// Where it is.
    pub device: Device,
    /// Number of dimensions.
    pub rank: i32,
    /// Type of an element.
    pub element: DataType,
    /// `rank` extents.
    pub shape: *const i64,
    /// `rank` strides; null for a dense row-major tensor, before DLPack 1.2.
    pub strides: *const i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// The name of the capsule that `__dlpack__()` returns, until a consumer owns it.
pub const CAPSULE: &CStr = c"dltensor";

/// The name of the capsule in the attribute `__dlpack_c_exchange_api__` of a type.
pub const EXCHANGE_CAPSULE: &CStr = c"dlpack_exchange_api";

/// `DLPackExchangeAPI`. It lives as long as the process.
#[repr(C)]
pub struct ExchangeApi {
    /// `DLPackVersion`: major and minor.
    pub version: [u32; 2],
    _older: *const c_void,
    _allocate: *const c_void,
    _from_object: *const c_void,
    _to_object: *const c_void,
    /// Describes an object of the type that has this interface. The description is valid
    /// until control returns to Python. Returns 0, or -1 with a Python exception set.
    pub describe: Option<unsafe extern "C" fn(*mut PyObject, *mut Tensor) -> c_int>,
    /// The framework's current stream on a device. Returns 0, or -1 with a Python exception
    /// set.
    pub current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}
