//! Tile orders: from a linear id to a tile of C.
//!
//! The hardware starts CTAs roughly in the order of their ids, so the ids that
//! are in flight together form a *wave*, and the rows of A and columns of B
//! that the wave touches must come through L2. An order chooses the shape of
//! the wave. A wave that is nearly square (in elements) touches the least;
//! `docs/tile-order.md` derives it.
//!
//! Orders are pure integer functions without a panic path: the device calls
//! them for every tile, the host for its figures and property tests.

use core::num::NonZeroU32;

/// C, counted in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TileGrid {
    /// Tiles along M: `m.div_ceil(block_m)`.
    pub tiles_m: u32,
    /// Tiles along N: `n.div_ceil(block_n)`.
    pub tiles_n: u32,
}

impl TileGrid {
    /// The grid that covers an M×N matrix with `block_m`×`block_n` tiles.
    #[inline(always)]
    pub fn cover(m: u32, n: u32, block_m: u32, block_n: u32) -> Self {
        TileGrid {
            tiles_m: ceil_div(m, block_m),
            tiles_n: ceil_div(n, block_n),
        }
    }

    /// Tiles in all. Wraps past 2³² (the host refuses such grids).
    #[inline(always)]
    pub const fn tiles(self) -> u32 {
        self.tiles_m.wrapping_mul(self.tiles_n)
    }
}

/// One tile of C: rows `m · block_m ..`, columns `n · block_n ..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tile {
    /// Row of the tile grid.
    pub m: u32,
    /// Column of the tile grid.
    pub n: u32,
}

/// Which tile a linear id means. Every order is a bijection from
/// `0..grid.tiles()` onto the grid.
///
/// ```
/// use gpu_kernels::{Tile, TileGrid, TileOrder};
/// let grid = TileGrid { tiles_m: 9, tiles_n: 9 };
/// // The fourth id: the end of a 3-row column, or simply the fourth column.
/// assert_eq!(TileOrder::GroupedM { size: 3 }.tile(grid, 3), Tile { m: 0, n: 1 });
/// assert_eq!(TileOrder::RowMajor.tile(grid, 3), Tile { m: 0, n: 3 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum TileOrder {
    /// N fastest: a whole row of tiles, then the next.
    RowMajor,
    /// M fastest: a whole column of tiles, then the next.
    ColumnMajor,
    /// Groups of `size` rows; inside a group M fastest, then N. Triton's
    /// GROUP_SIZE_M. The last group holds the rows that are left. A size of 0
    /// means 1, which is row-major.
    GroupedM {
        /// Rows of tiles in a group.
        size: u32,
    },
    /// Groups of `size` columns; inside a group N fastest, then M. A size of 0
    /// means 1, which is column-major.
    GroupedN {
        /// Columns of tiles in a group.
        size: u32,
    },
}

impl TileOrder {
    /// The tile that `id` means. For `id >= grid.tiles()` the answer is some
    /// tile or lies outside the grid; nothing panics.
    #[inline(always)]
    pub fn tile(self, grid: TileGrid, id: u32) -> Tile {
        match self {
            TileOrder::RowMajor => {
                let (m, n) = div_rem(id, grid.tiles_n);
                Tile { m, n }
            }
            TileOrder::ColumnMajor => {
                let (n, m) = div_rem(id, grid.tiles_m);
                Tile { m, n }
            }
            TileOrder::GroupedM { size } => {
                let (m, n) = grouped(id, grid.tiles_m, grid.tiles_n, size);
                Tile { m, n }
            }
            TileOrder::GroupedN { size } => {
                let (n, m) = grouped(id, grid.tiles_n, grid.tiles_m, size);
                Tile { m, n }
            }
        }
    }
}

/// Walks a `major`×`minor` grid in bands of `size` along the major axis, major
/// fastest inside a band; returns (major, minor). (Triton's matmul tutorial,
/// "L2 cache optimizations".)
#[inline(always)]
fn grouped(id: u32, major: u32, minor: u32, size: u32) -> (u32, u32) {
    // A group larger than the grid is the whole grid; the clamp also keeps
    // `size · minor` from wrapping.
    let size = size.clamp(1, major.max(1));
    let (group, within) = div_rem(id, size.wrapping_mul(minor));
    let first = group.wrapping_mul(size);
    let height = major.wrapping_sub(first).min(size);
    let (step, offset) = div_rem(within, height);
    (first.wrapping_add(offset), step)
}

/// `(a / b, a % b)`, and `(0, a)` for `b = 0`: an unsigned division through
/// `NonZero` has no panic path, which a kernel must not have.
#[inline(always)]
pub(crate) fn div_rem(a: u32, b: u32) -> (u32, u32) {
    match NonZeroU32::new(b) {
        Some(b) => (a / b, a % b),
        None => (0, a),
    }
}

/// `a / b` rounded up, without wrapping; 0 for `b = 0`.
#[inline(always)]
pub fn ceil_div(a: u32, b: u32) -> u32 {
    let (quotient, rest) = div_rem(a, b);
    if b == 0 {
        0
    } else {
        quotient + (rest != 0) as u32
    }
}
