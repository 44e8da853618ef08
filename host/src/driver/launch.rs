//! Enqueues one launch.

use std::ffi::c_void;

use gpu_kernels::GemmParams;

use super::check;
use super::gpu::Gpu;
use super::module::Function;
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
