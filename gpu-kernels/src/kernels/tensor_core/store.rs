//! Registers to C, through shared memory.
//!
//! Accumulator registers hold two columns of rows eight apart, in an order
//! that suits the tensor core. Each warp lays its tile out in shared memory
//! and reads it back in the order of C. So stores are whole lines, and the code
//! is a short loop instead of an unrolled store (with its address, masks and
//! conversion) for each register.

use crate::dtype::DType;
use crate::epilogue::{self, Epilogue};
use crate::isa::{global, shared, thread};
use crate::problem::GemmParams;
use crate::tensor_ref::TensorRef;

use super::fragment::Accumulators;
use super::layout::{WARP, accumulator_position, staging_offset};
use super::main_loop::MainLoop;
use crate::unroll::unroll;

/// A warp's tile: its place in C and its size.
#[derive(Clone, Copy)]
pub struct WarpTile {
    /// First row of C.
    pub row: u32,
    /// First column of C.
    pub col: u32,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

/// Shared memory that only one warp uses, for accumulators on their way to C.
#[derive(Clone, Copy)]
pub struct Staging {
    /// Address of the first byte.
    pub address: u32,
    /// Rows of the warp's tile that it holds at once; a divisor of the tile's.
    pub rows: u32,
}

/// Stores the part of the tile that lies inside C of product `batch`, by the instructions of
/// the target of `L`. Where `staging` is smaller than the tile, its rows are staged in parts.
///
/// # Safety
/// All lanes of the warp execute it; `staging` has room for `4 · width` bytes of each of its
/// rows; `params.c` describes live allocations.
#[inline(always)]
pub unsafe fn store<L: MainLoop>(
    params: &GemmParams,
    batch: u32,
    tile: WarpTile,
    lane: u32,
    staging: Staging,
    c: &Accumulators,
) {
    let mut first = 0;
    loop {
        let part = WarpTile {
            row: tile.row + first,
            height: staging.rows,
            ..tile
        };
        // SAFETY: the part lies in the tile; the rest is the caller's duty.
        unsafe {
            stage(tile, first, lane, staging, c);
            thread::sync_warp();
            store_part::<L>(params, batch, part, lane, staging.address);
        }
        // The first condition is a constant, without which LLVM keeps a loop of one part.
        if staging.rows == tile.height || first + staging.rows == tile.height {
            return;
        }
        // The next part overwrites what other lanes still read.
        // SAFETY: all lanes execute this.
        unsafe { thread::sync_warp() };
        first += staging.rows;
    }
}

/// Writes the accumulators of `staging.rows` rows, from row `first` of the tile on, to shared
/// memory.
///
/// # Safety
/// See [`store`].
#[inline(always)]
unsafe fn stage(tile: WarpTile, first: u32, lane: u32, staging: Staging, c: &Accumulators) {
    let (row, col) = accumulator_position(lane, 0);
    let Staging {
        address: staging,
        rows,
    } = staging;
    unroll!(I < 4, {
        let is_in_part = 16 * I as u32 / rows * rows == first;
        unroll!(J < 8, {
            let (first_row, first_col) = (16 * I as u32 % rows, 8 * J as u32);
            if is_in_part && 16 * (I as u32) < tile.height && first_col < tile.width {
                let [x, y, z, w] = c[I][J];
                let (row, col) = (first_row + row, first_col + col);
                // SAFETY: inside the warp's staging area.
                unsafe {
                    shared::store_f32x2(staging + staging_offset(row, col, tile.width), [x, y]);
                    shared::store_f32x2(staging + staging_offset(row + 8, col, tile.width), [z, w]);
                }
            }
        });
    });
}

/// Stores the part of a warp's tile that is staged.
///
/// # Safety
/// See [`store`].
#[inline(always)]
unsafe fn store_part<L: MainLoop>(
    params: &GemmParams,
    batch: u32,
    tile: WarpTile,
    lane: u32,
    staging: u32,
) {
    let rows = params.m.saturating_sub(tile.row).min(tile.height);
    let cols = params.n.saturating_sub(tile.col).min(tile.width);
    let c = &epilogue::c_of(params, batch);
    let pair_bytes = 2 * params.form.output.bytes() as u64;
    let in_pairs = c.col_stride == 1
        && (c.address | (c.row_stride * (pair_bytes / 2))) & (pair_bytes - 1) == 0;
    let epilogue = Epilogue::new(params, batch);
    // SAFETY: rows and columns are clipped to C; the rest is the caller's duty.
    unsafe {
        if in_pairs {
            store_pairs::<L>(params, epilogue, c, tile, (rows, cols), lane, staging);
        } else {
            store_elements::<L>(params, epilogue, c, tile, (rows, cols), lane, staging);
        }
    }
}

/// Stores two columns a lane: neighbouring lanes write neighbouring columns, and
/// four rows are in flight.
///
/// # Safety
/// See [`store`]. The tile is staged, `rows` and `cols` are clipped to C, and C is
/// contiguous along its rows and aligned to pairs.
#[inline(always)]
unsafe fn store_pairs<L: MainLoop>(
    params: &GemmParams,
    epilogue: Epilogue,
    c: &TensorRef,
    tile: WarpTile,
    (rows, cols): (u32, u32),
    lane: u32,
    staging: u32,
) {
    let bytes = params.form.output.bytes();
    let row_stride = c.row_stride;
    let mut pair = lane;
    while pair < tile.height * tile.width / 2 {
        unroll!(STEP < 4, {
            let pair = pair + STEP as u32 * WARP;
            let (row, col) = (pair / (tile.width / 2), pair % (tile.width / 2) * 2);
            // SAFETY: inside the staging area.
            let sums =
                unsafe { shared::load_f32x2(staging + staging_offset(row, col, tile.width)) };
            // SAFETY: the caller's duty.
            let [x, y] = unsafe { values::<L, 2>(epilogue, sums, tile.row + row, tile.col + col) };
            if row < rows && col < cols {
                let index = (tile.row + row) as u64 * row_stride + (tile.col + col) as u64;
                let address = c.address + index * bytes as u64;
                // SAFETY: C(row, col) exists, and C(row, col + 1) where it is written.
                unsafe {
                    if col + 1 == cols {
                        epilogue::store(params, c, tile.row + row, tile.col + col, x);
                    } else if bytes == 4 {
                        global::store_u32x2(address, [x.to_bits(), y.to_bits()]);
                    } else {
                        global::store_u32(address, pack::<L>(params.form.output, x, y));
                    }
                }
            }
        });
        pair += 4 * WARP;
    }
}

/// Stores one element a lane, along the shorter stride of C; four elements are in flight.
///
/// # Safety
/// See [`store`]. The tile is staged, and `rows` and `cols` are clipped to C.
#[inline(always)]
unsafe fn store_elements<L: MainLoop>(
    params: &GemmParams,
    epilogue: Epilogue,
    c: &TensorRef,
    tile: WarpTile,
    (rows, cols): (u32, u32),
    lane: u32,
    staging: u32,
) {
    let down = c.row_stride < c.col_stride;
    let place = |element: u32| {
        if down {
            (element % tile.height, element / tile.height)
        } else {
            (element / tile.width, element % tile.width)
        }
    };
    let mut element = lane;
    while element < tile.height * tile.width {
        let mut sums = [0.0; 4];
        unroll!(STEP < 4, {
            let (row, col) = place(element + STEP as u32 * WARP);
            // An odd column lies 4 bytes after the even column of its pair.
            let offset = staging_offset(row, col & !1, tile.width) + 4 * (col % 2);
            // SAFETY: inside the staging area.
            sums[STEP] = unsafe { shared::load_f32(staging + offset) };
        });
        unroll!(STEP < 4, {
            let (row, col) = place(element + STEP as u32 * WARP);
            if row < rows && col < cols {
                let (row, col) = (tile.row + row, tile.col + col);
                // SAFETY: C(row, col) exists.
                unsafe {
                    let [value] = values::<L, 1>(epilogue, [sums[STEP]], row, col);
                    epilogue::store(params, c, row, col, value);
                }
            }
        });
        element += 4 * WARP;
    }
}

/// The values of C from column `col` of row `row` on, for these sums.
///
/// # Safety
/// See [`Epilogue::apply`].
#[inline(always)]
unsafe fn values<L: MainLoop, const N: usize>(
    epilogue: Epilogue,
    mut sums: [f32; N],
    row: u32,
    col: u32,
) -> [f32; N] {
    // SAFETY: the caller's duty.
    unsafe {
        if L::PARTS > 1 {
            sums = epilogue.unscaled(sums, row, col);
        }
        epilogue.apply(sums, row, col)
    }
}

/// Two elements of a 16-bit type in one register, by the instructions of the target of `L`.
#[inline(always)]
fn pack<L: MainLoop>(dtype: DType, low: f32, high: f32) -> u32 {
    if L::HAS_BF16_AND_TF32 {
        epilogue::pack_pair(dtype, low, high)
    } else {
        epilogue::pack_pair_sm75(dtype, low, high)
    }
}
