//! A launch ahead of a product that writes its operands anew: packed, or split.

use gpu_kernels::{GemmParams, KernelInfo, TensorMaps, TensorRef};

use super::backend::{Function, LaunchConfig};
use super::opened::Gpu;
use super::stream::CudaStream;
use crate::error::Error;

/// The launch but for the addresses of A and B.
#[derive(Debug)]
pub(crate) struct OperandLaunch {
    function: Function,
    config: LaunchConfig,
    /// C is what becomes of A, and the source of the epilogue what becomes of B.
    params: GemmParams,
}

impl OperandLaunch {
    /// Loads `kernel` for a launch of `ctas` CTAs.
    pub(super) fn new(
        gpu: &Gpu,
        kernel: &KernelInfo,
        ctas: (u32, u32),
        params: GemmParams,
    ) -> Result<Self, Error> {
        Ok(OperandLaunch {
            function: gpu.load(kernel, &params.form)?,
            config: LaunchConfig {
                ctas,
                overlaps: false,
            },
            params,
        })
    }

    /// Addresses of what becomes of A and of B; 0 where there is none.
    pub(super) fn addresses(&self) -> [u64; 2] {
        [self.params.c.address, self.params.epilogue.source.address]
    }

    /// Addresses of the exponents of A's rows and of B's columns; 0 where there are none.
    pub(super) fn exponents(&self) -> [u64; 2] {
        self.params.exponents
    }

    /// Enqueues the launch for the operands at these addresses on `stream`, or on the library's
    /// own. The context of `gpu` is current.
    ///
    /// # Safety
    /// The operands that the launch reads are live on `gpu`, in the planned layouts. They and what
    /// becomes of them stay allocated until the stream has finished.
    pub(crate) unsafe fn run(
        &self,
        gpu: &Gpu,
        stream: Option<CudaStream>,
        [a, b]: [u64; 2],
    ) -> Result<(), Error> {
        let at = |address, operand| TensorRef { address, ..operand };
        let params = GemmParams {
            a: at(a, self.params.a),
            b: at(b, self.params.b),
            ..self.params
        };
        let (function, maps) = (&self.function, &TensorMaps::NONE);
        // SAFETY: the caller ensures it.
        unsafe { (gpu.backend()).launch(stream, function, self.config, &params, maps) }
    }
}
