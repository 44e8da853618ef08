//! CUTLASS's choice among the grouped orders.

use super::{TileGrid, TileOrder};

impl TileOrder {
    /// The order in which CUTLASS's persistent scheduler runs a grid of CTAs when it
    /// picks the raster direction itself, for a `max_swizzle` of 1, 2, 4 or 8 (its
    /// argument `max_swizzle_size`; any other value acts as the next of these below it).
    ///
    /// A *swizzle* of 2^s is a group of 2^s rows where the raster goes along N
    /// ([`TileOrder::GroupedM`]), and a group of 2^s columns where it goes along M
    /// ([`TileOrder::GroupedN`]). CUTLASS rounds the grid up to whole swizzles and runs
    /// nothing for the tiles outside C; here such tiles have no number. CUTLASS's swizzle
    /// for GEMMs that are not persistent, `GemmIdentityThreadblockSwizzle<N>`, equals
    /// [`TileOrder::GroupedN`] in the same way.
    ///
    /// (`PersistentTileSchedulerSm90Params`: `get_log_swizzle_size`,
    /// `get_rasterization_order`.)
    ///
    /// ```
    /// use gpu_kernels::{TileGrid, TileOrder};
    /// // Wider than high: the raster goes down the columns, eight side by side.
    /// let wide = TileGrid { tiles_m: 64, tiles_n: 112 };
    /// assert_eq!(TileOrder::cutlass(wide, 8), TileOrder::GroupedN { size: 8 });
    /// // Too narrow for a swizzle of 8.
    /// let narrow = TileGrid { tiles_m: 64, tiles_n: 5 };
    /// assert_eq!(TileOrder::cutlass(narrow, 8), TileOrder::GroupedM { size: 4 });
    /// ```
    pub fn cutlass(grid: TileGrid, max_swizzle: u32) -> TileOrder {
        let side = grid.tiles_m.min(grid.tiles_n);
        let size = match (max_swizzle, side) {
            (8.., 6..) => 8,
            (4.., 3..) => 4,
            (2.., 2..) => 2,
            _ => 1,
        };
        // CUTLASS picks the direction on the grid rounded up to swizzles.
        if grid.tiles_n.div_ceil(size) > grid.tiles_m.div_ceil(size) {
            TileOrder::GroupedN { size }
        } else {
            TileOrder::GroupedM { size }
        }
    }
}
