//! Split-K with a launch that adds: which k-blocks of which tiles a CTA, or a cluster, computes, and
//! where in the workspace it leaves their sums.
//!
//! K-blocks are dealt as under stream-K ([`crate::stream_k`]): those of each tile to as many CTAs where
//! tiles divide the CTAs, else those of all tiles, laid end to end, to all CTAs. But nobody waits: a CTA
//! leaves the sums of each of its units in a part of the workspace, and a second launch
//! ([`reduce`](crate::kernels::reduce)) adds the parts of each tile, which follow each other in the order
//! of K:
//!
//! ```text
//! 3 CTAs      tile 0            tile 1
//!             0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7
//! CTA 0       part 0
//! CTA 1                   1     2                  from one part to the next the CTA changes, or the
//! CTA 2                               3            tile, so a part is numbered by the sum of both
//! ```
//!
//! Counts alone decide where tiles are cut, so sums are the same from run to run.

use crate::order::div_rem;
use crate::schedule::{CtaPosition, TileScheduler, WorkTile};
use crate::stream_k::Ranges;

/// K-blocks of one tile, for one CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitKUnit {
    /// The tile.
    pub tile: WorkTile,
    /// First k-block.
    pub first: u32,
    /// End of the k-blocks, past `first`.
    pub end: u32,
    /// The part of the workspace for its sums.
    pub part: u32,
}

/// Whether the ranges of `ctas` CTAs cross from one of `tiles` tiles to the next, because the tiles do
/// not divide the CTAs.
pub const fn crosses(tiles: u32, ctas: u32) -> bool {
    tiles != 0 && !ctas.is_multiple_of(tiles)
}

/// Number of parts of the workspace, with `ctas` CTAs for `tiles` tiles.
pub const fn parts(tiles: u32, ctas: u32) -> u32 {
    match crosses(tiles, ctas) {
        false => ctas,
        true => tiles + ctas,
    }
}

/// The first part of tile `id`, and the number of its parts, where `ctas` CTAs share `tiles` tiles of
/// `k_blocks` k-blocks each: at least one CTA and one tile, and less than 2³² k-blocks in all.
#[inline(always)]
pub fn parts_of_tile(id: u32, (tiles, k_blocks): (u32, u32), ctas: u32) -> (u32, u32) {
    let (each, rest) = div_rem(ctas, tiles);
    if rest == 0 {
        // The launch waits for this: one division where it is enough.
        return (id * each, each.min(k_blocks));
    }
    let ranges = Ranges::deal((tiles, k_blocks), ctas);
    let first = ranges.cta_of(id * k_blocks);
    let last = ranges.cta_of((id + 1) * k_blocks - 1);
    (first + id, last - first + 1)
}

/// The units of one CTA, in the order it runs them.
#[derive(Clone, Copy, Debug)]
pub struct SplitKScheduler {
    tiles: TileScheduler,
    k_blocks: u32,
    /// Whether ranges of k-blocks cross from one tile to the next.
    crosses: bool,
    /// The next k-block of this CTA, counted over all tiles, and the end of its range.
    next: u32,
    end: u32,
    cta: u32,
}

impl SplitKScheduler {
    /// The scheduler of the CTA at `cta`, one of `ctas` in a 1-D grid. `tiles` is its tile scheduler; a
    /// tile has `k_blocks` k-blocks, and all tiles have less than 2³²; the host ensures this.
    #[inline(always)]
    pub fn new(tiles: TileScheduler, cta: CtaPosition, ctas: u32, k_blocks: u32) -> Self {
        let ranges = Ranges::deal((tiles.tiles, k_blocks), ctas);
        let (_, rest) = div_rem(ctas, tiles.tiles.max(1));
        SplitKScheduler {
            tiles,
            k_blocks,
            crosses: rest != 0,
            next: ranges.start(cta.x),
            end: ranges.start(cta.x + 1),
            cta: cta.x,
        }
    }

    /// See [`TileScheduler::renewed`].
    #[inline(always)]
    pub fn renewed(self, new: SplitKScheduler) -> Self {
        SplitKScheduler {
            next: self.next,
            ..new
        }
    }

    /// The next unit, or `None` when this CTA has run its last.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "a kernel has no iterator adaptors to offer"
    )]
    pub fn next(&mut self) -> Option<SplitKUnit> {
        if self.next >= self.end {
            return None;
        }
        let (id, first) = div_rem(self.next, self.k_blocks);
        let end = self.k_blocks.min(first + self.end - self.next);
        self.next += end - first;
        Some(SplitKUnit {
            tile: self.tiles.tile(id),
            first,
            end,
            part: if self.crosses {
                self.cta + id
            } else {
                self.cta
            },
        })
    }
}
