//! The binding by a table of function pointers, each looked up on its first call.
//!
//! A `CUresult` is a number here, so a code that is newer than this file is no undefined
//! behaviour, and a function that the driver lacks is a code too
//! ([`Entry::get`](crate::gpu::driver::libcuda::Entry::get)).

#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "the driver's own names"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::error::Error;
use crate::gpu::driver::failure::check;
use crate::gpu::driver::libcuda::Entry;

pub type CUresult = u32;
pub type CUdevice = c_int;
pub type CUdeviceptr = u64;
pub type CUdevice_attribute = c_uint;
pub type CUfunction_attribute = c_uint;
pub type CUjit_option = c_uint;
pub type CUstreamCaptureStatus = c_uint;

macro_rules! handles {
    ($($handle:ident = *mut $opaque:ident;)*) => {$(
        #[repr(C)]
        #[derive(Debug)]
        pub struct $opaque([u8; 0]);
        pub type $handle = *mut $opaque;
    )*};
}

handles! {
    CUcontext = *mut CUctx_st;
    CUmodule = *mut CUmod_st;
    CUfunction = *mut CUfunc_st;
    CUstream = *mut CUstream_st;
    CUevent = *mut CUevent_st;
}

macro_rules! constants {
    ($($set:ident: $type:ty { $($name:ident = $value:literal,)* })*) => {$(
        pub mod $set {
            $(pub const $name: $type = $value;)*
        }
    )*};
}

// From cuda.h.
constants! {
    cudaError_enum: super::CUresult {
        CUDA_SUCCESS = 0,
        CUDA_ERROR_OUT_OF_MEMORY = 2,
        CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
        CUDA_ERROR_INVALID_PTX = 218,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
        CUDA_ERROR_NOT_READY = 600,
    }
    CUdevice_attribute_enum: super::CUdevice_attribute {
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    }
    CUfunction_attribute_enum: super::CUfunction_attribute {
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    }
    CUjit_option_enum: super::CUjit_option {
        CU_JIT_ERROR_LOG_BUFFER = 5,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    }
    CUstreamCaptureStatus_enum: super::CUstreamCaptureStatus {
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
    }
}

pub const CU_EVENT_DEFAULT: c_uint = 0;
pub const CU_EVENT_DISABLE_TIMING: c_uint = 2;

/// The number of a `CUresult`.
pub fn code(result: CUresult) -> u32 {
    result
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
        pub unsafe fn $name($($argument: $type),*) -> CUresult {
            static ENTRY: Entry<unsafe extern "C" fn($($type),*) -> CUresult> =
                // SAFETY: cuda.h has this signature.
                unsafe { Entry::new(concat!(stringify!($name), "\0")) };
            match ENTRY.get() {
                // SAFETY: the caller's arguments, passed on.
                Ok(function) => unsafe { function($($argument),*) },
                Err(code) => code,
            }
        }
    )*};
}

// The sections of the driver API, in its order.
functions! {
    cuInit(flags: c_uint);

    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, bytes: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxSetCurrent(context: CUcontext);

    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        option_count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    cuMemsetD16Async(address: CUdeviceptr, value: u16, count: usize, stream: CUstream);
    cuMemsetD32Async(address: CUdeviceptr, value: u32, count: usize, stream: CUstream);
    cuMemsetD2D16Async(
        address: CUdeviceptr,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD2D32Async(
        address: CUdeviceptr,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: CUstream,
    );

    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamGetCaptureInfo(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        number: *mut u64,
    );
    cuStreamQuery(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);

    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, stop: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);

    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctas: *mut c_int,
        function: CUfunction,
        threads: c_int,
        shared_bytes: usize,
    );
}

/// A device's primary context, released on drop.
pub struct Context {
    context: CUcontext,
    device: CUdevice,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of the device that the driver numbers `ordinal`.
    pub fn retain(ordinal: u32) -> Result<Self, Error> {
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: the driver refuses numbers that no device has; the handles outlive the
        // calls.
        unsafe {
            check("cuDeviceGet", cuDeviceGet(&mut device, ordinal as c_int))?;
            check(
                "cuDevicePrimaryCtxRetain",
                cuDevicePrimaryCtxRetain(&mut context, device),
            )?;
        }
        Ok(Context { context, device })
    }

    pub fn as_raw(&self) -> CUcontext {
        self.context
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, released once.
        unsafe { cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A stream of the current context. That context must be current when this is dropped.
pub struct Stream(CUstream);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new() -> Result<Self, Error> {
        let mut stream = ptr::null_mut();
        let (default_flags, default_priority) = (0, 0);
        // SAFETY: the handle outlives the call.
        check("cuStreamCreate", unsafe {
            cuStreamCreateWithPriority(&mut stream, default_flags, default_priority)
        })?;
        Ok(Stream(stream))
    }

    pub fn as_raw(&self) -> CUstream {
        self.0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { cuStreamDestroy_v2(self.0) };
    }
}
