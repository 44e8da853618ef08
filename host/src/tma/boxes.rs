//! The boxes of the operands that a hopper kernel copies at once.

use gpu_kernels::kernels::hopper::{box_depth, box_rows, last_box_rows, last_cols, store_rows};
use gpu_kernels::{DType, Family, KernelInfo, Major};

use super::BOX_BYTES;
use crate::problem::Problem;

/// The box of A, of `m` rows, that `kernel` copies at once, contiguous direction
/// first.
pub fn a_box(kernel: &KernelInfo, major: Major, m: u32) -> [u32; 2] {
    match major {
        Major::K => [
            box_width(kernel.input),
            box_rows(kernel.block.m, kernel.cluster.n, m),
        ],
        Major::Mn => box_along_mn(kernel.input, kernel.block.m, kernel.cluster.n),
    }
}

/// The box of A, of `m` rows, in the last of `kernel`'s tiles along M; `None` where it is
/// that of the others.
pub fn last_a_box(kernel: &KernelInfo, major: Major, m: u32) -> Option<[u32; 2]> {
    let rows = last_box_rows(kernel.block.m, kernel.cluster.n, m)?;
    (major == Major::K).then(|| [box_width(kernel.input), rows])
}

/// The box of B of `problem` in the last of `kernel`'s tiles along N; `None` where it is that of
/// the others.
pub fn last_b_box(kernel: &KernelInfo, major: Major, problem: &Problem) -> Option<[u32; 2]> {
    let rows = last_box_rows(kernel.block.n, kernel.cluster.m, problem.n)?;
    let is_cut = major == Major::K && problem.epilogue.gated.is_none();
    is_cut.then(|| [box_width(kernel.input), rows])
}

/// The box of B of `problem` that `kernel` copies at once, contiguous
/// direction first.
pub fn b_box(kernel: &KernelInfo, major: Major, problem: &Problem) -> [u32; 2] {
    match major {
        // Each plane of a gated B fills half of a tile.
        Major::K if problem.epilogue.gated.is_some() => {
            [box_width(kernel.input), kernel.block.n / 2]
        }
        Major::K => [
            box_width(kernel.input),
            box_rows(kernel.block.n, kernel.cluster.m, problem.n),
        ],
        Major::Mn => box_along_mn(kernel.input, kernel.block.n, kernel.cluster.m),
    }
}

/// The box of an operand contiguous along M or N, whose `tile` rows or columns `sharing` CTAs load
/// together.
fn box_along_mn(input: DType, tile: u32, sharing: u32) -> [u32; 2] {
    let width = box_width(input);
    [width, box_depth(tile, sharing, width)]
}

/// Number of elements of type `dtype` across a box.
fn box_width(dtype: DType) -> u32 {
    BOX_BYTES / dtype.factor().bytes()
}

/// The box of C, of elements `dtype`, that `kernel` writes at once, contiguous
/// direction first.
pub fn c_box(kernel: &KernelInfo, dtype: DType) -> [u32; 2] {
    let lines = match kernel.c_along_m {
        true => box_width(dtype),
        false => store_rows(kernel.cluster),
    };
    [box_width(dtype), lines]
}

/// The box of C, of elements `dtype`, that `kernel` writes at the end of a row of a consumer's part of a
/// tile, whose width is no multiple of 64, contiguous direction first; `None` for other tiles.
pub fn last_c_box(kernel: &KernelInfo, dtype: DType) -> Option<[u32; 2]> {
    let is_narrower = kernel.family == Family::Hopper && !kernel.consumer_n.is_multiple_of(64);
    let columns = last_cols(kernel.consumer_n);
    is_narrower.then(|| match kernel.c_along_m {
        true => [box_width(dtype), columns],
        false => [columns, store_rows(kernel.cluster)],
    })
}
