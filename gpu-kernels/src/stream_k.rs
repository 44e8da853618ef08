//! Stream-K: the tiles of the last wave are cut along K, so that no CTA is idle while
//! others compute them (Osama, Merrill, Cecka, Garland and Owens, "Stream-K: Work-centric
//! Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", PPoPP 2023;
//! the hybrid "data-parallel + one-tile stream-K").
//!
//! An example with ten tiles of eight k-blocks and four CTAs, which all share the last
//! wave:
//!
//! ```text
//!          wave 0   wave 1   last wave: 2 tiles, 16 k-blocks, 4 a CTA
//! CTA 0    tile 0   tile 4   tile 8, k-blocks 0..4   writes its partial sums for CTA 1
//! CTA 1    tile 1   tile 5   tile 8, k-blocks 4..8   reduces and stores tile 8
//! CTA 2    tile 2   tile 6   tile 9, k-blocks 0..4   writes its partial sums for CTA 3
//! CTA 3    tile 3   tile 7   tile 9, k-blocks 4..8   reduces and stores tile 9
//! ```
//!
//! Where the number of *stream-K CTAs*, the CTAs of lowest index, is a multiple of the number of
//! tiles, as above, the k-blocks of each tile are dealt in equal ranges to as many CTAs. Else
//! the k-blocks of all remaining tiles, laid end to end, are dealt in equal ranges. A range that
//! then crosses from one tile to the next has two parts (w: written for another CTA; r: reduced
//! here):
//!
//! ```text
//! 3 stream-K CTAs   tile 8            tile 9
//!                   0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7
//! CTA 0             w w w w w w                          writes for CTA 1
//! CTA 1                         r r   w w w              writes for CTA 2, reduces tile 8
//! CTA 2                                     r r r r r    reduces tile 9
//! ```
//!
//! **Which CTA waits for which.** The CTA with a tile's *last* k-blocks reduces it: it
//! waits for the partial accumulators of its peers, adds them, and stores the tile. The
//! peers have lower indices. A CTA runs its range from the end: first the head of the
//! later tile, which it writes for another CTA, then the tail of the earlier tile, which
//! it reduces. So
//!
//! - a CTA writes before it waits: no CTA waits before it has written the sums that
//!   another CTA waits for, so there is no cycle;
//! - a CTA only waits for CTAs that the hardware has started before it, so the wait ends
//!   even where not all CTAs fit on the device at once;
//! - the wait is short: ranges are equally long, and a CTA reduces a tile at the end of
//!   its range, when the ranges of its peers have ended too.
//!
//! **How much is shared.** A CTA writes partial accumulators at most once. The CTA that
//! reduces a tile adds the sums of the CTAs right before it, in the order of K. All this
//! depends on counts alone, not on time, so accumulators are added in the same order in
//! every run.

use crate::order::div_rem;
use crate::schedule::{CtaPosition, TileScheduler, WorkTile};

/// K-blocks of one tile, for one CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkUnit {
    /// The tile.
    pub tile: WorkTile,
    /// First k-block.
    pub first: u32,
    /// End of the k-blocks, past `first`.
    pub end: u32,
    /// How the accumulators are fixed up.
    pub fix_up: FixUp,
}

/// What a CTA does with the accumulators of a work unit (CUTLASS: `fixup`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixUp {
    /// Stores the accumulators: they are the sums over all of K.
    None,
    /// Writes the accumulators to the workspace, for the CTA that reduces the tile.
    Write,
    /// Adds the partial accumulators of the `peers` CTAs right before it, and stores the
    /// tile.
    Reduce {
        /// Number of CTAs that have the tile's earlier k-blocks.
        peers: u32,
    },
}

/// K-blocks dealt to CTAs in ranges of nearly equal length, one tile to some CTAs or all tiles to
/// all CTAs. Of the ranges of such a group, the first `longer` have `length` + 1 k-blocks, the
/// others `length`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranges {
    /// K-blocks and CTAs of a group.
    k_blocks: u32,
    ctas: u32,
    length: u32,
    longer: u32,
}

impl Ranges {
    /// Deals `tiles` of `k_blocks` each to `ctas`. A tile to each group of CTAs spares them second
    /// parts, and waits in a chain: 512×512×8192 in 96 CTAs takes 22.3 µs on an H200 where ranges
    /// cross tiles, and 19.6 to 20.2 in 64 and 128, where they do not.
    #[inline(always)]
    pub(crate) fn deal((tiles, k_blocks): (u32, u32), ctas: u32) -> Self {
        let (each, rest) = div_rem(ctas, tiles.max(1));
        let (k_blocks, ctas) = if rest == 0 && tiles > 0 {
            (k_blocks, each)
        } else {
            (tiles * k_blocks, ctas)
        };
        let (length, longer) = div_rem(k_blocks, ctas);
        Ranges {
            k_blocks,
            ctas,
            length,
            longer,
        }
    }

    /// First k-block of the range of CTA `cta`. For the index past the last CTA this is
    /// the number of k-blocks.
    #[inline(always)]
    pub(crate) fn start(self, cta: u32) -> u32 {
        let (group, cta) = div_rem(cta, self.ctas);
        group * self.k_blocks + cta * self.length + cta.min(self.longer)
    }

    /// The CTA whose range contains `k_block`.
    #[inline(always)]
    pub(crate) fn cta_of(self, k_block: u32) -> u32 {
        let (group, k_block) = div_rem(k_block, self.k_blocks);
        let in_longer = self.longer * (self.length + 1);
        let cta = if k_block < in_longer {
            div_rem(k_block, self.length + 1).0
        } else {
            self.longer + div_rem(k_block - in_longer, self.length).0
        };
        group * self.ctas + cta
    }
}

/// The tile scheduler of stream-K: the work units of one CTA, in the order it runs them.
#[derive(Clone, Copy, Debug)]
pub struct StreamKScheduler {
    /// The tiles that this CTA computes alone.
    whole: TileScheduler,
    /// K-blocks of a tile.
    k_blocks: u32,
    ranges: Ranges,
    /// The remaining part of this CTA's range: first and end, counted over all k-blocks
    /// that are dealt.
    left: (u32, u32),
    cta: u32,
}

impl StreamKScheduler {
    /// The scheduler of the CTA at `cta`, one of a 1-D grid of CTAs, whose first
    /// `stream_k_ctas` share the tiles of the last wave. `tiles` is its tile scheduler
    /// under [`Schedule::StreamK`](crate::Schedule); a tile has `k_blocks` k-blocks. The
    /// shared tiles have fewer than 2³² k-blocks in all; the host ensures this.
    #[inline(always)]
    pub fn new(
        mut tiles: TileScheduler,
        cta: CtaPosition,
        stream_k_ctas: u32,
        k_blocks: u32,
    ) -> Self {
        let (_, shared) = div_rem(tiles.tiles, cta.grid_x);
        let ranges = Ranges::deal((shared, k_blocks), stream_k_ctas);
        let left = if cta.x < stream_k_ctas {
            (ranges.start(cta.x), ranges.start(cta.x + 1))
        } else {
            (0, 0)
        };
        tiles.tiles -= shared;
        StreamKScheduler {
            whole: tiles,
            k_blocks,
            ranges,
            left,
            cta: cta.x,
        }
    }

    /// See [`TileScheduler::renewed`].
    #[inline(always)]
    pub fn renewed(self, new: StreamKScheduler) -> Self {
        StreamKScheduler {
            whole: self.whole.renewed(new.whole),
            left: self.left,
            ..new
        }
    }

    /// The next work unit, or `None` when this CTA has run its last.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "a kernel has no iterator adaptors to offer"
    )]
    pub fn next(&mut self) -> Option<WorkUnit> {
        let (id, (first, end), fix_up) = match self.whole.next_id() {
            Some(id) => (id, (0, self.k_blocks), FixUp::None),
            None => self.next_of_range()?,
        };
        Some(WorkUnit {
            tile: self.whole.tile(id),
            first,
            end,
            fix_up,
        })
    }

    /// The last remaining part of the range: a tile's id, its k-blocks, and the fix-up.
    #[inline(always)]
    fn next_of_range(&mut self) -> Option<(u32, (u32, u32), FixUp)> {
        let (start, end) = self.left;
        if start >= end {
            return None;
        }
        let (index, last) = div_rem(end - 1, self.k_blocks);
        let origin = end - 1 - last;
        let first = start.max(origin);
        self.left.1 = first;
        let fix_up = if last + 1 < self.k_blocks {
            FixUp::Write
        } else if first == origin {
            FixUp::None
        } else {
            FixUp::Reduce {
                peers: self.cta - self.ranges.cta_of(origin),
            }
        };
        Some((self.whole.tiles + index, (first - origin, last + 1), fix_up))
    }
}
