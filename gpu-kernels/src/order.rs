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
//! table and take O(log tiles) steps at most.
//!
//! # A new order
//!
//! 1. Add a variant of [`TileOrder`], with at most one `u32` of its own, because the
//!    type is a part of the launch parameters.
//! 2. Add its arm in [`TileOrder::tile`], and the function that the arm calls. Use
//!    wrapping arithmetic, no recursion, and no array that a variable indexes: `cargo
//!    xtask ptx` refuses kernels with a panic, a call or a stack frame.
//! 3. Add it to [`TileOrder::all`], and its name to `order/name.rs`.
//!
//! The property tests, the tests on a GPU, the model, the benchmark and
//! `cargo xtask order` then include it.

mod curve;
mod cutlass;
mod grid;
#[cfg(not(target_arch = "nvptx64"))]
mod name;

#[cfg(not(target_arch = "nvptx64"))]
pub use name::ParseOrderError;

pub(crate) use grid::div_rem;
pub use grid::{Tile, TileGrid, ceil_div};

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
#[repr(u32)]
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

    /// The tile that `id` means. For `id >= grid.tiles()` the result is some tile,
    /// inside or outside the grid; the function never panics.
    #[inline(always)]
    pub fn tile(self, grid: TileGrid, id: u32) -> Tile {
        // All grouped orders share one function, because every kernel instantiates
        // this code.
        let (size, along_n, serpentine) = match self {
            TileOrder::RowMajor => (1, false, false),
            TileOrder::ColumnMajor => (1, true, false),
            TileOrder::GroupedM { size } => (size, false, false),
            TileOrder::GroupedN { size } => (size, true, false),
            TileOrder::SerpentineM { size } => (size, false, true),
            TileOrder::SerpentineN { size } => (size, true, true),
            TileOrder::Morton => return curve::morton(id, grid),
            TileOrder::Hilbert => return curve::hilbert(id, grid),
        };
        let TileGrid { tiles_m, tiles_n } = grid;
        let (major, minor) = if along_n {
            (tiles_n, tiles_m)
        } else {
            (tiles_m, tiles_n)
        };
        let (major, minor) = grouped(id, major, minor, size, serpentine);
        if along_n {
            Tile { m: minor, n: major }
        } else {
            Tile { m: major, n: minor }
        }
    }
}

/// Walks a `major`×`minor` grid in bands of `size` along the major axis, major
/// fastest inside a band; returns (major, minor). (Triton's matmul tutorial,
/// "L2 cache optimizations".) With `serpentine`, odd bands start from their far end.
#[inline(always)]
fn grouped(id: u32, major: u32, minor: u32, size: u32, serpentine: bool) -> (u32, u32) {
    // A group larger than the grid equals the whole grid; the clamp also keeps
    // `size · minor` from wrapping.
    let size = size.clamp(1, major.max(1));
    let (group, within) = div_rem(id, size.wrapping_mul(minor));
    let first = group.wrapping_mul(size);
    let height = major.wrapping_sub(first).min(size);
    let (step, offset) = div_rem(within, height);
    let step = if serpentine && group & 1 == 1 {
        minor.wrapping_sub(1).wrapping_sub(step)
    } else {
        step
    };
    (first.wrapping_add(offset), step)
}
