//! Packing: operands that TMA cannot read are copied, then read from the copy.
//!
//! The copy is like a packed panel of GotoBLAS and BLIS, but of a whole operand
//! (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
//! 2008): it is contiguous in the direction that the kernel reads, and its lines are a
//! multiple of 128 bytes apart.
//!
//! [`when_to_pack`](super::when_to_pack) says when it pays.

use gpu_kernels::{DType, Family, KernelInfo, Major};

use super::check;
use crate::layout::Layout;
use crate::problem::{Catalog, Problem, Strides, Target};
use crate::tma::GlobalTensor;

/// Lines of a packed operand are a multiple of this many bytes apart. TMA requires
/// only 16; but a box row of 128 bytes that straddles two cache lines is
/// fetched as two lines, which costs the hopper kernels a quarter of their speed
/// (4095×4096×4099 on an H200: 572 TFLOP/s with lines of 8208 bytes, 734 with
/// 8320).
const PITCH_BYTES: u64 = 128;

/// Whether both operands can be read 16 bytes at a time, in some direction.
pub(super) fn in_lines(problem: &Problem) -> bool {
    let majors = [Major::K, Major::Mn];
    let a = majors.map(|major| GlobalTensor::of_a(problem, major));
    let b = majors.map(|major| GlobalTensor::of_b(problem, major));
    a.iter().any(Result::is_ok) && b.iter().any(Result::is_ok)
}

/// The kernel that packs operands of type `input`; `None` if this build has none that
/// runs on `target`.
pub(crate) fn kernel_for<'a>(
    catalog: Catalog<'a>,
    input: DType,
    target: &Target,
) -> Option<&'a KernelInfo> {
    match input {
        // Copying needs only the size of the elements.
        DType::F16 | DType::Bf16 => find(catalog, Family::Pack, DType::F16, target),
        DType::F32 | DType::Tf32 => find(catalog, Family::Pack, DType::F32, target),
        DType::F16x3 => find(catalog, Family::Split, input, target),
    }
}

fn find<'a>(
    catalog: Catalog<'a>,
    family: Family,
    input: DType,
    target: &Target,
) -> Option<&'a KernelInfo> {
    let (major, minor) = target.compute_capability;
    catalog.kernels.iter().find(|kernel| {
        (kernel.family, kernel.input) == (family, input)
            && kernel.arch.runs_on(major, minor)
            && (catalog.is_built)(kernel.entry)
    })
}

/// A packed operand in its workspace. A matrix that all products of a batch share is packed
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedMatrix {
    /// Number of matrices.
    pub(crate) batches: u32,
    /// Rows of the operand.
    pub(crate) rows: u32,
    /// Columns of the operand.
    pub(crate) cols: u32,
    /// Whether the contiguous lines are rows; otherwise they are columns.
    rows_are_lines: bool,
    element_bytes: u32,
    /// Number of parts of an element. The matrix of the first parts comes first.
    parts: u32,
}

impl PackedMatrix {
    /// A of `problem`, packed for `kernel`.
    pub(crate) fn of_a(kernel: &KernelInfo, problem: &Problem) -> Self {
        PackedMatrix {
            batches: matrices(problem, &problem.a),
            rows: problem.m,
            cols: problem.k,
            rows_are_lines: check::a_major(kernel, problem) == Major::K,
            element_bytes: kernel.input.factor().bytes(),
            parts: kernel.input.parts(),
        }
    }

    /// B of `problem`, packed for `kernel`.
    pub(crate) fn of_b(kernel: &KernelInfo, problem: &Problem) -> Self {
        PackedMatrix {
            batches: matrices(problem, &problem.b),
            rows: problem.k,
            cols: problem.n,
            rows_are_lines: check::b_major(kernel, problem) == Major::Mn,
            element_bytes: kernel.input.factor().bytes(),
            parts: kernel.input.parts(),
        }
    }

    /// Elements from one line to the next: a line, rounded up to [`PITCH_BYTES`].
    fn pitch(self) -> u64 {
        u64::from(self.length()).next_multiple_of(PITCH_BYTES / u64::from(self.element_bytes))
    }

    /// Number of contiguous lines of one matrix.
    pub(crate) fn lines(self) -> u32 {
        if self.rows_are_lines {
            self.rows
        } else {
            self.cols
        }
    }

    /// Elements of a line.
    fn length(self) -> u32 {
        if self.rows_are_lines {
            self.cols
        } else {
            self.rows
        }
    }

    /// Elements of one matrix in the workspace, with all parts; they are less than 2⁶⁵.
    fn elements(self) -> u128 {
        u128::from(self.pitch()) * u128::from(self.lines()) * u128::from(self.parts)
    }

    /// Bytes of the workspace; `None` when the number exceeds `usize`.
    pub(crate) fn bytes(self) -> Option<usize> {
        let elements = self.elements().checked_mul(self.batches.into())?;
        let bytes = elements.checked_mul(self.element_bytes.into())?;
        usize::try_from(bytes).ok()
    }

    /// The strides of the operand in its workspace.
    pub(crate) fn strides(self) -> Strides {
        let matrix = if self.rows_are_lines {
            Strides::new(self.pitch(), 1)
        } else {
            Strides::new(1, self.pitch())
        };
        Strides {
            // Saturated only where the workspace is too large for any memory.
            batch_stride: match self.batches {
                0 | 1 => 0,
                _ => u64::try_from(self.elements()).unwrap_or(u64::MAX),
            },
            ..matrix
        }
    }

    /// Shape and strides of the packed operand, for error messages.
    pub(crate) fn layout(self) -> Layout {
        let strides = self.strides();
        Layout {
            rows: self.rows as usize,
            cols: self.cols as usize,
            row_stride: strides.row_stride as usize,
            col_stride: strides.col_stride as usize,
            batches: self.batches as usize,
            batch_stride: strides.batch_stride as usize,
        }
    }
}

/// Number of different matrices in an operand of `problem`.
pub(super) fn matrices(problem: &Problem, operand: &Strides) -> u32 {
    if operand.batch_stride == 0 {
        problem.batches.min(1)
    } else {
        problem.batches
    }
}
