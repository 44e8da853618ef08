//! A copy of an operand that TMA can read, made before each product.

use std::sync::Arc;

use gpu_kernels::{GemmParams, KernelInfo, Operand, OutputType, Schedule, TileGrid, TileOrder};

use super::gpu::Gpu;
use super::launch::{self, Shape};
use super::memory::DeviceBuffer;
use super::module::{self, Function};
use crate::error::Error;
use crate::problem::Strides;
use crate::select::pack::PackedMatrix;

/// One operand's workspace, and the launch that fills it.
#[derive(Debug)]
pub(crate) struct Pack {
    function: Function,
    shape: Shape,
    /// The operand as A, the workspace as C.
    params: GemmParams,
    workspace: DeviceBuffer,
}

impl Pack {
    /// Loads `kernel`, which is to copy `from` to a workspace as `packed` says.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        kernel: &KernelInfo,
        from: Strides,
        packed: PackedMatrix,
    ) -> Result<Self, Error> {
        let bytes = packed.bytes().ok_or(Error::SizeOverflow {
            layout: packed.layout(),
        })?;
        let workspace = DeviceBuffer::zeroed(gpu, bytes)?;
        // What has found memory has fewer tiles than a launch can number.
        let grid = TileGrid::cover(packed.rows, packed.cols, kernel.block.m, kernel.block.n);
        Ok(Pack {
            function: module::function(gpu, kernel)?,
            shape: Shape {
                ctas: (grid.tiles(), 1),
                threads: kernel.threads,
                shared_bytes: kernel.shared_bytes,
                overlaps: false,
            },
            params: GemmParams {
                a: from.at(0),
                b: Operand {
                    address: 0,
                    row_stride: 0,
                    col_stride: 0,
                },
                c: packed.strides().at(workspace.address()),
                tensor_maps: 0,
                workspace: 0,
                m: packed.rows,
                n: packed.cols,
                k: 0,
                output: OutputType::Input,
                order: TileOrder::RowMajor,
                schedule: Schedule::Grid1d,
                store_by_tma: 0,
                sharers: 0,
            },
            workspace,
        })
    }

    /// Address of the workspace, where the product reads the operand.
    pub(crate) fn address(&self) -> u64 {
        self.params.c.address
    }

    /// Bytes of the workspace.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.workspace.bytes() as u64
    }

    /// Enqueues the copy of the operand at `address`. The context of `gpu` is
    /// current.
    ///
    /// # Safety
    /// The operand is live on `gpu`, in the planned layout, and it and this
    /// plan stay until the stream is through.
    pub(crate) unsafe fn run(&self, gpu: &Gpu, address: u64) -> Result<(), Error> {
        let params = GemmParams {
            a: Operand {
                address,
                ..self.params.a
            },
            ..self.params
        };
        // SAFETY: the caller's duty; the workspace is ours and large enough.
        unsafe { launch::launch(gpu, self.function, self.shape, &params) }
    }
}
