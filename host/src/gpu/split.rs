//! Splitting: before each product, one launch turns both f32 operands into two f16 parts
//! ([`gpu_kernels::f16x3`]).

use std::sync::Arc;

use gpu_kernels::kernels::split;
use gpu_kernels::{DType, EpilogueArguments, Form, GemmParams, KernelInfo, Planes};

use super::backend::Streams;
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use super::operand_launch::OperandLaunch;
use super::stream::CudaStream;
use crate::error::Error;
use crate::problem::Problem;
use crate::select::pack::PackedMatrix;

/// The launch, and the workspace that it fills: the parts of A, those of B, then the exponents
/// of A's rows and of B's columns.
#[derive(Debug)]
pub(crate) struct Split {
    launch: OperandLaunch,
    workspace: DeviceBuffer,
}

impl Split {
    /// Loads `kernel` for the operands of `problem`, whose parts get the layouts of `packed`.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        kernel: &KernelInfo,
        problem: &Problem,
        packed: [PackedMatrix; 2],
    ) -> Result<Self, Error> {
        let layout = packed[0].layout();
        let offsets = Offsets::of(packed).ok_or(Error::SizeOverflow { layout })?;
        let workspace = DeviceBuffer::undefined(gpu, offsets.end, Streams::Any)?;
        let at = |offset: usize| workspace.address() + offset as u64;
        let [a, b] = packed.map(PackedMatrix::strides);
        let params = GemmParams {
            form: Form {
                planes: Planes::of_batch(problem.batches),
                ..Form::plain(DType::F32)
            },
            m: problem.m,
            n: problem.n,
            k: problem.k,
            batches: problem.batches,
            a: problem.a.at(0),
            b: problem.b.at(0),
            c: a.at(at(0)),
            epilogue: EpilogueArguments {
                source: b.transposed().at(at(offsets.b)),
                ..EpilogueArguments::NONE
            },
            exponents: offsets.exponents.map(at),
            ..GemmParams::NONE
        };
        Ok(Split {
            launch: OperandLaunch::new(gpu, kernel, split::grid(&params), params)?,
            workspace,
        })
    }

    /// Addresses of the parts of A and of B.
    pub(crate) fn addresses(&self) -> [u64; 2] {
        self.launch.addresses()
    }

    /// Addresses of the exponents of A's rows and of B's columns.
    pub(crate) fn exponents(&self) -> [u64; 2] {
        self.launch.exponents()
    }

    /// Bytes of the workspace.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.workspace.bytes() as u64
    }

    /// Enqueues the launch for the operands at these addresses, as [`OperandLaunch::run`] does. The
    /// context of `gpu` is current.
    ///
    /// # Safety
    /// The operands are live on `gpu`, in the planned layouts. They and this value stay allocated
    /// until the stream has finished.
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

/// Where the parts of the workspace begin, in bytes. The parts of A begin at 0.
struct Offsets {
    b: usize,
    exponents: [usize; 2],
    end: usize,
}

impl Offsets {
    /// `None` when a number exceeds `usize`.
    fn of(packed: [PackedMatrix; 2]) -> Option<Self> {
        let [a_exponents, b_exponents] = packed.map(|packed| {
            let lines = (packed.batches as usize).checked_mul(packed.lines() as usize)?;
            lines.checked_mul(size_of::<i32>())
        });
        let [a, b] = packed.map(PackedMatrix::bytes);
        // Packed matrices are whole lines of 128 bytes, so that all begin where TMA can read.
        let b_end = a?.checked_add(b?)?;
        let of_b = b_end.checked_add(a_exponents?)?;
        Some(Offsets {
            b: a?,
            exponents: [b_end, of_b],
            end: of_b.checked_add(b_exponents?)?,
        })
    }
}
