//! Schedules: which tiles one CTA runs.
//!
//! ```text
//! Grid2d      one CTA a tile, CTA (x, y) runs tile (m = y, n = x)
//! Grid1d      one CTA a tile, CTA i runs tile order(i)
//! Persistent  NUM_SMS CTAs (or fewer), CTA i runs order(i), order(i + grid), …
//! StreamK     as Persistent, but several CTAs share a tile of the last wave
//! SplitK      several CTAs share each tile, and a second launch adds their sums
//! ```
//!
//! The last two have their own scheduler, over parts of tiles, in module `stream_k`.

use crate::isa::hint::{KEEPS_INVARIANTS, compute_here};
pub use crate::isa::thread::CtaPosition;
use crate::order::{Raster, Tile};

/// The assignment of the tiles of C to CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Schedule {
    /// One CTA a tile on a 2-D grid: x along N, y along M. The hardware's own
    /// order, x fastest, is row-major, so the [`TileOrder`](crate::TileOrder) is row-major, too.
    Grid2d = 0,
    /// One CTA a tile on a 1-D grid, through a [`TileOrder`](crate::TileOrder).
    Grid1d = 1,
    /// As many CTAs as the device runs at once, each striding over the tiles.
    Persistent = 2,
    /// As many CTAs as the device runs at once. Whole waves of tiles run as under
    /// [`Schedule::Persistent`]. The remaining tiles, too few for a wave, are cut along
    /// K, and CTAs that would be idle compute parts of them. It requires a kernel whose
    /// [`stream_k_bytes`](crate::KernelInfo::stream_k_bytes) is not 0.
    StreamK = 3,
    /// [`GemmParams`](crate::GemmParams)`::stream_k_ctas` CTAs, or clusters, share the k-blocks of all
    /// tiles. They leave their sums in the workspace, and a launch of
    /// [`Reduce`](crate::kernels::reduce::Reduce) adds them in the order of K and stores C. No CTA
    /// waits for another. It requires a kernel like [`Schedule::StreamK`], with an equal number of
    /// CTAs for each tile, or one that [leaves its sums](crate::KernelInfo::leaves_sums), with any
    /// number.
    SplitK = 4,
}

/// One tile of one product of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkTile {
    /// Row of the tile grid.
    pub m: u32,
    /// Column of the tile grid.
    pub n: u32,
    /// Index of the product.
    pub batch: u32,
}

/// The tile scheduler: the tiles of one CTA, in the order it runs them. The tiles of a
/// batch's first product come first, then those of the second, and so on.
#[derive(Clone, Copy, Debug)]
pub struct TileScheduler {
    raster: Raster,
    batches: Option<u32>,
    id: u32,
    step: u32,
    /// Number of tiles of all products.
    pub(crate) tiles: u32,
}

impl TileScheduler {
    /// The scheduler of the CTA at `cta`, for `batches` products with the same raster, or for one.
    /// The launch grid is all that schedules differ in here: with a CTA for each tile, none has a
    /// second one. A 2-D grid has no dimension for a batch, so under [`Schedule::Grid2d`] there is
    /// one product.
    #[inline(always)]
    pub fn new(raster: Raster, batches: Option<u32>, cta: CtaPosition) -> Self {
        let tiles = match batches {
            None => raster.tiles(),
            Some(batches) => raster.tiles().wrapping_mul(batches),
        };
        TileScheduler {
            raster,
            batches,
            // On the 2-D grid the linear id of a CTA is its row-major tile id, and the host gives
            // such a launch the row-major order.
            id: cta.y.wrapping_mul(cta.grid_x).wrapping_add(cta.x),
            step: cta.grid_x.wrapping_mul(cta.grid_y),
            tiles,
        }
    }

    /// The same scheduler, if `new` is one like it at its start: what it has derived from the
    /// launch is that of `new`. A kernel computes `new` behind a tile where it would otherwise keep
    /// all that in registers during the tile ([`KEEPS_INVARIANTS`](crate::isa::hint)).
    #[inline(always)]
    pub fn renewed(self, new: TileScheduler) -> Self {
        TileScheduler { id: self.id, ..new }
    }

    /// The next tile, or `None` when this CTA has run its last.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "a kernel has no iterator adaptors to offer"
    )]
    pub fn next(&mut self) -> Option<WorkTile> {
        let id = self.next_id()?;
        Some(self.tile(id))
    }

    /// Keeps every `of`th tile of this CTA, from number `first` on: the tiles of one of
    /// `of` consumers that alternate.
    #[inline(always)]
    pub fn alternate(&mut self, first: u32, of: u32) {
        let step = self.step.max(1);
        self.id = self.id.saturating_add(first.saturating_mul(step));
        self.step = of.saturating_mul(step);
    }

    /// The linear id of the next tile.
    #[inline(always)]
    pub(crate) fn next_id(&mut self) -> Option<u32> {
        let id = self.id;
        if id >= self.tiles {
            return None;
        }
        // The sum saturates, because an id past the last tile must not wrap round to
        // the first.
        self.id = id.saturating_add(self.step.max(1));
        if KEEPS_INVARIANTS {
            self.id = compute_here(self.id);
        }
        Some(id)
    }

    /// The tile that `id` means.
    #[inline(always)]
    pub(crate) fn tile(&self, id: u32) -> WorkTile {
        // An option rather than a batch of one: `ptxas` then removes the division.
        let (batch, id) = match self.batches {
            None => (0, id),
            Some(_) => self.raster.of_batch(id),
        };
        let Tile { m, n } = self.raster.tile(id);
        WorkTile { m, n, batch }
    }
}
