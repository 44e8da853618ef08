//! C in tiles, and divisions without a panic path.

use core::num::NonZeroU32;

/// The size of C in tiles.
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

    /// Number of tiles. Wraps past 2³² (the host refuses such grids).
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

/// `(a / b, a % b)`, and `(0, a)` for `b = 0`. An unsigned division through `NonZero`
/// has no panic path, and kernels must not have one.
#[inline(always)]
pub(crate) fn div_rem(a: u32, b: u32) -> (u32, u32) {
    match NonZeroU32::new(b) {
        Some(b) => (a / b, a % b),
        None => (0, a),
    }
}
