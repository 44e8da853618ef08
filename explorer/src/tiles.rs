//! Which tile runs when, and what each wave loads.

use alloc::vec::Vec;

use gpu_kernels::Raster;
use tilewise_model::{WaveLoads, block_loads};

use crate::Query;

/// Row and column of every tile, one after the other, in the order they run.
pub fn tiles(query: &Query) -> Vec<u32> {
    let grid = query.workload.grid();
    let raster = Raster::new(query.order, grid);
    let mut pairs = Vec::with_capacity(2 * grid.tiles() as usize);
    for id in 0..grid.tiles() {
        let tile = raster.tile(id);
        pairs.extend([tile.m, tile.n]);
    }
    pairs
}

/// Four numbers for each wave of as many tiles as there are SMs: tiles, loads without
/// a cache, distinct blocks of A, distinct blocks of B. (Of f64, which holds them
/// exactly and is what JavaScript counts in.)
pub fn waves(query: &Query) -> Vec<f64> {
    let workload = &query.workload;
    let grid = workload.grid();
    let loads = block_loads(query.order, grid, workload.tiles_k(), query.gpu.sms);
    let mut numbers = Vec::with_capacity(4 * grid.tiles().div_ceil(query.gpu.sms) as usize);
    for WaveLoads {
        tiles,
        uncached,
        a,
        b,
    } in loads
    {
        numbers.extend([f64::from(tiles), uncached as f64, a as f64, b as f64]);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Triton's example: 9×9 tiles, 9 blocks deep, on 9 SMs.
    fn example(order: &str) -> Query {
        Query::new([9; 3], [1; 3], 2, order, 0, 9).unwrap()
    }

    #[test]
    fn the_tutorials_figures() {
        assert_eq!(waves(&example("row"))[..4], [9.0, 162.0, 9.0, 81.0]);
        assert_eq!(waves(&example("grouped:3"))[..4], [9.0, 162.0, 27.0, 27.0]);
        assert_eq!(waves(&example("row")).len(), 4 * 9);
    }

    #[test]
    fn tiles_come_in_pairs_in_their_order() {
        assert_eq!(tiles(&example("row"))[..6], [0, 0, 0, 1, 0, 2]);
        assert_eq!(tiles(&example("col"))[..6], [0, 0, 1, 0, 2, 0]);
        assert_eq!(tiles(&example("hilbert")).len(), 2 * 81);
    }
}
