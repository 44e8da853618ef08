//! Enqueues one launch.

use std::ffi::c_void;
use std::sync::OnceLock;

use gpu_kernels::GemmParams;

use super::gpu::Gpu;
use super::module::Function;
use super::{check, failure, libcuda};
use crate::error::Error;

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// CTAs along x and y. For a kernel with clusters (`.reqnctapercluster`)
    /// x is a multiple of the cluster.
    pub(crate) ctas: (u32, u32),
    /// Threads a CTA.
    pub(crate) threads: u32,
    /// Dynamic shared memory of a CTA, bytes.
    pub(crate) shared_bytes: u32,
    /// Whether the grid may start, and wait by itself, while the kernel ahead of it
    /// in the stream still runs. Its kernel executes `griddepcontrol.wait`.
    pub(crate) overlaps: bool,
}

/// `cuLaunchKernelEx` and its arguments, which are newer than `cust_raw` (CUDA
/// driver API, "Execution Control").
mod extended {
    use std::ffi::c_void;

    /// `CUlaunchConfig`.
    #[repr(C)]
    pub(super) struct Config {
        pub(super) grid: [u32; 3],
        pub(super) block: [u32; 3],
        pub(super) shared_bytes: u32,
        pub(super) stream: *mut c_void,
        pub(super) attributes: *const Attribute,
        pub(super) attribute_count: u32,
    }

    /// `CUlaunchAttribute`: an id, and a value in a union of 64 bytes.
    #[repr(C, align(8))]
    pub(super) struct Attribute {
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

/// First driver whose stream capture knows launches that overlap (CUDA 12.3
/// release notes).
const OVERLAP_SINCE: (u32, u32) = (12, 3);

/// `cuLaunchKernelEx`, if the driver has it and may be asked for overlap.
fn launch_extended() -> Option<extended::Launch> {
    static LAUNCH: OnceLock<Option<extended::Launch>> = OnceLock::new();
    *LAUNCH.get_or_init(|| {
        let symbol = libcuda::symbol(c"cuLaunchKernelEx")
            .filter(|_| super::gpu::driver_version() >= OVERLAP_SINCE)?;
        // SAFETY: the signature is that of the driver API since CUDA 11.8.
        Some(unsafe { std::mem::transmute::<*const c_void, extended::Launch>(symbol) })
    })
}

/// Enqueues `function` with `params` on the stream of `gpu`, whose context is
/// current.
///
/// # Safety
/// `function` is loaded on `gpu` and takes a [`GemmParams`]; `params` describes
/// live allocations there, which nobody frees before the stream is through.
pub(crate) unsafe fn launch(
    gpu: &Gpu,
    function: Function,
    shape: Shape,
    params: &GemmParams,
) -> Result<(), Error> {
    // The driver copies the parameters before it returns ("cuLaunchKernel").
    let mut arguments: [*mut c_void; 1] = [std::ptr::from_ref(params).cast_mut().cast()];
    let (x, y) = shape.ctas;
    if shape.overlaps
        && let Some(launch) = launch_extended()
    {
        let mut value = [0; 16];
        value[0] = 1;
        let overlap = extended::Attribute {
            id: extended::PROGRAMMATIC_STREAM_SERIALIZATION,
            padding: 0,
            value,
        };
        let config = extended::Config {
            grid: [x, y, 1],
            block: [shape.threads, 1, 1],
            shared_bytes: shape.shared_bytes,
            stream: gpu.stream().as_inner().cast(),
            attributes: &overlap,
            attribute_count: 1,
        };
        // SAFETY: the caller's duty; config and arguments outlive the call.
        let code = unsafe {
            launch(
                &config,
                function.handle.cast(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        return match code {
            0 => Ok(()),
            code => Err(failure("cuLaunchKernelEx", code)),
        };
    }
    // SAFETY: the caller's duty.
    let result = unsafe {
        cust_raw::cuLaunchKernel(
            function.handle,
            x,
            y,
            1,
            shape.threads,
            1,
            1,
            shape.shared_bytes,
            gpu.stream().as_inner(),
            arguments.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    };
    check("cuLaunchKernel", result)
}
