//! Enqueues one launch.

use std::ffi::c_void;
use std::sync::OnceLock;

use gpu_kernels::{GemmParams, TensorMaps};

use super::binding::{self, CUfunction, CUstream};
use super::{check, driver_version, failure, libcuda};
use crate::error::Error;
use crate::gpu::backend::{Function, LaunchConfig};

/// `cuLaunchKernelEx` and its arguments, which are newer than the bindings (CUDA
/// driver API, "Execution Control").
pub(super) mod extended {
    use std::ffi::c_void;

    /// `CUlaunchConfig`.
    #[repr(C)]
    pub(in super::super) struct Config {
        pub(in super::super) grid: [u32; 3],
        pub(in super::super) block: [u32; 3],
        pub(in super::super) shared_bytes: u32,
        pub(in super::super) stream: *mut c_void,
        pub(in super::super) attributes: *const Attribute,
        pub(in super::super) attribute_count: u32,
    }

    /// `CUlaunchAttribute`: an id, and a value in a union of 64 bytes.
    #[repr(C, align(8))]
    pub(in super::super) struct Attribute {
        pub(super) id: u32,
        pub(super) padding: u32,
        pub(super) value: [u32; 16],
    }

    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
    pub(super) const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;

    pub(super) type Launch = unsafe extern "C" fn(
        config: *const Config,
        function: *mut c_void,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
}

/// The first driver whose stream capture supports overlapping launches (CUDA 12.3
/// release notes).
const OVERLAP_SINCE: (u32, u32) = (12, 3);

/// `cuLaunchKernelEx`, if the driver has it and supports overlapping launches in stream
/// captures.
fn launch_extended() -> Option<extended::Launch> {
    static LAUNCH: OnceLock<Option<extended::Launch>> = OnceLock::new();
    *LAUNCH.get_or_init(|| {
        // SAFETY: the driver API has had this signature since CUDA 11.8.
        let launch = unsafe { libcuda::function::<extended::Launch>(c"cuLaunchKernelEx") };
        launch.filter(|_| driver_version() >= OVERLAP_SINCE)
    })
}

/// Enqueues `function` with `params` and `maps` on `stream`. The stream's context is current.
///
/// # Safety
/// `function` is loaded in that context and takes [`GemmParams`] and [`TensorMaps`]. `params` describes
/// live allocations of that context, which stay allocated until the stream has finished.
pub(super) unsafe fn launch(
    stream: CUstream,
    function: &Function,
    config: LaunchConfig,
    params: &GemmParams,
    maps: &TensorMaps,
) -> Result<(), Error> {
    let kernel = &function.kernel;
    let handle: CUfunction = function.handle.0.cast();
    // The driver copies the parameters before it returns ("cuLaunchKernel").
    let mut arguments: [*mut c_void; 2] = [
        std::ptr::from_ref(params).cast_mut().cast(),
        std::ptr::from_ref(maps).cast_mut().cast(),
    ];
    let (x, y) = config.ctas;
    if config.overlaps
        && let Some(launch) = launch_extended()
    {
        let mut value = [0; 16];
        value[0] = 1;
        let overlap = extended::Attribute {
            id: extended::PROGRAMMATIC_STREAM_SERIALIZATION,
            padding: 0,
            value,
        };
        let launch_config = extended::Config {
            grid: [x, y, 1],
            block: [kernel.threads, 1, 1],
            shared_bytes: kernel.shared_bytes,
            stream: stream.cast(),
            attributes: &overlap,
            attribute_count: 1,
        };
        // SAFETY: the caller ensures it; config and arguments outlive the call.
        let code = unsafe {
            launch(
                &launch_config,
                handle.cast(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        return match code {
            0 => Ok(()),
            code => Err(failure("cuLaunchKernelEx", code)),
        };
    }
    // SAFETY: the caller ensures it.
    let result = unsafe {
        binding::cuLaunchKernel(
            handle,
            x,
            y,
            1,
            kernel.threads,
            1,
            1,
            kernel.shared_bytes,
            stream,
            arguments.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    };
    check("cuLaunchKernel", result)
}
