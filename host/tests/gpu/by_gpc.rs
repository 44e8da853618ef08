//! Clusters that take other ids than their indices, so that those of one GPC have tiles that lie
//! together: the product is the same as by a kernel without clusters.
//!
//! Elements are small integers, so that sums are exact in f32 and all kernels give the same bits.

use gpu_kernels::entry::KERNELS;
use tilewise::{Device, Error, Gemm, Matrix};

use crate::errors::ErrorCase;
use crate::eviction::integers;

/// All tests of such clusters.
pub const CASES: [ErrorCase; 1] = [("by-gpc/every-shape", every_shape, true)];

/// Kernels whose clusters share B, and A: of whole tiles, and of parts of their K.
const CLUSTERS: [&str; 6] = [
    "hopper_f16_ak_bk_64x64x64_cluster2x1",
    "hopper_f16_ak_bk_64x64x64_cluster1x2",
    "hopper_f16_ak_bk_128x64x64_splitk_cluster2x1",
    "hopper_f16_ak_bk_128x64x64_splitk_cluster1x2",
    "hopper_f16_ak_bk_64x96x64_splitk_cluster4x1",
    "hopper_f16_ak_bk_128x64x64_splitk_cluster1x4",
];

/// One without clusters.
const ALONE: &str = "hopper_f16_ak_bk_64x64x128";

/// Depth of a product that is long enough for it, and no multiple of a k-block.
const K: usize = 33 * 64 + 8;

/// Cluster tiles along M and along N where many clusters run at once, and where two do.
const GRIDS: [(usize, usize); 4] = [(3, 4), (7, 2), (2, 1), (1, 2)];

fn every_shape(device: &Device) -> Result<(), String> {
    let sms = match device.gpu_info() {
        Some(gpu) if gpu.compute_capability == (9, 0) => gpu.sms,
        // It has no clusters.
        _ => return Ok(()),
    };
    for name in CLUSTERS {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
        let kernel = kernel.ok_or("there is no such kernel")?;
        let at_once = (sms / kernel.cluster.ctas()) as usize;
        let mut numbered = 0;
        for (rows, cols) in GRIDS
            .into_iter()
            .filter(|(rows, cols)| rows * cols <= at_once)
        {
            let (height, width) = kernel.cluster_tile();
            let m = rows * height as usize - 5;
            let n = cols * width as usize - 8;
            let at = format!("{name}, {m}x{n}x{K}");
            let readers = if kernel.cluster.m > 1 { cols } else { rows };
            match compare(device, name, (m, n)) {
                Err(error) => return Err(format!("{at}: {error}")),
                Ok((_, false)) => return Err(format!("{at}: not as without clusters")),
                Ok((is_numbered, true)) if is_numbered != (readers > 1) => {
                    return Err(format!("{at}: {readers} readers, numbered: {is_numbered}"));
                }
                Ok((is_numbered, true)) => numbered += usize::from(is_numbered),
            }
        }
        if numbered == 0 && at_once > 1 {
            return Err(format!("{name}: no launch is numbered by GPC"));
        }
    }
    Ok(())
}

/// Whether the clusters of the kernel of this name are numbered by GPC, and whether C is the same as
/// without clusters.
fn compare(device: &Device, name: &str, (m, n): (usize, usize)) -> Result<(bool, bool), Error> {
    let a = integers(device, m, K)?;
    let b = integers(device, n, K)?;
    let multiply = |name: &str, c: &mut Matrix<f32>| {
        let gemm = Gemm::new(device).kernel(name);
        let mut plan = gemm.plan(&a, b.view().t(), &mut *c)?;
        plan.run(&a, b.view().t(), c)?;
        Ok::<_, Error>(plan.info().gpu().is_some_and(|gpu| gpu.clusters_by_gpc))
    };
    let [mut by_gpc, mut alone] = [device.zeros(m, n)?, device.zeros(m, n)?];
    let is_by_gpc = multiply(name, &mut by_gpc)?;
    multiply(ALONE, &mut alone)?;
    Ok((is_by_gpc, by_gpc.to_vec()? == alone.to_vec()?))
}
