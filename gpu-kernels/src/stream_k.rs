//! Stream-K: the tiles of the last wave are cut along K, so that no CTA is idle
//! while others compute them (Osama, Merrill, Cecka, Garland and Owens,
//! "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
//! Multiplication on the GPU", PPoPP 2023; the hybrid "data-parallel + one-tile
//! stream-K").
//!
//! Ten tiles of eight steps along K, four CTAs, all of them sharers:
//!
//! ```text
//!          wave 0   wave 1   last wave: 2 tiles, 16 steps, 4 a CTA
//! CTA 0    tile 0   tile 4   tile 8, steps 0..4   lends its sums to CTA 1
//! CTA 1    tile 1   tile 5   tile 8, steps 4..8   finishes tile 8
//! CTA 2    tile 2   tile 6   tile 9, steps 0..4   lends its sums to CTA 3
//! CTA 3    tile 3   tile 7   tile 9, steps 4..8   finishes tile 9
//! ```
//!
//! The steps of the tiles left over, laid end to end, are dealt in equal runs to
//! the *sharers*, the CTAs of lowest index. Where a run crosses from one tile to
//! the next, it has two parts:
//!
//! ```text
//! 3 sharers     tile 8            tile 9
//!               0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7
//! CTA 0         l l l l l l                          lends to CTA 1
//! CTA 1                     f f   l l l              lends to CTA 2, then finishes tile 8
//! CTA 2                                 f f f f f    finishes tile 9
//! ```
//!
//! **Who waits for whom.** The CTA with a tile's *last* steps finishes it: it
//! waits for the sums of the others, adds them, and stores the tile. Those have
//! lower indices. A CTA runs its run from the end: first the head of the later
//! tile, which it lends, then the tail of the earlier one, which it finishes. So
//!
//! - no part that is lent comes after a wait, nobody waits for one who waits, and
//!   there is no cycle;
//! - a CTA only waits for CTAs that the hardware has started before it, so the
//!   wait ends even where not all CTAs fit on the device at once;
//! - the wait is short: runs are equally long, and a tile is finished when its
//!   finisher's run ends, which is when the others' runs end at the latest.
//!
//! **How much is shared.** A CTA lends at most once. A tile is lent to only by
//! the CTAs right before its finisher, in the order of K. All this depends on
//! counts alone, not on time, so sums are added in the same order in every run.

use crate::order::{Tile, div_rem};
use crate::schedule::{CtaPosition, TileWalk};

/// Steps along K of one tile, for one CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The tile.
    pub tile: Tile,
    /// First step.
    pub first: u32,
    /// End of the steps, past `first`.
    pub end: u32,
    /// What becomes of the sums.
    pub role: Role,
}

/// What a CTA does with the sums of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Stores them: nobody else has steps of this tile.
    Whole,
    /// Lends them to the CTA that finishes the tile.
    Lend,
    /// Adds those of the `lenders` CTAs right before it, and stores the tile.
    Finish {
        /// CTAs that have the steps before these.
        lenders: u32,
    },
}

/// Steps dealt to CTAs in runs, as equal as can be: the first `longer` have one
/// step more than `length`.
#[derive(Clone, Copy, Debug)]
struct Runs {
    length: u32,
    longer: u32,
}

impl Runs {
    #[inline(always)]
    fn deal(steps: u32, ctas: u32) -> Self {
        let (length, longer) = div_rem(steps, ctas);
        Runs { length, longer }
    }

    /// First step of the run of CTA `cta`; of the one past the last, all steps.
    #[inline(always)]
    fn start(self, cta: u32) -> u32 {
        cta * self.length + cta.min(self.longer)
    }

    /// The CTA that has `step`, one of those dealt.
    #[inline(always)]
    fn cta_of(self, step: u32) -> u32 {
        let in_longer = self.longer * (self.length + 1);
        if step < in_longer {
            div_rem(step, self.length + 1).0
        } else {
            self.longer + div_rem(step - in_longer, self.length).0
        }
    }
}

/// The parts of one CTA, in the order it runs them.
#[derive(Clone, Copy, Debug)]
pub struct PartWalk {
    /// Tiles of this CTA alone.
    alone: TileWalk,
    /// First and end of the steps of a tile that are this CTA's.
    steps: (u32, u32),
    runs: Runs,
    /// What is left of this CTA's run: first and end, counted over all that are dealt.
    left: (u32, u32),
    cta: u32,
}

impl PartWalk {
    /// A walk over `steps` of each tile, from the first to the end: no tile is
    /// shared.
    #[inline(always)]
    pub fn whole(tiles: TileWalk, steps: (u32, u32)) -> Self {
        PartWalk {
            alone: tiles,
            steps,
            runs: Runs {
                length: 0,
                longer: 0,
            },
            left: (0, 0),
            cta: 0,
        }
    }

    /// The walk of the CTA at `cta`, one of a 1-D grid of CTAs, whose first
    /// `sharers` share the tiles of the last wave. `tiles` is its walk under
    /// [`Schedule::StreamK`](crate::Schedule); a tile has `k_steps`. The tiles
    /// shared have fewer than 2³² steps in all, which the host sees to.
    #[inline(always)]
    pub fn shared(mut tiles: TileWalk, cta: CtaPosition, sharers: u32, k_steps: u32) -> Self {
        let (_, shared) = div_rem(tiles.tiles, cta.grid_x);
        let runs = Runs::deal(shared * k_steps, sharers);
        let left = if cta.x < sharers {
            (runs.start(cta.x), runs.start(cta.x + 1))
        } else {
            (0, 0)
        };
        tiles.tiles -= shared;
        PartWalk {
            alone: tiles,
            steps: (0, k_steps),
            runs,
            left,
            cta: cta.x,
        }
    }

    /// The next part, or `None` when this CTA has run its last.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "a kernel has no iterator adaptors to offer"
    )]
    pub fn next(&mut self) -> Option<Part> {
        let (id, steps, role) = match self.alone.next_id() {
            Some(id) => (id, self.steps, Role::Whole),
            None => self.next_of_run()?,
        };
        Some(self.part(id, steps, role))
    }

    /// Leaves to this walk every `of`th of its tiles, from the one at `turn` on;
    /// for a walk that shares none.
    #[inline(always)]
    pub fn take_turns(&mut self, turn: u32, of: u32) {
        self.alone.take_turns(turn, of);
    }

    /// The same as [`PartWalk::next`] where no tiles are shared, which the compiler
    /// may not see.
    #[inline(always)]
    pub fn next_whole(&mut self) -> Option<Part> {
        let id = self.alone.next_id()?;
        Some(self.part(id, self.steps, Role::Whole))
    }

    #[inline(always)]
    fn part(&self, id: u32, (first, end): (u32, u32), role: Role) -> Part {
        Part {
            tile: self.alone.tile_here(id),
            first,
            end,
            role,
        }
    }

    /// The last part that is left of the run: a tile's id, its steps, the role.
    #[inline(always)]
    fn next_of_run(&mut self) -> Option<(u32, (u32, u32), Role)> {
        let (start, end) = self.left;
        if start >= end {
            return None;
        }
        let (_, k_steps) = self.steps;
        let (index, last) = div_rem(end - 1, k_steps);
        let origin = end - 1 - last;
        let first = start.max(origin);
        self.left.1 = first;
        let role = if last + 1 < k_steps {
            Role::Lend
        } else if first == origin {
            Role::Whole
        } else {
            Role::Finish {
                lenders: self.cta - self.runs.cta_of(origin),
            }
        };
        Some((self.alone.tiles + index, (first - origin, last + 1), role))
    }
}
