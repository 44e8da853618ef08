//! Packing: before each product, an operand is copied so that TMA can read it.

use std::sync::Arc;

use gpu_kernels::{
    EpilogueArguments, Form, GemmParams, KernelInfo, Schedule, TensorMaps, TensorRef, TileGrid,
    TileOrder,
};

use super::backend::{Function, LaunchConfig, Streams};
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use super::stream::CudaStream;
use crate::error::Error;
use crate::problem::Strides;
use crate::select::pack::PackedMatrix;
#[cfg(feature = "emulator")]
use crate::select::{choice::Choice, grid};

/// A launch that copies a matrix of the kernel's element type to other strides.
#[derive(Debug)]
pub(crate) struct Copy {
    function: Function,
    config: LaunchConfig,
    /// A is the matrix, and C is its copy.
    params: GemmParams,
}

impl Copy {
    /// Loads `kernel` for a copy of `from` to `to`: `batches` matrices of `rows`×`cols`.
    pub(crate) fn new(
        gpu: &Gpu,
        kernel: &KernelInfo,
        (batches, rows, cols): (u32, u32, u32),
        from: TensorRef,
        to: TensorRef,
    ) -> Result<Self, Error> {
        // Matrices that fit in memory have fewer tiles than a launch can number.
        let grid = TileGrid::cover(rows, cols, kernel.block.m, kernel.block.n);
        let form = Form {
            batched: (batches > 1).into(),
            ..Form::plain(kernel.input)
        };
        Ok(Copy {
            function: gpu.load(kernel, &form)?,
            config: LaunchConfig {
                ctas: (batches * grid.tiles(), 1),
                overlaps: false,
            },
            params: GemmParams {
                a: from,
                form,
                batches,
                epilogue: EpilogueArguments::NONE,
                source_by_tma: 0,
                b: TensorRef::NONE,
                c: to,
                workspace: 0,
                m: rows,
                n: cols,
                k: 0,
                order: TileOrder::RowMajor,
                schedule: Schedule::Grid1d,
                store_by_tma: 0,
                stream_k_ctas: 0,
                exponents: [0; 2],
            },
        })
    }

    /// Sets the order and the schedule of the copy from `choice`, which is for the same
    /// kernel and matrix.
    #[cfg(feature = "emulator")]
    pub(crate) fn walk(&mut self, gpu: &Gpu, choice: &Choice) {
        self.config.ctas = grid::ctas(choice, gpu.resident_ctas(&self.function));
        self.params.order = choice.order;
        self.params.schedule = choice.schedule;
    }

    /// Enqueues the copy of the matrix at `address` on `stream`, or on the library's own. The
    /// context of `gpu` is current.
    ///
    /// # Safety
    /// The matrix is live on `gpu`, in the planned layout. The matrix and its copy stay
    /// allocated until the stream has finished.
    pub(crate) unsafe fn run(
        &self,
        gpu: &Gpu,
        stream: Option<CudaStream>,
        address: u64,
    ) -> Result<(), Error> {
        let params = GemmParams {
            a: TensorRef {
                address,
                ..self.params.a
            },
            ..self.params
        };
        let (function, maps) = (&self.function, &TensorMaps::NONE);
        // SAFETY: the caller ensures it.
        unsafe { (gpu.backend()).launch(stream, function, self.config, &params, maps) }
    }
}

/// One operand's workspace, and the launch that fills it.
#[derive(Debug)]
pub(crate) struct Pack {
    copy: Copy,
    workspace: DeviceBuffer,
}

impl Pack {
    /// Loads `kernel` for a copy of `from` to a workspace with the layout of `packed`.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        kernel: &KernelInfo,
        from: Strides,
        packed: PackedMatrix,
    ) -> Result<Self, Error> {
        let bytes = packed.bytes().ok_or(Error::SizeOverflow {
            layout: packed.layout(),
        })?;
        let workspace = DeviceBuffer::undefined(gpu, bytes, Streams::Any)?;
        let to = packed.strides().at(workspace.address());
        let shape = (packed.batches, packed.rows, packed.cols);
        let copy = Copy::new(gpu, kernel, shape, from.at(0), to)?;
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

    /// Enqueues the copy of the operand at `address`, as [`Copy::run`] does. The context of `gpu` is
    /// current.
    ///
    /// # Safety
    /// The operand is live on `gpu`, in the planned layout. The operand and this
    /// value stay allocated until the stream has finished.
    pub(crate) unsafe fn run(
        &self,
        gpu: &Gpu,
        stream: Option<CudaStream>,
        address: u64,
    ) -> Result<(), Error> {
        // SAFETY: the caller ensures it; `self` owns the workspace, which is large enough.
        unsafe { self.copy.run(gpu, stream, address) }
    }
}
