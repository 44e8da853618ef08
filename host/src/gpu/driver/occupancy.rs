//! How much of a kernel runs on a GPU at once (CUDA driver API, "Occupancy").

use std::ffi::{c_int, c_void};

use gpu_kernels::KernelInfo;

use super::binding::{self, CUfunction};
use super::launch::extended::Config;
use super::{check, failure, libcuda};
use crate::error::Error;

/// CTAs of `function` that one SM holds at once.
pub(super) fn ctas_per_sm(kernel: &KernelInfo, function: CUfunction) -> Result<u32, Error> {
    let mut ctas = 0;
    // SAFETY: the function is loaded; the count outlives the call.
    check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
        binding::cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut ctas,
            function,
            kernel.threads as i32,
            kernel.shared_bytes as usize,
        )
    })?;
    Ok(ctas as u32)
}

/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = 14;

/// CTAs of the largest cluster that every GPU with clusters can launch.
const MOST_PORTABLE: u32 = 8;

/// `cuFuncSetAttribute`, for attributes that are newer than the bindings.
type SetAttribute =
    unsafe extern "C" fn(function: *mut c_void, attribute: u32, value: c_int) -> u32;

/// Lets `function` have clusters of more CTAs than every GPU can launch, if `kernel` has.
pub(super) fn allow_clusters(kernel: &KernelInfo, function: CUfunction) -> Result<(), Error> {
    if kernel.cluster.ctas() <= MOST_PORTABLE {
        return Ok(());
    }
    // SAFETY: the driver API has had this signature since CUDA 9.0.
    let set = unsafe { libcuda::function::<SetAttribute>(c"cuFuncSetAttribute") };
    // SAFETY: the function is loaded.
    match set.map(|set| unsafe { set(function.cast(), NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) }) {
        None | Some(0) => Ok(()),
        Some(code) => Err(failure("cuFuncSetAttribute", code)),
    }
}

/// `cuOccupancyMaxActiveClusters`, which is newer than the bindings.
type MaxActiveClusters =
    unsafe extern "C" fn(clusters: *mut c_int, function: *mut c_void, config: *const Config) -> u32;

/// Clusters of `function` that the GPU holds at once, after [`allow_clusters`]; `None` for a kernel without clusters.
pub(super) fn clusters_at_once(
    kernel: &KernelInfo,
    function: CUfunction,
) -> Result<Option<u32>, Error> {
    const NAME: &str = "cuOccupancyMaxActiveClusters";
    let ctas = kernel.cluster.ctas();
    if ctas == 1 {
        return Ok(None);
    }
    // SAFETY: the driver API has had this signature since CUDA 11.8, as long as clusters.
    let query = unsafe { libcuda::function::<MaxActiveClusters>(c"cuOccupancyMaxActiveClusters") };
    let Some(query) = query else {
        return Ok(None);
    };
    let config = Config {
        grid: [ctas, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        stream: std::ptr::null_mut(),
        // The kernel's own directive gives the size of its clusters.
        attributes: std::ptr::null(),
        attribute_count: 0,
    };
    let mut clusters = 0;
    // SAFETY: the function is loaded; count and config outlive the call.
    match unsafe { query(&mut clusters, function.cast(), &config) } {
        0 => Ok(Some(clusters as u32)),
        code => Err(failure(NAME, code)),
    }
}
