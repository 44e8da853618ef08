//! The blocks of A and B that each wave loads, counted as Triton's tutorial does.

use alloc::vec::Vec;

use gpu_kernels::{Raster, TileGrid, TileOrder};

/// The blocks that one wave of tiles needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLoads {
    /// Number of tiles in the wave; the last wave may be short.
    pub tiles: u32,
    /// Number of loads if tiles shared no blocks.
    pub uncached: u64,
    /// Number of distinct blocks of A.
    pub a: u64,
    /// Number of distinct blocks of B.
    pub b: u64,
}

impl WaveLoads {
    /// Number of loads if the wave shares every block: [`Self::a`] + [`Self::b`].
    pub fn shared(&self) -> u64 {
        self.a + self.b
    }
}

/// Block loads of each wave of `wave` consecutive tiles, for a product whose
/// K is `tiles_k` blocks deep. A `wave` of 0 means 1.
///
/// This is the example of Triton's tutorial: 9×9 tiles, 9 blocks deep, on 9 SMs.
///
/// ```
/// use gpu_kernels::{TileGrid, TileOrder};
/// use tilewise_model::block_loads;
///
/// let grid = TileGrid { tiles_m: 9, tiles_n: 9 };
/// let first = |order| block_loads(order, grid, 9, 9).next().unwrap();
///
/// // One row of tiles needs 9 blocks of A, and all 81 blocks of B.
/// let row_major = first(TileOrder::RowMajor);
/// assert_eq!(row_major.uncached, 162);
/// assert_eq!((row_major.a, row_major.b, row_major.shared()), (9, 81, 90));
///
/// // A 3×3 square of tiles needs 27 blocks of A and 27 of B.
/// let grouped = first(TileOrder::GroupedM { size: 3 });
/// assert_eq!(grouped.uncached, 162);
/// assert_eq!((grouped.a, grouped.b, grouped.shared()), (27, 27, 54));
/// ```
pub fn block_loads(
    order: TileOrder,
    grid: TileGrid,
    tiles_k: u32,
    wave: u32,
) -> impl Iterator<Item = WaveLoads> {
    let tiles = grid.tiles();
    let wave = wave.max(1);
    let depth = u64::from(tiles_k);
    let raster = Raster::new(order, grid);
    (0..tiles.div_ceil(wave)).map(move |index| {
        let ids = index * wave..(index * wave).saturating_add(wave).min(tiles);
        let in_wave = ids.len() as u32;
        let (rows, cols) = ids
            .map(|id| raster.tile(id))
            .map(|tile| (tile.m, tile.n))
            .unzip();
        WaveLoads {
            tiles: in_wave,
            uncached: 2 * u64::from(in_wave) * depth,
            a: distinct(rows) * depth,
            b: distinct(cols) * depth,
        }
    })
}

/// The number of distinct values.
fn distinct(mut values: Vec<u32>) -> u64 {
    values.sort_unstable();
    values.dedup();
    values.len() as u64
}
