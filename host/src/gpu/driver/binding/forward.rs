//! The functions of `libcuda` that `cust` links.
//!
//! `cust` expects the linker to find `libcuda`, which exists only where an NVIDIA driver is
//! installed. This module defines every driver function that `cust`, and the programs of
//! this workspace through `cust_raw`, call, so linking needs no driver: each definition is a
//! forwarder to the function of [`libcuda`](crate::gpu::driver::libcuda).
//!
//! A forwarder passes on twelve integer registers and stack slots, whatever the
//! function takes. That is sound for this API on the 64-bit Linux ABIs: its
//! functions take at most twelve arguments, all of them integers or pointers, and no
//! argument is passed by value on the stack. A callee ignores integer arguments beyond
//! the arguments that it declares (System V psABI, "Parameter Passing"; AAPCS64,
//! "Parameter passing").

use cust_raw::cudaError_enum as Code;

use crate::gpu::driver::libcuda::Entry;

/// The signature of all forwarders.
type Forwarded = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> u32;

/// Turns codes that `cust_raw` 0.11 has no name for into `CUDA_ERROR_UNKNOWN`.
/// `cust_raw` reads the returned code as a Rust enum, where an unnamed value would be
/// undefined behaviour.
fn named(code: u32) -> u32 {
    match code {
        0..=8
        | 34
        | 100..=102
        | 200..=202
        | 205..=224
        | 300..=304
        | 400
        | 401
        | 500
        | 600
        | 700..=705
        | 708..=720
        | 800..=809
        | 900..=911 => code,
        _ => Code::CUDA_ERROR_UNKNOWN as u32,
    }
}

macro_rules! forward {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the driver's own name")]
        unsafe extern "C" fn $name(
            a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
            g: usize, h: usize, i: usize, j: usize, k: usize, l: usize,
        ) -> u32 {
            static ENTRY: Entry<Forwarded> =
                // SAFETY: driver functions accept this signature (see the module
                // documentation).
                unsafe { Entry::new(concat!(stringify!($name), "\0")) };
            match ENTRY.get() {
                // SAFETY: the caller's arguments, passed on.
                Ok(function) => named(unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l) }),
                Err(code) => code,
            }
        }
    )*};
}

// The functions that `cust` 0.3.2 references, and the functions that tilewise, its tests
// and its benchmarks call through `cust_raw`.
forward! {
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayDestroy
    cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxGetApiVersion cuCtxGetCacheConfig cuCtxGetCurrent
    cuCtxGetDevice cuCtxGetFlags cuCtxGetLimit cuCtxGetSharedMemConfig
    cuCtxGetStreamPriorityRange cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuCtxSetCacheConfig
    cuCtxSetCurrent cuCtxSetLimit cuCtxSetSharedMemConfig cuCtxSynchronize
    cuDestroyExternalMemory cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount cuDeviceGetName
    cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxRetain
    cuDevicePrimaryCtxSetFlags_v2 cuDeviceTotalMem_v2 cuDriverGetVersion
    cuEventCreate cuEventDestroy_v2 cuEventElapsedTime cuEventQuery cuEventRecord
    cuEventSynchronize cuExternalMemoryGetMappedBuffer
    cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig
    cuGetErrorString
    cuGraphAddKernelNode cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy cuGraphExecDestroy
    cuGraphGetEdges cuGraphGetNodes cuGraphInstantiateWithFlags cuGraphKernelNodeGetParams
    cuGraphLaunch cuGraphNodeGetType
    cuImportExternalMemory cuInit cuLaunchHostFunc cuLaunchKernel
    cuLinkAddData_v2 cuLinkComplete cuLinkCreate_v2 cuLinkDestroy
    cuMemAdvise cuMemAllocAsync cuMemAllocHost_v2 cuMemAllocManaged cuMemAlloc_v2 cuMemFreeAsync
    cuMemFreeHost cuMemFree_v2 cuMemGetInfo_v2 cuMemPrefetchAsync
    cuMemcpy2D_v2 cuMemcpyAtoH_v2 cuMemcpyDtoDAsync_v2 cuMemcpyDtoD_v2 cuMemcpyDtoHAsync_v2
    cuMemcpyDtoH_v2 cuMemcpyHtoA_v2 cuMemcpyHtoDAsync_v2 cuMemcpyHtoD_v2
    cuMemsetD16Async cuMemsetD16_v2 cuMemsetD2D16Async cuMemsetD2D32Async cuMemsetD32Async cuMemsetD32_v2 cuMemsetD8Async cuMemsetD8_v2
    cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoad cuModuleLoadData cuModuleLoadDataEx
    cuModuleUnload
    cuOccupancyAvailableDynamicSMemPerBlock cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuOccupancyMaxPotentialBlockSize
    cuStreamBeginCapture_v2 cuStreamCreateWithPriority cuStreamDestroy_v2 cuStreamEndCapture
    cuStreamGetCaptureInfo cuStreamGetFlags cuStreamGetPriority
    cuStreamIsCapturing cuStreamQuery cuStreamSynchronize cuStreamWaitEvent
    cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc
    cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_codes_become_unknown() {
        assert_eq!(named(222), Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION as u32);
        assert_eq!(named(226), Code::CUDA_ERROR_UNKNOWN as u32);
        assert_eq!(named(12345), Code::CUDA_ERROR_UNKNOWN as u32);
    }
}
