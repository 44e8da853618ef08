//! Packing: operands that TMA cannot read are copied, then read from the copy.
//!
//! The copy is like a packed panel of GotoBLAS and BLIS, but of a whole operand
//! (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
//! 2008): it is contiguous in the direction that the kernel reads, and its lines are a
//! multiple of 128 bytes apart.
//!
//! **When it pays.** Packing A moves 2·M·K elements through DRAM, and lets the faster
//! kernel do 2·M·N·K operations. Both grow with M·K, so N decides for A, and M decides
//! for B.
//!
//! - Where the alternative is tensor_core's element by element path, packing pays from a
//!   K of about 100 on, down to the narrowest C that was measured, 65 columns, and from a K
//!   of 64 on for wide ones. On an H200, bf16, cold: 4001×65×2001 takes 39 µs packed and
//!   180 µs by elements, 287×221×311 14 and 34, 3766×210×98 15.5 and 16.8; but 205×179×63
//!   takes 14 and 12, and 1669×165×41 15 and 12 ([`ELEMENTS_PAY`]; `docs/perf-log.md`,
//!   "Shapes nobody tuned for").
//! - Where tensor_core could copy the operand 16 bytes at a time, and hopper
//!   only needs it rounded or in another direction (TF32 is always packed), the
//!   gain is smaller: 170 TFLOP/s against 360 at 4096³. With a copy at 2.7 TB/s (two
//!   4096×4096 f16 matrices, read and written, take about 0.05 ms on an H200), packing
//!   breaks even at about N = 1000, for both operands, and the threshold has a margin:
//!   [`LINES_PAY`].

use gpu_kernels::{DType, Family, KernelInfo, Major};

use super::check;
use super::choice::{Packed, Packing, Request};
use crate::layout::Layout;
use crate::problem::{Catalog, Problem, Strides, Target};
use crate::rejection::Rejection;
use crate::tma::GlobalTensor;

/// From which K and which reuse on packing pays: the smallest N for A, and the smallest M for
/// B.
struct Pays {
    k: u32,
    reuse: u32,
}

/// Where the operands would otherwise be read element by element: either is enough.
const ELEMENTS_PAY: [Pays; 2] = [Pays { k: 64, reuse: 256 }, Pays { k: 96, reuse: 64 }];

/// Where both operands could otherwise be read in whole lines. The launch of the copy takes as
/// long as a k-block.
const LINES_PAY: [Pays; 1] = [Pays { k: 64, reuse: 2048 }];

/// Lines of a packed operand are a multiple of this many bytes apart. TMA requires
/// only 16; but a box row of 128 bytes that straddles two cache lines is
/// fetched as two lines, which costs the hopper kernels a quarter of their speed
/// (4095×4096×4099 on an H200: 572 TFLOP/s with lines of 8208 bytes, 734 with
/// 8320).
const PITCH_BYTES: u64 = 128;

/// The operands that must be packed for `kernel` to run `problem`.
///
/// # Errors
/// The reason why the kernel cannot run; [`Rejection::Tma`] where TMA cannot read an
/// operand and packing is not possible, not allowed, or does not pay.
pub(super) fn needed(
    catalog: Catalog,
    kernel: &KernelInfo,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Packed, Rejection> {
    let refused = match check::check(catalog, kernel, problem, target) {
        Ok(()) => return Ok(Packed::default()),
        Err(reason @ Rejection::Tma { .. }) => reason,
        Err(reason) => return Err(reason),
    };
    // The pack kernel rounds to TF32 while it copies.
    let rounds = kernel.input == DType::Tf32;
    let packed = Packed {
        a: rounds || GlobalTensor::of_a(problem, check::a_major(kernel, problem)).is_err(),
        b: rounds || GlobalTensor::of_b(problem, check::b_major(kernel, problem)).is_err(),
    };
    // A packed B whose lines are rows still has the columns of gated pairs side by side.
    if packed.b && problem.epilogue.gated.is_some() && kernel.b_major == Some(Major::Mn) {
        return Err(refused);
    }
    let is_forced = request.kernel.is_some() || request.family.is_some();
    if request.packing == Packing::Auto
        && (is_forced || pays(packed, problem))
        && kernel_for(catalog, problem.input, target).is_some()
    {
        Ok(packed)
    } else {
        Err(refused)
    }
}

/// Whether packing pays, by the thresholds of this module.
fn pays(packed: Packed, problem: &Problem) -> bool {
    let thresholds: &[Pays] = if in_lines(problem) {
        &LINES_PAY
    } else {
        &ELEMENTS_PAY
    };
    thresholds.iter().any(|&Pays { k, reuse }| {
        problem.k >= k && (!packed.a || problem.n >= reuse) && (!packed.b || problem.m >= reuse)
    })
}

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
    let copies = match input {
        // Copying needs only the size of the elements.
        DType::F16 | DType::Bf16 => DType::F16,
        DType::F32 | DType::Tf32 => input,
    };
    let (major, minor) = target.compute_capability;
    catalog.kernels.iter().find(|kernel| {
        kernel.family == Family::Pack
            && kernel.input == copies
            && kernel.arch.runs_on(major, minor)
            && (catalog.is_built)(kernel.name)
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
}

impl PackedMatrix {
    /// A of `problem`, packed for `kernel`.
    pub(crate) fn of_a(kernel: &KernelInfo, problem: &Problem) -> Self {
        PackedMatrix {
            batches: matrices(problem, &problem.a),
            rows: problem.m,
            cols: problem.k,
            rows_are_lines: check::a_major(kernel, problem) == Major::K,
            element_bytes: problem.input.bytes(),
        }
    }

    /// B of `problem`, packed for `kernel`.
    pub(crate) fn of_b(kernel: &KernelInfo, problem: &Problem) -> Self {
        PackedMatrix {
            batches: matrices(problem, &problem.b),
            rows: problem.k,
            cols: problem.n,
            rows_are_lines: check::b_major(kernel, problem) == Major::Mn,
            element_bytes: problem.input.bytes(),
        }
    }

    /// Elements from one line to the next: a line, rounded up to [`PITCH_BYTES`].
    fn pitch(self) -> u64 {
        let line = if self.rows_are_lines {
            self.cols
        } else {
            self.rows
        };
        u64::from(line).next_multiple_of(PITCH_BYTES / u64::from(self.element_bytes))
    }

    /// Elements of one matrix in the workspace; they are less than 2⁶⁴.
    fn elements(self) -> u64 {
        let lines = if self.rows_are_lines {
            self.rows
        } else {
            self.cols
        };
        self.pitch() * u64::from(lines)
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
            batch_stride: if self.batches > 1 { self.elements() } else { 0 },
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
fn matrices(problem: &Problem, operand: &Strides) -> u32 {
    if operand.batch_stride == 0 {
        problem.batches.min(1)
    } else {
        problem.batches
    }
}
