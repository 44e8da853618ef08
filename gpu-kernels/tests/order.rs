//! Properties that every tile order must have, on random grids.

use gpu_kernels::{Tile, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x7119;

/// Every id means a tile of the grid, and no two ids mean the same tile.
fn assert_bijection(order: TileOrder, grid: TileGrid) {
    let mut seen = vec![false; grid.tiles() as usize];
    for id in 0..grid.tiles() {
        let tile = order.tile(grid, id);
        assert!(
            tile.m < grid.tiles_m && tile.n < grid.tiles_n,
            "{order:?} on {grid:?}: id {id} is {tile:?}, outside the grid"
        );
        let seen = &mut seen[(tile.m * grid.tiles_n + tile.n) as usize];
        assert!(
            !std::mem::replace(seen, true),
            "{order:?} on {grid:?}: id {id} is {tile:?} a second time"
        );
    }
}

#[test]
fn every_order_is_a_bijection() {
    let mut rng = StdRng::seed_from_u64(SEED);
    for _ in 0..300 {
        let grid = TileGrid {
            tiles_m: rng.random_range(1..60),
            tiles_n: rng.random_range(1..60),
        };
        // Past 60, the group is larger than any of these grids.
        let size = rng.random_range(0..80);
        for order in TileOrder::all(size) {
            assert_bijection(order, grid);
        }
    }
}

#[test]
fn every_order_is_a_bijection_on_every_small_grid() {
    for tiles_m in 1..=20 {
        for tiles_n in 1..=20 {
            let grid = TileGrid { tiles_m, tiles_n };
            for order in TileOrder::all(3) {
                assert_bijection(order, grid);
            }
        }
    }
}

#[test]
fn every_order_is_a_bijection_on_thin_grids() {
    for (long, thin) in [(65_535, 1), (20_011, 2), (10_000, 3), (4_097, 8)] {
        for (tiles_m, tiles_n) in [(long, thin), (thin, long)] {
            for order in TileOrder::all(8) {
                assert_bijection(order, TileGrid { tiles_m, tiles_n });
            }
        }
    }
}

#[test]
fn ragged_last_group_is_walked_too() {
    // 7 rows in groups of 3: the last group has one row.
    let grid = TileGrid {
        tiles_m: 7,
        tiles_n: 4,
    };
    let order = TileOrder::GroupedM { size: 3 };
    assert_bijection(order, grid);
    let last_group: Vec<Tile> = (24..28).map(|id| order.tile(grid, id)).collect();
    let last_row: Vec<Tile> = (0..4).map(|n| Tile { m: 6, n }).collect();
    assert_eq!(last_group, last_row);
}

#[test]
fn a_group_spans_its_rows_before_it_moves_right() {
    let grid = TileGrid {
        tiles_m: 8,
        tiles_n: 5,
    };
    for (id, (m, n)) in [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]
        .into_iter()
        .enumerate()
    {
        let id = id as u32;
        assert_eq!(
            TileOrder::GroupedM { size: 4 }.tile(grid, id),
            Tile { m, n }
        );
        let transposed = TileGrid {
            tiles_m: 5,
            tiles_n: 8,
        };
        assert_eq!(
            TileOrder::GroupedN { size: 4 }.tile(transposed, id),
            Tile { m: n, n: m }
        );
    }
}

#[test]
fn extreme_group_sizes_are_plain_orders() {
    let mut rng = StdRng::seed_from_u64(SEED + 1);
    for _ in 0..200 {
        let grid = TileGrid {
            tiles_m: rng.random_range(1..40),
            tiles_n: rng.random_range(1..40),
        };
        for id in 0..grid.tiles() {
            let row = TileOrder::RowMajor.tile(grid, id);
            let column = TileOrder::ColumnMajor.tile(grid, id);
            // Groups of size 0 or 1 are row-major; one group of all rows is column-major.
            for size in [0, 1] {
                assert_eq!(TileOrder::GroupedM { size }.tile(grid, id), row);
                assert_eq!(TileOrder::GroupedN { size }.tile(grid, id), column);
            }
            for size in [grid.tiles_m.max(grid.tiles_n), u32::MAX] {
                assert_eq!(TileOrder::GroupedM { size }.tile(grid, id), column);
                assert_eq!(TileOrder::GroupedN { size }.tile(grid, id), row);
            }
        }
    }
}

#[test]
fn grouping_by_columns_is_grouping_by_rows_of_the_transpose() {
    let mut rng = StdRng::seed_from_u64(SEED + 2);
    for _ in 0..500 {
        let grid = TileGrid {
            tiles_m: rng.random_range(1..50),
            tiles_n: rng.random_range(1..50),
        };
        let transposed = TileGrid {
            tiles_m: grid.tiles_n,
            tiles_n: grid.tiles_m,
        };
        let size = rng.random_range(0..60);
        for id in 0..grid.tiles() {
            let by_columns = TileOrder::GroupedN { size }.tile(grid, id);
            let by_rows = TileOrder::GroupedM { size }.tile(transposed, id);
            assert_eq!((by_columns.m, by_columns.n), (by_rows.n, by_rows.m));
        }
    }
}

#[test]
fn no_input_panics() {
    let mut rng = StdRng::seed_from_u64(SEED + 3);
    let edges = [0, 1, 2, u32::MAX / 2, u32::MAX - 1, u32::MAX];
    for _ in 0..20_000 {
        let mut pick = || match rng.random_range(0..3) {
            0 => edges[rng.random_range(0..edges.len())],
            1 => rng.random_range(0..100),
            _ => rng.random(),
        };
        let grid = TileGrid {
            tiles_m: pick(),
            tiles_n: pick(),
        };
        let (size, id) = (pick(), pick());
        for order in TileOrder::all(size) {
            std::hint::black_box(order.tile(grid, id));
        }
    }
}

#[test]
fn cover_rounds_up() {
    let mut rng = StdRng::seed_from_u64(SEED + 4);
    for _ in 0..2000 {
        let (m, n) = (rng.random_range(0..100_000), rng.random_range(0..100_000));
        let (block_m, block_n) = (rng.random_range(1..512), rng.random_range(1..512));
        let grid = TileGrid::cover(m, n, block_m, block_n);
        assert_eq!(grid.tiles_m, m.div_ceil(block_m));
        assert_eq!(grid.tiles_n, n.div_ceil(block_n));
    }
    let whole_range = TileGrid::cover(u32::MAX, u32::MAX, 1, 2);
    assert_eq!(whole_range.tiles_m, u32::MAX);
    assert_eq!(whole_range.tiles_n, 1 << 31);
}
