//! [`Raster`]: an order on the grid of a launch.

use core::hint::cold_path;
use core::mem::offset_of;

use super::curve;
use super::divisor::Divisor;
use super::{Tile, TileGrid, TileOrder};
use crate::isa::hint::compute_here;

/// The tile that each id means, for one order on one grid. The host makes it once for a launch,
/// with all divisors, and a kernel finds a tile in a few instructions (CUTLASS has the same
/// in its `PersistentTileSchedulerSm90Params`): a CTA that decoded the order and divided took 1,100
/// cycles before its first load (`docs/perf-log.md`, "Half a microsecond before the first load").
///
/// ```
/// use gpu_kernels::{Raster, Tile, TileGrid, TileOrder};
/// let grid = TileGrid { tiles_m: 9, tiles_n: 9 };
/// let raster = Raster::new(TileOrder::GroupedM { size: 3 }, grid);
/// assert_eq!(raster.tile(3), Tile { m: 0, n: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Raster {
    /// [`ALONG_N`], [`SERPENTINE`], [`MORTON`], [`HILBERT`].
    path: u32,
    tiles: u32,
    /// Number of groups that have all their lines.
    whole_groups: u32,
    /// Tiles of a group.
    group: Divisor,
    /// Lines of a group.
    lines: Divisor,
    /// Lines of the last group, where that has fewer.
    last_lines: Divisor,
    /// The last tile of a line.
    last_step: u32,
    grid: TileGrid,
    /// Tiles of one product of a batch.
    product: Divisor,
}

/// Groups are of columns, not of rows.
const ALONG_N: u32 = 1;

/// Every other group is walked backwards.
const SERPENTINE: u32 = 2;

/// The path is [`TileOrder::Morton`], not groups.
const MORTON: u32 = 4;

/// The path is [`TileOrder::Hilbert`], not groups.
const HILBERT: u32 = 8;

impl Raster {
    /// The raster of a launch without tiles of C.
    pub const NONE: Raster = Raster::new(
        TileOrder::RowMajor,
        TileGrid {
            tiles_m: 0,
            tiles_n: 0,
        },
    );

    /// The first bytes, which are all that a tile of an order in groups takes.
    pub(crate) const BYTES_FOR_GROUPS: usize = offset_of!(Raster, grid);

    /// `order` on `grid`, which has fewer than 2³¹ tiles.
    pub const fn new(order: TileOrder, grid: TileGrid) -> Self {
        let (path, size) = match order {
            TileOrder::RowMajor => (0, 1),
            TileOrder::ColumnMajor => (ALONG_N, 1),
            TileOrder::GroupedM { size } => (0, size),
            TileOrder::GroupedN { size } => (ALONG_N, size),
            TileOrder::SerpentineM { size } => (SERPENTINE, size),
            TileOrder::SerpentineN { size } => (ALONG_N | SERPENTINE, size),
            TileOrder::Morton => (MORTON, 1),
            TileOrder::Hilbert => (HILBERT, 1),
        };
        let TileGrid { tiles_m, tiles_n } = grid;
        let (lines, length) = if path & ALONG_N != 0 {
            (tiles_n, tiles_m)
        } else {
            (tiles_m, tiles_n)
        };
        // A group larger than the grid equals the whole grid.
        let size = match size {
            0 => 1,
            _ if size > lines => lines,
            _ => size,
        };
        let in_group = Divisor::new(size);
        let (whole_groups, rest) = (lines / in_group.value(), lines % in_group.value());
        Raster {
            path,
            tiles: grid.tiles(),
            whole_groups,
            group: Divisor::new(size.wrapping_mul(length)),
            lines: in_group,
            last_lines: Divisor::new(rest),
            last_step: length.wrapping_sub(1),
            grid,
            product: Divisor::new(grid.tiles()),
        }
    }

    /// Number of tiles.
    #[inline(always)]
    pub const fn tiles(&self) -> u32 {
        self.tiles
    }

    /// The product of a batch, and the tile in it, that `id` means where the tiles of each
    /// product follow those of the one before.
    #[inline(always)]
    pub(crate) fn of_batch(&self, id: u32) -> (u32, u32) {
        self.product.div_rem(id)
    }

    /// The tile that `id` means. For `id >= self.tiles()` the result is some tile, inside or
    /// outside the grid; the function never panics.
    #[inline(always)]
    pub fn tile(&self, id: u32) -> Tile {
        // `compute_here`, because LLVM would compute what a curve derives from the grid before the
        // loop over tiles, and hold it in registers.
        let path = compute_here(self.path);
        if path & (MORTON | HILBERT) == 0 {
            return self.tile_of_groups(path, id);
        }
        cold_path();
        let grid = TileGrid {
            tiles_m: compute_here(self.grid.tiles_m),
            tiles_n: compute_here(self.grid.tiles_n),
        };
        if path & MORTON != 0 {
            curve::morton(id, grid)
        } else {
            curve::hilbert(id, grid)
        }
    }

    /// [`Raster::tile`] for groups: inside a group, across its lines first (Triton's matmul
    /// tutorial, "L2 cache optimizations"). All grouped orders share this function, because every
    /// kernel has it.
    #[inline(always)]
    fn tile_of_groups(&self, path: u32, id: u32) -> Tile {
        let (group, within) = self.group.div_rem(id);
        let lines = if group < self.whole_groups {
            self.lines
        } else {
            self.last_lines
        };
        let (step, offset) = lines.div_rem(within);
        let line = group.wrapping_mul(self.lines.value()).wrapping_add(offset);
        let step = if path & SERPENTINE != 0 && group & 1 == 1 {
            self.last_step.wrapping_sub(step)
        } else {
            step
        };
        if path & ALONG_N != 0 {
            Tile { m: step, n: line }
        } else {
            Tile { m: line, n: step }
        }
    }
}
