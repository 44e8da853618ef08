//! The CUDA driver API, opened at run time.
//!
//! `cust` expects the linker to find `libcuda`, which exists only where an
//! NVIDIA driver is installed. This module defines every driver function that
//! `cust` and tilewise call, so linking needs no driver: each definition is a forwarder
//! that opens `libcuda.so.1` on first use. The same binary runs on a laptop, where every
//! call returns `CUDA_ERROR_NO_DEVICE`, and on a GPU server.
//!
//! A forwarder passes on twelve integer registers and stack slots, whatever the
//! function takes. That is sound for this API on the 64-bit Linux ABIs: its
//! functions take at most twelve arguments, all of them integers or pointers, and no
//! argument is passed by value on the stack. A callee ignores integer arguments beyond
//! the arguments that it declares (System V psABI, "Parameter Passing"; AAPCS64,
//! "Parameter passing").

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use cust_raw::cudaError_enum as Code;

/// The signature of all forwarders.
type Function = unsafe extern "C" fn(
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

/// The driver library, opened once; `None` if there is no driver.
fn library() -> Option<&'static libloading::Library> {
    static LIBRARY: OnceLock<Option<libloading::Library>> = OnceLock::new();
    LIBRARY
        // SAFETY: the driver's initialisers can run in any process.
        .get_or_init(|| unsafe { libloading::Library::new("libcuda.so.1").ok() })
        .as_ref()
}

/// Whether this machine has a driver.
pub fn is_present() -> bool {
    library().is_some()
}

/// The address of a driver function; `None` without a driver or where the
/// driver is older than the function.
pub fn symbol(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the symbol is only turned into an address here.
    let symbol = unsafe { library()?.get::<*const c_void>(name.to_bytes_with_nul()) };
    symbol.ok().map(|symbol| *symbol)
}

thread_local! {
    static MISSING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The function that this thread last called although the driver is too old to have it.
/// Resets it to `None`.
pub fn take_missing_function() -> Option<&'static str> {
    MISSING.take()
}

/// One driver function, looked up on its first call.
struct Forwarder {
    name: &'static CStr,
    function: OnceLock<Option<Function>>,
}

impl Forwarder {
    const fn new(name: &'static CStr) -> Self {
        Forwarder {
            name,
            function: OnceLock::new(),
        }
    }

    /// The function, or the error code that a call of it returns.
    fn function(&self) -> Result<Function, Code> {
        let function = self.function.get_or_init(|| {
            symbol(self.name).map(|address| {
                // SAFETY: the name is that of a driver function, and driver functions
                // accept this signature (see the module documentation).
                unsafe { std::mem::transmute::<*const c_void, Function>(address) }
            })
        });
        match function {
            Some(function) => Ok(*function),
            None if is_present() => {
                MISSING.set(self.name.to_str().ok());
                Err(Code::CUDA_ERROR_NOT_SUPPORTED)
            }
            None => Err(Code::CUDA_ERROR_NO_DEVICE),
        }
    }
}

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
            const NAME: &CStr =
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("an identifier holds no NUL"),
                };
            static FORWARDER: Forwarder = Forwarder::new(NAME);
            match FORWARDER.function() {
                // SAFETY: the caller's arguments, passed on.
                Ok(function) => named(unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l) }),
                Err(code) => code as u32,
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
    fn without_a_driver_every_function_answers_no_device() {
        if is_present() {
            return;
        }
        // SAFETY: takes no pointer.
        let code = unsafe { cust_raw::cuInit(0) };
        assert_eq!(code, Code::CUDA_ERROR_NO_DEVICE);
        assert_eq!(take_missing_function(), None);
    }

    #[test]
    fn a_function_the_driver_lacks_is_named() {
        let forwarder = Forwarder::new(c"cuNoSuchFunction");
        let code = forwarder.function().err();
        if is_present() {
            assert_eq!(code, Some(Code::CUDA_ERROR_NOT_SUPPORTED));
            assert_eq!(take_missing_function(), Some("cuNoSuchFunction"));
            assert_eq!(take_missing_function(), None, "asking forgets");
        } else {
            assert_eq!(code, Some(Code::CUDA_ERROR_NO_DEVICE));
        }
    }

    #[test]
    fn a_call_of_a_missing_function_says_that_the_driver_is_too_old() {
        MISSING.set(Some("cuNoSuchFunction"));
        let error = crate::gpu::driver::failure("cuInit", Code::CUDA_ERROR_NOT_SUPPORTED as u32);
        match error {
            crate::Error::DriverTooOld { lacks, .. } => {
                assert_eq!(lacks, "function cuNoSuchFunction");
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn unnamed_codes_become_unknown() {
        assert_eq!(named(222), Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION as u32);
        assert_eq!(named(226), Code::CUDA_ERROR_UNKNOWN as u32);
        assert_eq!(named(12345), Code::CUDA_ERROR_UNKNOWN as u32);
    }
}
