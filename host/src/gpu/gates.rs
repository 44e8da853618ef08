//! The first of the two launches of a gated product: it computes the gates into a workspace,
//! which the second launch reads as its source.

use std::sync::Arc;

use gpu_kernels::{DType, OutputType};

use super::backend::Streams;
use super::buffer::DeviceBuffer;
use super::epilogue::BoundEpilogue;
use super::opened::Gpu;
use super::operand_launch::OperandLaunch;
use super::pack;
use super::product::{ProductLaunch, Run};
use super::run_order::Turn;
use crate::epilogue_form::{Bias, Gated};
use crate::error::Error;
use crate::layout::Layout;
use crate::plan_info::Origin;
use crate::problem::{CACHE_LINE, Problem, Strides};
use crate::select::choice::Choice;
use crate::select::pack::kernel_for;

/// The launch of the gates, and their workspace.
#[derive(Debug)]
pub(super) struct Gates {
    gpu: Arc<Gpu>,
    launch: ProductLaunch,
    workspace: DeviceBuffer,
    /// The strides of the gates, in the orientation of C.
    strides: Strides,
    /// Bytes of B from the first gate column to the first other column.
    up_offset: u64,
    bias: Columns,
    col_scale: Columns,
}

impl Gates {
    /// The launch for `problem`, a gated one, whose `half` is computed as `choice` says.
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        choice: Choice,
        problem: &Problem,
        half: &Problem,
    ) -> Result<Self, Error> {
        let form = &problem.epilogue;
        let gated = form.gated.expect("only gated products have gates");
        let layout = layout_of_gates(half, choice.transposed);
        let bytes = layout
            .allocation(DType::F32.bytes() as usize)
            .ok_or(Error::SizeOverflow { layout })?
            * DType::F32.bytes() as usize;
        let workspace = DeviceBuffer::undefined(gpu, bytes, Streams::Any)?;
        let strides = Strides {
            batch_stride: layout.batch_stride as u64,
            ..Strides::new(layout.row_stride as u64, layout.col_stride as u64)
        };
        let of_gates = Problem {
            output: OutputType::F32,
            c: strides,
            epilogue: form.of_gates(problem.output_dtype()),
            ..*half
        };
        let columns = |is_there: bool, dtype| match is_there {
            true => Columns::new(gpu, gated, half.n, dtype),
            false => Ok(Columns::None),
        };
        Ok(Gates {
            gpu: gpu.clone(),
            launch: ProductLaunch::new(gpu, choice, &of_gates)?,
            workspace,
            strides,
            up_offset: problem.up_offset(gated) * u64::from(problem.input.bytes()),
            bias: columns(form.bias == Some(Bias::PerColumn), problem.output_dtype())?,
            col_scale: columns(form.col_scale, DType::F32)?,
        })
    }

    /// Bytes of all workspaces.
    pub(super) fn workspace_bytes(&self) -> u64 {
        self.launch.info(Origin::Rule).workspace_bytes
            + self.workspace.bytes() as u64
            + self.bias.workspace_bytes()
            + self.col_scale.workspace_bytes()
    }

    /// Enqueues the gates of `run` on the stream of `turn`. Returns the operands of the second launch.
    ///
    /// # Safety
    /// As for [`ProductLaunch::run`].
    pub(super) unsafe fn run(&mut self, turn: Turn, run: &Run) -> Result<Run, Error> {
        let epilogue = &run.epilogue;
        // SAFETY: the caller ensures it; the workspaces belong to `self`.
        let ([gate_bias, up_bias], [gate_scale, up_scale]) = unsafe {
            (
                self.bias.split(&self.gpu, turn, epilogue.bias)?,
                self.col_scale.split(&self.gpu, turn, epilogue.col_scale)?,
            )
        };
        let gates = Run {
            c: self.workspace.address(),
            epilogue: BoundEpilogue {
                bias: gate_bias,
                col_scale: gate_scale,
                ..*epilogue
            },
            ..*run
        };
        // SAFETY: as above.
        unsafe { self.launch.run(turn, &gates) }?;
        Ok(Run {
            b: run.b + self.up_offset,
            epilogue: BoundEpilogue {
                source: Some((self.strides, self.workspace.address())),
                bias: up_bias,
                col_scale: up_scale,
                ..*epilogue
            },
            ..*run
        })
    }
}

/// The layout of the gates of `half`, in the orientation of C: contiguous along the rows that
/// the kernel sees, which are on cache lines.
fn layout_of_gates(half: &Problem, is_transposed: bool) -> Layout {
    let (m, n) = (half.m as usize, half.n as usize);
    let pitch = |line: usize| line.next_multiple_of((CACHE_LINE / 4) as usize);
    let matrix = if is_transposed {
        Layout::strided(m, n, 1, pitch(m))
    } else {
        Layout::strided(m, n, pitch(n), 1)
    };
    matrix.batched(half.batches as usize).normalized()
}

/// A vector with an element for each column of a gated product.
#[derive(Debug)]
enum Columns {
    /// There is no such vector, or it has an element for each row.
    None,
    /// The gates have the first half of it, of so many bytes.
    Halves(u64),
    /// Elements alternate, and are copied apart.
    Interleaved(Box<Apart>),
}

impl Columns {
    /// A vector of 2·`half` elements of `dtype`.
    fn new(gpu: &Arc<Gpu>, gated: Gated, half: u32, dtype: DType) -> Result<Self, Error> {
        match gated {
            Gated::Halves => Ok(Columns::Halves(u64::from(half) * u64::from(dtype.bytes()))),
            Gated::Interleaved if half == 0 => Ok(Columns::None),
            Gated::Interleaved => {
                let apart = Apart::new(gpu, half, dtype)?;
                Ok(Columns::Interleaved(Box::new(apart)))
            }
        }
    }

    fn workspace_bytes(&self) -> u64 {
        match self {
            Columns::None | Columns::Halves(_) => 0,
            Columns::Interleaved(apart) => apart.workspace.bytes() as u64,
        }
    }

    /// The addresses of the elements of the gates, and of the others, of the vector at
    /// `address`. Enqueues a copy where elements alternate.
    ///
    /// # Safety
    /// The vector is live, and stays allocated until the stream has finished.
    unsafe fn split(&self, gpu: &Gpu, turn: Turn, address: u64) -> Result<[u64; 2], Error> {
        match self {
            Columns::None => Ok([address; 2]),
            Columns::Halves(bytes) => Ok([address, address + bytes]),
            Columns::Interleaved(apart) => {
                // SAFETY: the caller ensures it.
                unsafe { apart.copy.run(gpu, turn.stream(), [address, 0]) }?;
                let gates = apart.workspace.address();
                Ok([gates, gates + apart.pitch])
            }
        }
    }
}

/// The launch that copies the elements of a vector apart, and their workspace.
#[derive(Debug)]
struct Apart {
    copy: OperandLaunch,
    /// The elements of the gates, then the others.
    workspace: DeviceBuffer,
    /// Bytes from the former to the latter.
    pitch: u64,
}

impl Apart {
    /// A copy of a vector of 2·`half` elements of `dtype`.
    fn new(gpu: &Arc<Gpu>, half: u32, dtype: DType) -> Result<Self, Error> {
        let catalog = gpu.backend().catalog();
        let kernel = kernel_for(catalog, DType::F16, &gpu.info().target());
        let kernel = kernel.ok_or_else(|| Error::NoKernel {
            asked: "a copy of 16-bit elements".into(),
            rejected: Vec::new(),
        })?;
        // The kernel copies 16 bits at a time. An element is a row of as many columns as it
        // takes, and the elements of the gates and the others are two matrices.
        let words = u64::from(dtype.bytes()) / 2;
        let pitch = (u64::from(half) * words * 2).next_multiple_of(CACHE_LINE);
        let workspace = DeviceBuffer::undefined(gpu, 2 * pitch as usize, Streams::Any)?;
        let strides = |batch_stride, row_stride| Strides {
            batch_stride,
            ..Strides::new(row_stride, 1)
        };
        let from = strides(words, 2 * words);
        let to = strides(pitch / 2, words).at(workspace.address());
        let shape = (2, half, words as u32);
        Ok(Apart {
            copy: pack::copy(gpu, kernel, shape, from, to)?,
            workspace,
            pitch,
        })
    }
}
