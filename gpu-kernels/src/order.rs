//! Tile orders: from a linear id to a tile of C.
//!
//! The hardware starts CTAs roughly in the order of their ids, so the ids that
//! are in flight together form a *wave*, and the rows of A and columns of B
//! that the wave touches must come through L2. An order chooses the shape of
//! the wave. A wave that is nearly square (in elements) touches the fewest rows
//! and columns; `docs/tile-order.md` derives this.
//!
//! Orders are pure integer functions without a panic path: the device calls
//! them for every tile, the host for its figures and property tests. They need no
//! table and take O(log tiles) steps at most. What depends on the grid alone, the host computes
//! once for a launch: the [`Raster`].
//!
//! # A new order
//!
//! 1. Add a variant of [`TileOrder`].
//! 2. Add its arm in [`Raster::new`], and if it walks no groups, an arm in [`Raster::tile`] and the
//!    function that the arm calls. Use wrapping arithmetic, no recursion, and no array that a
//!    variable indexes: `cargo xtask ptx` refuses kernels with a panic, a call or a stack frame.
//! 3. Add it to [`TileOrder::all`], and its name to `order/name.rs`.
//!
//! The property tests, the tests on a GPU, the model, the benchmark and
//! `cargo xtask order` then include it.

mod curve;
mod cutlass;
mod divisor;
mod grid;
#[cfg(not(target_arch = "nvptx64"))]
mod name;
mod raster;

#[cfg(not(target_arch = "nvptx64"))]
pub use name::ParseOrderError;

pub use divisor::Divisor;
pub(crate) use grid::div_rem;
pub use grid::{Tile, TileGrid, ceil_div};
pub use raster::Raster;

/// The order of the tiles: which tile a linear id means. Every order is a bijection
/// from `0..grid.tiles()` onto the grid.
///
/// ```
/// use gpu_kernels::{Tile, TileGrid, TileOrder};
/// let grid = TileGrid { tiles_m: 9, tiles_n: 9 };
/// // The fourth id: the end of a 3-row column, or simply the fourth column.
/// assert_eq!(TileOrder::GroupedM { size: 3 }.tile(grid, 3), Tile { m: 0, n: 1 });
/// assert_eq!(TileOrder::RowMajor.tile(grid, 3), Tile { m: 0, n: 3 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOrder {
    /// N fastest: a whole row of tiles, then the next.
    RowMajor,
    /// M fastest: a whole column of tiles, then the next.
    ColumnMajor,
    /// Groups of `size` rows; inside a group M fastest, then N (Triton's
    /// GROUP_SIZE_M). The last group holds the remaining rows. A size of 0
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
    /// [`TileOrder::GroupedM`] with every other group walked backwards along N. So a
    /// group starts on the columns of B on which the previous group ended, and L2
    /// still holds them. With a size of 1 (or 0) each tile is a neighbour of the tile
    /// before it.
    SerpentineM {
        /// Rows of tiles in a group.
        size: u32,
    },
    /// [`TileOrder::GroupedN`] with every other group walked backwards along M.
    SerpentineN {
        /// Columns of tiles in a group.
        size: u32,
    },
    /// Z-order: tiles sorted by the interleaved bits of their row and column, each bit
    /// of the row above the bit of the column. A grid may have any shape: the order
    /// skips the tiles of the plane's Z-order that lie outside the grid.
    Morton,
    /// A Hilbert curve, generalised to a grid of any shape. It runs along the longer
    /// side, through every tile, and each tile is a neighbour of the tile before it.
    /// (One step may be diagonal where the longer side is odd and the shorter even.) Any
    /// piece of the curve is compact, so that a wave of any size is nearly square, in
    /// tiles.
    Hilbert,
}

impl TileOrder {
    /// Every order; grouped orders have groups of `size`.
    pub const fn all(size: u32) -> [TileOrder; 8] {
        [
            TileOrder::RowMajor,
            TileOrder::ColumnMajor,
            TileOrder::GroupedM { size },
            TileOrder::GroupedN { size },
            TileOrder::SerpentineM { size },
            TileOrder::SerpentineN { size },
            TileOrder::Morton,
            TileOrder::Hilbert,
        ]
    }

    /// The tile that `id` means. For `id >= grid.tiles()` the result is some tile, inside or
    /// outside the grid; the function never panics. For many tiles of a grid, make its
    /// [`Raster`] once.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn tile(self, grid: TileGrid, id: u32) -> Tile {
        Raster::new(self, grid).tile(id)
    }
}
