//! A copy of an operand that TMA can read, made before each product.

use std::sync::Arc;

use gpu_kernels::{GemmParams, KernelInfo, OutputType, Schedule, TensorRef, TileGrid, TileOrder};

use super::backend::{Function, LaunchConfig};
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use crate::error::Error;
use crate::problem::Strides;
use crate::select::pack::PackedMatrix;
#[cfg(feature = "emulator")]
use crate::select::{choice::Choice, grid};

/// A launch that copies a matrix, of the kernel's type, to other strides.
#[derive(Debug)]
pub(crate) struct Copy {
    function: Function,
    config: LaunchConfig,
    /// The matrix as A, its copy as C.
    params: GemmParams,
}

impl Copy {
    /// Loads `kernel`, which is to copy `from` to `to`, both `rows`×`cols`.
    pub(crate) fn new(
        gpu: &Gpu,
        kernel: &KernelInfo,
        (rows, cols): (u32, u32),
        from: TensorRef,
        to: TensorRef,
    ) -> Result<Self, Error> {
        // What has found memory has fewer tiles than a launch can number.
        let grid = TileGrid::cover(rows, cols, kernel.block.m, kernel.block.n);
        Ok(Copy {
            function: gpu.load(kernel)?,
            config: LaunchConfig {
                ctas: (grid.tiles(), 1),
                overlaps: false,
            },
            params: GemmParams {
                a: from,
                b: TensorRef {
                    address: 0,
                    row_stride: 0,
                    col_stride: 0,
                },
                c: to,
                tensor_maps: 0,
                workspace: 0,
                m: rows,
                n: cols,
                k: 0,
                output: OutputType::Input,
                order: TileOrder::RowMajor,
                schedule: Schedule::Grid1d,
                store_by_tma: 0,
                stream_k_ctas: 0,
            },
        })
    }

    /// Copies tile by tile as `choice`, of the same kernel and matrix, says.
    #[cfg(feature = "emulator")]
    pub(crate) fn walk(&mut self, gpu: &Gpu, choice: &Choice) {
        self.config.ctas = grid::ctas(choice, gpu.resident_ctas(&self.function));
        self.params.order = choice.order;
        self.params.schedule = choice.schedule;
    }

    /// Enqueues the copy of the matrix at `address`. The context of `gpu` is current.
    ///
    /// # Safety
    /// The matrix is live on `gpu`, in the planned layout, and it and its copy stay until
    /// the stream is through.
    pub(crate) unsafe fn run(&self, gpu: &Gpu, address: u64) -> Result<(), Error> {
        let params = GemmParams {
            a: TensorRef {
                address,
                ..self.params.a
            },
            ..self.params
        };
        // SAFETY: the caller's duty.
        unsafe { gpu.backend().launch(&self.function, self.config, &params) }
    }
}

/// One operand's workspace, and the launch that fills it.
#[derive(Debug)]
pub(crate) struct Pack {
    copy: Copy,
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
        workspace.leave_undefined(0, bytes);
        let to = packed.strides().at(workspace.address());
        let copy = Copy::new(gpu, kernel, (packed.rows, packed.cols), from.at(0), to)?;
        Ok(Pack { copy, workspace })
    }

    /// Address of the workspace, where the product reads the operand.
    pub(crate) fn address(&self) -> u64 {
        self.workspace.address()
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
        // SAFETY: the caller's duty; the workspace is ours and large enough.
        unsafe { self.copy.run(gpu, address) }
    }
}
