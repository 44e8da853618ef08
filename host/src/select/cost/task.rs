//! What a kernel has to compute.

use gpu_kernels::{Family, KernelInfo, TileGrid};

use crate::epilogue_form::EpilogueForm;
use crate::problem::{CACHE_LINE, Problem};
use crate::select::choice::Packed;
use crate::select::{check, pack};
use crate::tma::{GlobalTensor, Unreadable};

/// The operands whose lines begin in the middle of a cache line, so that each 128 bytes
/// of them touch two cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MidLine {
    /// A.
    pub a: bool,
    /// B.
    pub b: bool,
}

impl MidLine {
    /// The flags for `kernel` and the operands of `problem`. Only kernels that read
    /// through TMA count. Packed operands begin on cache lines.
    pub(crate) fn of(kernel: &KernelInfo, problem: &Problem, packed: Packed) -> Self {
        if !kernel.loads_by_tma {
            return MidLine::default();
        }
        let is = |tensor: Result<GlobalTensor, Unreadable>, alignment: u64| {
            tensor.is_ok_and(|tensor| !(alignment | tensor.pitch_bytes).is_multiple_of(CACHE_LINE))
        };
        let a = GlobalTensor::of_a(problem, check::a_major(kernel, problem));
        let b = GlobalTensor::of_b(problem, check::b_major(kernel, problem));
        MidLine {
            a: !packed.a && is(a, problem.a.alignment),
            b: !packed.b && is(b, problem.b.alignment),
        }
    }
}

/// What a kernel has to compute, as it sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The (cluster) tiles of one product.
    pub grid: TileGrid,
    /// Number of products.
    pub batches: u32,
    /// Depth of the products.
    pub k: u32,
    /// Rows of A and columns of B.
    pub rows: u32,
    /// See [`Task::rows`].
    pub columns: u32,
    /// Number of different matrices in A and in B: one where all products share it.
    pub matrices: [u32; 2],
    /// The operands whose lines begin in the middle of a cache line.
    pub mid_line: MidLine,
    /// Whether the kernel reads an operand element by element, as tensor_core does where
    /// lines are no multiples of 16 bytes.
    pub by_element: bool,
    /// What is done to the products.
    pub epilogue: EpilogueForm,
}

impl Task {
    /// `kernel`'s task if it runs `problem` in tiles of `grid`.
    pub(crate) fn of(
        kernel: &KernelInfo,
        problem: &Problem,
        grid: TileGrid,
        packed: Packed,
    ) -> Task {
        Task {
            grid,
            batches: problem.batches,
            k: problem.k,
            rows: problem.m,
            columns: problem.n,
            matrices: [&problem.a, &problem.b].map(|operand| pack::matrices(problem, operand)),
            mid_line: MidLine::of(kernel, problem, packed),
            by_element: kernel.family == Family::TensorCore && !pack::in_lines(problem),
            epilogue: problem.epilogue,
        }
    }
}
