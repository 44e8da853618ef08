//! Space-filling curves on any grid, from a tile's number to the tile.
//!
//! Both curves divide the grid into blocks, level by level. To find the block that
//! holds the tile, they compare the tile's number with the number of tiles in the
//! blocks before, which is a product of two sides. This needs no table, and a few
//! instructions a level.

use super::grid::{Tile, TileGrid};

/// Tile `id` of the Z-order (G. M. Morton, 1966) of the plane, where only tiles of
/// `grid` count.
///
/// A block of the curve is a square whose side is a power of two. The grid cuts a
/// rectangle from the square, at its first corner; the sides of this rectangle are
/// the only state. Each level halves the square along M, then along N.
#[inline(always)]
pub(super) fn morton(mut id: u32, grid: TileGrid) -> Tile {
    let (mut m, mut n) = (0_u32, 0_u32);
    let (mut rows, mut cols) = (grid.tiles_m, grid.tiles_n);
    // The largest power of two below the longer side, or 0.
    let last = rows.max(cols).saturating_sub(1);
    let mut half = 0x8000_0000_u32
        .checked_shr(last.leading_zeros())
        .unwrap_or(0);
    while half != 0 {
        let upper = rows.min(half);
        let tiles = upper.wrapping_mul(cols);
        if id < tiles {
            rows = upper;
        } else {
            id = id.wrapping_sub(tiles);
            m = m.wrapping_add(half);
            rows = rows.wrapping_sub(upper);
        }
        let left = cols.min(half);
        let tiles = left.wrapping_mul(rows);
        if id < tiles {
            cols = left;
        } else {
            id = id.wrapping_sub(tiles);
            n = n.wrapping_add(half);
            cols = cols.wrapping_sub(left);
        }
        half >>= 1;
    }
    Tile { m, n }
}

/// Tile `id` of a Hilbert curve that is generalised to any rectangle
/// (J. Červený, "gilbert: space-filling curve for rectangular domains of
/// arbitrary size", 2018).
///
/// The curve of a rectangle goes from one corner to the other end of an edge, its
/// *length*. A rectangle much longer than wide is divided into two, one after the
/// other; any other rectangle into three, which the curve walks up, along and down:
///
/// ```text
/// ┌───────────────┐
/// │ ───── 2 ────→ │ width
/// ├───────┬───────┤
/// │ ↑ 1   │   3 ↓ │
/// └───────┴───────┘
/// start   length   end
/// ```
///
/// Parts 1 and 3 are half as long as the whole; the lower row is half of the
/// width. Cuts fall on even numbers where they can, so that ends of parts meet.
/// Two levels at least halve the number of tiles, so any grid takes under 64 steps.
#[inline(always)]
pub(super) fn hilbert(mut id: u32, grid: TileGrid) -> Tile {
    // x runs along the length, y along the width, from (x, y): both upwards where
    // `step` is 1, both downwards where it is -1. Where `turned`, x is the row.
    let mut turned = grid.tiles_m > grid.tiles_n;
    let (mut length, mut width) = if turned {
        (grid.tiles_m, grid.tiles_n)
    } else {
        (grid.tiles_n, grid.tiles_m)
    };
    let (mut x, mut y) = (0_u32, 0_u32);
    let mut step = 1_u32;
    while length > 1 && width > 1 {
        if length > width.wrapping_add(width / 2) {
            let first = even_half(length);
            let tiles = first.wrapping_mul(width);
            if id < tiles {
                length = first;
            } else {
                id = id.wrapping_sub(tiles);
                x = x.wrapping_add(step.wrapping_mul(first));
                length = length.wrapping_sub(first);
            }
            continue;
        }
        let lower = even_half(width);
        let left = length / 2;
        let up = left.wrapping_mul(lower);
        let along = length.wrapping_mul(width.wrapping_sub(lower));
        if id >= up && id.wrapping_sub(up) < along {
            id = id.wrapping_sub(up);
            y = y.wrapping_add(step.wrapping_mul(lower));
            width = width.wrapping_sub(lower);
            continue;
        }
        width = left;
        if id >= up {
            // Part 3 starts at the far end of the length, with both directions reversed.
            id = id.wrapping_sub(up).wrapping_sub(along);
            x = x.wrapping_add(step.wrapping_mul(length.wrapping_sub(1)));
            y = y.wrapping_add(step.wrapping_mul(lower.wrapping_sub(1)));
            step = step.wrapping_neg();
            width = length.wrapping_sub(left);
        }
        length = lower;
        (x, y) = (y, x);
        turned = !turned;
    }
    if width > 1 {
        y = y.wrapping_add(step.wrapping_mul(id));
    } else {
        x = x.wrapping_add(step.wrapping_mul(id));
    }
    if turned {
        Tile { m: x, n: y }
    } else {
        Tile { m: y, n: x }
    }
}

/// Half of `side`, rounded up to an even number; but 1 for 2.
#[inline(always)]
fn even_half(side: u32) -> u32 {
    let half = side / 2;
    if side > 2 {
        half.wrapping_add(half & 1)
    } else {
        half
    }
}
