//! The binding through `cust` and `cust_raw`.

use cust::device::Device;
use cust::stream::StreamFlags;
pub use cust_raw::{
    CUcontext, CUdevice, CUdevice_attribute, CUdevice_attribute_enum, CUevent, CUfunction,
    CUfunction_attribute_enum, CUjit_option_enum, CUmodule, CUresult, CUstream,
    CUstreamCaptureStatus_enum, cuCtxGetCurrent, cuCtxSetCurrent, cuDeviceGet,
    cuDeviceGetAttribute, cuDeviceGetCount, cuDeviceGetName, cuDeviceTotalMem_v2, cuEventCreate,
    cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord, cuEventSynchronize, cuFuncSetAttribute,
    cuInit, cuLaunchKernel, cuMemAlloc_v2, cuMemFree_v2, cuMemGetInfo_v2, cuMemcpyDtoHAsync_v2,
    cuMemcpyHtoDAsync_v2, cuMemsetD2D16Async, cuMemsetD2D32Async, cuMemsetD8Async,
    cuMemsetD16Async, cuMemsetD32Async, cuModuleGetFunction, cuModuleLoadDataEx, cuModuleUnload,
    cuOccupancyMaxActiveBlocksPerMultiprocessor, cuStreamGetCaptureInfo, cuStreamQuery,
    cuStreamSynchronize, cuStreamWaitEvent, cudaError_enum,
};

use crate::error::Error;
use crate::gpu::driver::failure::failure;

pub const CU_EVENT_DEFAULT: u32 = cust_raw::CUevent_flags_enum::CU_EVENT_DEFAULT as u32;
pub const CU_EVENT_DISABLE_TIMING: u32 =
    cust_raw::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;

/// The number of a `CUresult`.
pub fn code(result: CUresult) -> u32 {
    result as u32
}

/// The error for a call through `cust`.
fn cust_failure(call: &'static str) -> impl FnOnce(cust::error::CudaError) -> Error {
    move |error| failure(call, error as u32)
}

/// A device's primary context, released on drop.
pub struct Context(cust::context::Context);

impl Context {
    /// Retains the primary context of the device that the driver numbers `ordinal`.
    pub fn retain(ordinal: u32) -> Result<Self, Error> {
        let device = Device::get_device(ordinal).map_err(cust_failure("cuDeviceGet"))?;
        let context = cust::context::Context::new(device);
        context
            .map(Context)
            .map_err(cust_failure("cuDevicePrimaryCtxRetain"))
    }

    pub fn as_raw(&self) -> CUcontext {
        self.0.as_raw()
    }
}

/// A stream of the current context. That context must be current when this is dropped.
pub struct Stream(cust::stream::Stream);

impl Stream {
    pub fn new() -> Result<Self, Error> {
        let stream = cust::stream::Stream::new(StreamFlags::DEFAULT, None);
        stream.map(Stream).map_err(cust_failure("cuStreamCreate"))
    }

    pub fn as_raw(&self) -> CUstream {
        self.0.as_inner()
    }

    pub fn as_cust(&self) -> &cust::stream::Stream {
        &self.0
    }
}
