//! Measures which clusters of a launch share a GPC ([`Placement`]).

use std::time::Duration;

use gpu_kernels::{ClusterShape, DType, Family, Form, GemmParams, KernelInfo, TensorMaps};

use crate::error::Error;
use crate::gpu::backend::{Backend, LaunchConfig, Streams};
use crate::gpu::placement::Placement;
use crate::gpu::wait;

/// How long a plan waits for a launch. Another library's kernels may hold the SMs for as long as
/// they like; it is not known then where clusters run.
const PATIENCE: Duration = Duration::from_millis(100);

/// The placement of a GPU, by launches of clusters of two, of four, and of the largest
/// clusters, which have most SMs of a GPC. The context of the GPU is current.
pub(super) fn measure(gpu: &dyn Backend) -> Result<Placement, Error> {
    let catalog = gpu.catalog();
    let launch = |ctas: u32| {
        let kernel = (catalog.kernels.iter())
            .find(|kernel| kernel.family == Family::Placement && kernel.cluster.ctas() == ctas);
        match kernel.filter(|kernel| (catalog.is_built)(kernel.entry)) {
            Some(kernel) => sms_of_ctas(gpu, kernel),
            None => Ok(Vec::new()),
        }
    };
    Ok(Placement::of_launches(
        &launch(2)?,
        &launch(4)?,
        &launch(16)?,
    ))
}

/// The SM of each CTA of a launch of `kernel` that has as many clusters as run at once.
fn sms_of_ctas(gpu: &dyn Backend, kernel: &KernelInfo) -> Result<Vec<usize>, Error> {
    let form = Form {
        cluster: ClusterShape::of(kernel.cluster),
        ..Form::plain(DType::F32)
    };
    let function = gpu.load(kernel, &form)?;
    let ctas = kernel.cluster.ctas() * function.clusters_at_once.unwrap_or(0);
    if ctas == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; 4 * ctas as usize];
    let Some(allocation) = gpu.allocate(bytes.len(), Streams::Own)? else {
        return Ok(Vec::new());
    };
    let mut params = GemmParams {
        form,
        ..GemmParams::NONE
    };
    params.c.address = allocation.address;
    let config = LaunchConfig {
        ctas: (ctas, 1),
        overlaps: false,
    };
    // SAFETY: the allocation has a u32 for each CTA.
    let launched = unsafe { gpu.launch(None, &function, config, &params, &TensorMaps::NONE) };
    let is_done = launched.and_then(|()| wait::poll(PATIENCE, || gpu.is_done()));
    let has_ended = matches!(is_done, Ok(true));
    let read = is_done.and_then(|is_done| {
        if !is_done {
            bytes.clear();
            return Ok(());
        }
        // SAFETY: as above; `bytes` is used after the wait alone.
        unsafe { gpu.read(allocation.address, &mut bytes) }?;
        gpu.synchronize()
    });
    // A launch that has not ended still uses memory that is not freed in the order of the stream.
    if allocation.is_ordered || has_ended {
        // SAFETY: allocated above and freed once; no work uses it but that of the library's own stream.
        unsafe { gpu.free(allocation) };
    }
    read?;
    let words = bytes.as_chunks::<4>().0;
    Ok((words.iter().map(|word| u32::from_ne_bytes(*word) as usize)).collect())
}
