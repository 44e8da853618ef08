//! The launch that finishes a product under split-K: it adds the sums that the CTAs of each tile
//! have left in the workspace, and stores C ([`gpu_kernels::kernels::reduce`]).

use gpu_kernels::kernels::reduce;
use gpu_kernels::{ClusterShape, EvictFirst, Form, GemmParams, KernelInfo, TensorMaps};

use super::backend::{Function, LaunchConfig};
use super::opened::Gpu;
use super::stream::CudaStream;
use crate::error::Error;
use crate::select::choice::Choice;

/// The launch behind that of the product.
#[derive(Debug)]
pub(crate) struct Reduce {
    function: Function,
    config: LaunchConfig,
    /// Depth of the product's k-blocks.
    block_k: u32,
}

impl Reduce {
    /// Loads `kernel` for the tiles of `choice` and an epilogue of `form`.
    pub(crate) fn new(
        gpu: &Gpu,
        kernel: &KernelInfo,
        choice: &Choice,
        form: &Form,
    ) -> Result<Self, Error> {
        // It loads nothing through TMA, so one compiled kernel serves all policies and clusters.
        let form = Form {
            evict_first: EvictFirst::NONE,
            cluster: ClusterShape::NONE,
            renumbered: 0,
            ..*form
        };
        Ok(Reduce {
            function: gpu.load(kernel, &form)?,
            config: LaunchConfig {
                ctas: (reduce::ctas(kernel.block, choice.tiles()), 1),
                // It waits for the product by itself, so that only its start overlaps.
                overlaps: true,
            },
            block_k: choice.kernel.block.k,
        })
    }

    /// Enqueues the launch on `stream`, or on the library's own. The context of `gpu` is current.
    ///
    /// # Safety
    /// The launch before it on the stream was the product with these parameters; what they
    /// describe stays allocated until the stream has finished.
    pub(crate) unsafe fn run(
        &self,
        gpu: &Gpu,
        stream: Option<CudaStream>,
        params: &GemmParams,
    ) -> Result<(), Error> {
        let params = GemmParams {
            k: params.k.div_ceil(self.block_k),
            ..*params
        };
        let (function, maps) = (&self.function, &TensorMaps::NONE);
        // SAFETY: the caller ensures it; the kernel takes these two parameters like every entry
        // point.
        unsafe { (gpu.backend()).launch(stream, function, self.config, &params, maps) }
    }
}
