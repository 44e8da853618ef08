//! Packing: before each product, one launch copies the operands that TMA cannot read.

use std::sync::Arc;

use gpu_kernels::kernels::pack;
use gpu_kernels::{EpilogueArguments, Form, GemmParams, KernelInfo, Planes, TensorRef};

use super::backend::Streams;
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use super::operand_launch::OperandLaunch;
use super::stream::CudaStream;
use crate::error::Error;
use crate::problem::{Problem, Strides};
use crate::select::pack::PackedMatrix;

/// Loads `kernel` for copies of A and B to `to`, where it is a matrix: `batches` of M×K, and
/// of K×N.
fn copies(
    gpu: &Gpu,
    kernel: &KernelInfo,
    batches: u32,
    [m, n, k]: [u32; 3],
    [a, b]: [Strides; 2],
    [to_a, to_b]: [TensorRef; 2],
) -> Result<OperandLaunch, Error> {
    let params = GemmParams {
        form: Form {
            planes: Planes::of_batch(batches),
            ..Form::plain(kernel.input)
        },
        m,
        n,
        k,
        batches,
        a: a.at(0),
        b: b.at(0),
        c: to_a,
        epilogue: EpilogueArguments {
            source: to_b,
            ..EpilogueArguments::NONE
        },
        ..GemmParams::NONE
    };
    OperandLaunch::new(gpu, kernel, (pack::ctas(&params), 1), params)
}

/// Loads `kernel` for a copy of `from` to `to`: `batches` matrices of `rows`×`cols`. To
/// [`OperandLaunch::run`], they are A, and there is no B.
pub(crate) fn copy(
    gpu: &Gpu,
    kernel: &KernelInfo,
    (batches, rows, cols): (u32, u32, u32),
    from: Strides,
    to: TensorRef,
) -> Result<OperandLaunch, Error> {
    let (from, to) = ([from, Strides::new(0, 0)], [to, TensorRef::NONE]);
    copies(gpu, kernel, batches, [rows, 0, cols], from, to)
}

/// The launch, and the workspace that it fills: the copy of A, then that of B.
#[derive(Debug)]
pub(crate) struct Pack {
    launch: OperandLaunch,
    /// Whether A and B are packed.
    packs: [bool; 2],
    workspace: DeviceBuffer,
}

impl Pack {
    /// Loads `kernel` for copies of the operands of `problem` that are to be `packed`, at least
    /// one.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        kernel: &KernelInfo,
        problem: &Problem,
        packed: [Option<PackedMatrix>; 2],
    ) -> Result<Self, Error> {
        let mut offsets = [0; 2];
        let mut end = 0_usize;
        for (offset, matrix) in offsets.iter_mut().zip(packed) {
            let Some(matrix) = matrix else { continue };
            *offset = end;
            // Packed matrices are whole lines of 128 bytes, so that all begin where TMA can read.
            end = (matrix.bytes())
                .and_then(|bytes| end.checked_add(bytes))
                .ok_or(Error::SizeOverflow {
                    layout: matrix.layout(),
                })?;
        }
        let workspace = DeviceBuffer::undefined(gpu, end, Streams::Any)?;
        let to = [0, 1].map(|operand: usize| match packed[operand] {
            Some(matrix) => (matrix.strides()).at(workspace.address() + offsets[operand] as u64),
            None => TensorRef::NONE,
        });
        let shape = [problem.m, problem.n, problem.k];
        let from = [problem.a, problem.b];
        Ok(Pack {
            launch: copies(gpu, kernel, problem.batches, shape, from, to)?,
            packs: packed.map(|matrix| matrix.is_some()),
            workspace,
        })
    }

    /// Addresses of the copies of A and of B, as far as they are packed.
    pub(crate) fn addresses(&self) -> [Option<u64>; 2] {
        let ([a, b], [packs_a, packs_b]) = (self.launch.addresses(), self.packs);
        [packs_a.then_some(a), packs_b.then_some(b)]
    }

    /// Bytes of the workspace.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.workspace.bytes() as u64
    }

    /// Enqueues the copies of the operands at these addresses, as [`OperandLaunch::run`] does. The context
    /// of `gpu` is current.
    ///
    /// # Safety
    /// The operands that are packed are live on `gpu`, in the planned layouts. They and this
    /// value stay allocated until the stream has finished.
    pub(crate) unsafe fn run(
        &self,
        gpu: &Gpu,
        stream: Option<CudaStream>,
        addresses: [u64; 2],
    ) -> Result<(), Error> {
        // SAFETY: the caller ensures it; `self` owns the workspace, which is large enough.
        unsafe { self.launch.run(gpu, stream, addresses) }
    }
}
