//! What a kernel has to compute.

use gpu_kernels::{Family, KernelInfo, TileGrid};

use crate::epilogue_form::EpilogueForm;
use crate::problem::{CACHE_LINE, Problem, SECTOR, Strides};
use crate::select::choice::Packed;
use crate::select::{check, line_classes, pack};
use crate::tma::{GlobalTensor, Unreadable};

/// What the addresses of the lines of A, B and C are multiples of, in bytes, up to a cache line.
/// Where it is less than a line, some of the 128 bytes that are read or written at once touch two
/// cache lines; where it is less than a sector of 32 bytes, some touch five sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Of A.
    pub a: u64,
    /// Of B.
    pub b: u64,
    /// Of C.
    pub c: u64,
}

impl Alignment {
    /// Every line begins on a cache line.
    pub const CACHE_LINES: Alignment = Alignment {
        a: CACHE_LINE,
        b: CACHE_LINE,
        c: CACHE_LINE,
    };

    /// The alignment of the lines that `kernel` reads and writes in `problem`. Operands count that it
    /// reads through TMA. Packed operands begin on cache lines.
    pub(crate) fn of(kernel: &KernelInfo, problem: &Problem, packed: Packed) -> Self {
        if !kernel.loads_by_tma {
            return Alignment::CACHE_LINES;
        }
        let read = |tensor: Result<GlobalTensor, Unreadable>, address: u64, is_packed: bool| {
            match tensor {
                Ok(tensor) if !is_packed => Strides::alignment_of(address | tensor.pitch_bytes),
                _ => CACHE_LINE,
            }
        };
        let a = GlobalTensor::of_a(problem, check::a_major(kernel, problem));
        let b = GlobalTensor::of_b(problem, check::b_major(kernel, problem));
        let Strides {
            row_stride,
            col_stride,
            alignment,
            ..
        } = problem.c;
        let bytes = u64::from(problem.output_dtype().bytes());
        let pitch = row_stride.max(col_stride).saturating_mul(bytes);
        Alignment {
            a: read(a, problem.a.alignment, packed.a),
            b: read(b, problem.b.alignment, packed.b),
            c: Strides::alignment_of(alignment | pitch),
        }
    }
}

/// The share of lines of this alignment that begin in the middle of a cache line, times
/// [`CACHE_LINE`].
pub(super) fn in_mid_line(alignment: u64) -> u64 {
    CACHE_LINE - alignment.min(CACHE_LINE)
}

/// The share of them that begin in the middle of a sector, times [`SECTOR`].
pub(super) fn in_mid_sector(alignment: u64) -> u64 {
    SECTOR - alignment.min(SECTOR)
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
    /// What the lines of A, B and C are aligned to.
    pub alignment: Alignment,
    /// Whether the kernel reads an operand element by element, as tensor_core does where
    /// lines are no multiples of 16 bytes.
    pub by_element: bool,
    /// Number of classes of lines; 1 are none.
    pub line_classes: u32,
    /// What is done to the products.
    pub epilogue: EpilogueForm,
}

impl Task {
    /// `kernel`'s task if it runs `problem`, with lines in so many classes.
    pub(crate) fn of(kernel: &KernelInfo, problem: &Problem, packed: Packed, classes: u32) -> Task {
        let aligned = line_classes::aligned(kernel, problem, classes);
        Task {
            grid: line_classes::grid(kernel, problem, classes),
            batches: problem.batches,
            k: line_classes::depth(kernel, problem, classes),
            rows: problem.m,
            columns: problem.n,
            matrices: [&problem.a, &problem.b].map(|operand| pack::matrices(problem, operand)),
            alignment: Alignment::of(kernel, &aligned, packed),
            line_classes: classes,
            by_element: kernel.family == Family::TensorCore && !pack::in_lines(problem),
            epilogue: problem.epilogue,
        }
    }
}
