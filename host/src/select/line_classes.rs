//! How a launch divides the lines of an operand into classes of those that begin at the same place
//! in a cache line ([`hopper::line_classes`](gpu_kernels::kernels::hopper::line_classes)): which
//! numbers of classes a kernel can take, and the product as the kernel then sees it.

use gpu_kernels::epilogue::SourceUse;
use gpu_kernels::{KernelInfo, TileGrid};

use super::check::check_tma;
use super::choice::{Choice, Packed};
use super::grid::tile_grid;
use crate::epilogue_form::Bias;
use crate::problem::{CACHE_LINE, Problem, Strides};
use crate::rejection::Rejection;

/// The numbers of classes, but for one, that is none. With eight, all lines of a class begin at the
/// same place whatever the pitch, because TMA takes multiples of 16 bytes.
const COUNTS: [u32; 3] = [2, 4, 8];

/// Whether lines can be divided into so many classes, of whatever problem.
pub(crate) fn exist(classes: u32) -> bool {
    classes == 1 || COUNTS.contains(&classes)
}

/// Checks that `kernel` can divide the lines of `problem`, as it sees it, into `classes` classes.
///
/// # Errors
/// [`Rejection::LineClasses`]; [`Rejection::Tma`] or [`Rejection::Output`] where the lines of a class
/// are too far apart.
pub(super) fn check(
    kernel: &KernelInfo,
    problem: &Problem,
    packed: Packed,
    classes: u32,
) -> Result<(), Rejection> {
    let reason = match () {
        () if classes == 1 => return Ok(()),
        () if !exist(classes) => "there are 1, 2, 4 or 8 classes",
        () if !kernel.line_classes => "the kernel does not read lines along K through TMA",
        () if packed_lines(kernel, packed) => "the operand is packed",
        () if problem.batches != 1 => "there is a batch",
        () if !lines(kernel, problem).is_multiple_of(classes) => {
            "the lines are no multiple of their number"
        }
        () if reads_by_line(kernel, problem) => "the epilogue has terms for each line, or a source",
        // The lines of a class are further apart.
        () => return check_tma(kernel, &as_batch(kernel, problem, classes)),
    };
    Err(Rejection::LineClasses { classes, reason })
}

/// The numbers of classes with which fewer lines straddle, for a kernel that can take them. Lines of
/// which none straddles have none.
pub(super) fn counts(
    kernel: &KernelInfo,
    problem: &Problem,
    packed: Packed,
) -> impl Iterator<Item = u32> {
    let operand = operand(kernel, problem);
    let aligned = move |classes: u32| {
        let bytes = u64::from(kernel.input.factor().bytes());
        let pitch = pitch(kernel, operand).wrapping_mul(u64::from(classes) * bytes);
        Strides::alignment_of(pitch | operand.alignment)
    };
    COUNTS.into_iter().filter(move |&classes| {
        aligned(classes) > aligned(classes / 2) && check(kernel, problem, packed, classes).is_ok()
    })
}

/// The tiles of all classes.
pub(super) fn grid(kernel: &KernelInfo, problem: &Problem, classes: u32) -> TileGrid {
    match (classes, kernel.c_along_m) {
        (1, _) => tile_grid(kernel, problem.m, problem.n),
        (_, false) => {
            let of_class = tile_grid(kernel, problem.m / classes, problem.n);
            TileGrid {
                tiles_m: of_class.tiles_m * classes,
                ..of_class
            }
        }
        (_, true) => {
            let of_class = tile_grid(kernel, problem.m, problem.n / classes);
            TileGrid {
                tiles_n: of_class.tiles_n * classes,
                ..of_class
            }
        }
    }
}

/// Tiles of the grid of `choice` along the lines of one class.
pub(crate) fn tiles_of_class(choice: &Choice) -> u32 {
    let along_lines = match choice.kernel.c_along_m {
        false => choice.grid.tiles_m,
        true => choice.grid.tiles_n,
    };
    along_lines / choice.line_classes
}

/// K as the kernel counts it: with the part of a line that stands before the first element, in
/// that class where it is longest.
pub(crate) fn depth(kernel: &KernelInfo, problem: &Problem, classes: u32) -> u32 {
    let line = CACHE_LINE / u64::from(kernel.input.factor().bytes());
    let pitch = pitch(kernel, operand(kernel, problem)) % line;
    let offsets = (0..u64::from(classes)).map(|class| class * pitch % line);
    problem.k + offsets.max().unwrap_or(0) as u32
}

/// The product as a batch of its classes: the operand and C have planes one line apart, and
/// lines `classes` lines apart.
pub(crate) fn as_batch(kernel: &KernelInfo, problem: &Problem, classes: u32) -> Problem {
    if classes == 1 {
        return *problem;
    }
    let along_m = |strides: Strides| Strides {
        row_stride: strides.row_stride.saturating_mul(classes.into()),
        batch_stride: strides.row_stride,
        ..strides
    };
    let along_n = |strides: Strides| along_m(strides.transposed()).transposed();
    match kernel.c_along_m {
        false => Problem {
            m: problem.m / classes,
            batches: classes,
            a: along_m(problem.a),
            c: along_m(problem.c),
            ..*problem
        },
        true => Problem {
            n: problem.n / classes,
            batches: classes,
            b: along_n(problem.b),
            c: along_n(problem.c),
            ..*problem
        },
    }
}

/// `problem` with the pitch between the lines of a class, for what depends on where lines begin.
pub(super) fn aligned(kernel: &KernelInfo, problem: &Problem, classes: u32) -> Problem {
    let batch = as_batch(kernel, problem, classes);
    Problem {
        a: Strides {
            batch_stride: problem.a.batch_stride,
            ..batch.a
        },
        b: Strides {
            batch_stride: problem.b.batch_stride,
            ..batch.b
        },
        ..*problem
    }
}

/// The operand whose lines are lines of C: A, or B where C is contiguous along M.
fn operand(kernel: &KernelInfo, problem: &Problem) -> Strides {
    match kernel.c_along_m {
        false => problem.a,
        true => problem.b,
    }
}

fn lines(kernel: &KernelInfo, problem: &Problem) -> u32 {
    match kernel.c_along_m {
        false => problem.m,
        true => problem.n,
    }
}

/// Elements from one line of the operand to the next.
fn pitch(kernel: &KernelInfo, operand: Strides) -> u64 {
    match kernel.c_along_m {
        false => operand.row_stride,
        true => operand.col_stride,
    }
}

fn packed_lines(kernel: &KernelInfo, packed: Packed) -> bool {
    match kernel.c_along_m {
        false => packed.a,
        true => packed.b,
    }
}

/// Whether the epilogue has what differs from line to line, whose places a kernel does not know.
fn reads_by_line(kernel: &KernelInfo, problem: &Problem) -> bool {
    let form = &problem.epilogue;
    let (bias, scale) = match kernel.c_along_m {
        false => (Bias::PerRow, form.row_scale),
        true => (Bias::PerColumn, form.col_scale),
    };
    form.source != SourceUse::None || form.bias == Some(bias) || scale || form.gated.is_some()
}
