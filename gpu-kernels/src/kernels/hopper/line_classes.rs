//! Classes of lines: rows of A in tiles of those whose lines begin at the same place in a cache
//! line.
//!
//! TMA asks for 128 bytes of a row at a time. Where the pitch of A is no multiple of a cache
//! line, these 128 bytes touch two lines for most rows, and L2 serves two requests for them, or
//! three where they begin in the middle of a sector of 32 bytes. Row i begins `i · pitch`
//! elements behind the first, so all rows of a class
//!
//! ```text
//! class c = rows c, c + g, c + 2g, …        g a power of two, up to 8
//! ```
//!
//! begin at the same place in a cache line if g · pitch is a multiple of a line. A tile takes its
//! rows from one class, and its k-blocks begin `c · pitch` elements, modulo a line, before
//! multiples of a line. Then every box of A consists of whole lines, and one request brings each.
//! The first k-block has zeros in front, as TMA delivers them for coordinates below zero.
//! A product with g too small for that has fewer requests all the same.
//!
//! A class is to the kernel what one product of a batch is to it: its A and C have planes one row
//! apart, and rows g rows apart, and all share B. It differs in two ways. The tiles of all classes
//! form one grid, in which those of a class follow each other along M, so that the order of tiles
//! reuses B as without classes; and K is longer by the part of a line that is in front.
//!
//! Where C is contiguous along M, the same holds for columns of B, along N.

use super::traits::KernelTraits;
use crate::form::Planes;
use crate::problem::GemmParams;
use crate::schedule::WorkTile;

/// Whether the launch divides lines into classes.
#[inline(always)]
pub fn are_used<K: KernelTraits>(params: &GemmParams) -> bool {
    K::HAS_LINE_CLASSES && matches!(params.form.planes, Planes::LineClasses)
}

/// The same tile, counted from the first of its class, with its class as its batch.
#[inline(always)]
pub fn tile_of_class<K: KernelTraits>(params: &GemmParams, tile: WorkTile) -> WorkTile {
    if !are_used::<K>(params) {
        return tile;
    }
    if K::C_ALONG_M {
        let (batch, n) = params.class_tiles.div_rem(tile.n);
        WorkTile { n, batch, ..tile }
    } else {
        let (batch, m) = params.class_tiles.div_rem(tile.m);
        WorkTile { m, batch, ..tile }
    }
}

/// Elements from the start of a cache line to the first of each row of class `class`, for an
/// operand that begins on a cache line.
#[inline(always)]
pub fn first_line_offset<K: KernelTraits>(params: &GemmParams, class: u32) -> u32 {
    if !are_used::<K>(params) {
        return 0;
    }
    let operand = if K::C_ALONG_M { params.b } else { params.a };
    class.wrapping_mul(operand.batch_stride as u32) % K::ATOM_K
}
