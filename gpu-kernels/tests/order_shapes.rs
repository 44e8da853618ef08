//! The shapes of the orders beyond the grouped ones: pictures, neighbours, and the
//! definitions written out the long way.

use gpu_kernels::{Tile, TileGrid, TileOrder};

/// The tests try all grids up to this side.
const SMALL: u32 = 24;

fn small_grids() -> impl Iterator<Item = TileGrid> {
    (1..=SMALL).flat_map(|tiles_m| (1..=SMALL).map(move |tiles_n| TileGrid { tiles_m, tiles_n }))
}

fn tiles(order: TileOrder, grid: TileGrid) -> Vec<Tile> {
    (0..grid.tiles()).map(|id| order.tile(grid, id)).collect()
}

/// The ids of the tiles at their positions, one line for each row of tiles.
fn picture(order: TileOrder, tiles_m: u32, tiles_n: u32) -> Vec<String> {
    let grid = TileGrid { tiles_m, tiles_n };
    let mut ids = vec![vec![String::new(); tiles_n as usize]; tiles_m as usize];
    for (id, tile) in tiles(order, grid).into_iter().enumerate() {
        ids[tile.m as usize][tile.n as usize] = format!("{id:>2}");
    }
    ids.into_iter().map(|row| row.join(" ")).collect()
}

/// The larger of the distances along M and along N.
fn king_steps(a: Tile, b: Tile) -> u32 {
    a.m.abs_diff(b.m).max(a.n.abs_diff(b.n))
}

fn is_beside(a: Tile, b: Tile) -> bool {
    a.m.abs_diff(b.m) + a.n.abs_diff(b.n) == 1
}

#[test]
fn pictures() {
    let serpentine = [
        " 0  2  4  6",
        " 1  3  5  7",
        "14 12 10  8",
        "15 13 11  9",
        "16 17 18 19",
    ];
    assert_eq!(
        picture(TileOrder::SerpentineM { size: 2 }, 5, 4),
        serpentine
    );
    let columns = [
        " 0  1 10 11", //
        " 2  3  8  9",
        " 4  5  6  7",
    ];
    assert_eq!(picture(TileOrder::SerpentineN { size: 2 }, 3, 4), columns);
    let morton = [
        " 0  1  4  5 16 17",
        " 2  3  6  7 18 19",
        " 8  9 12 13 20 21",
        "10 11 14 15 22 23",
        "24 25 26 27 28 29",
    ];
    assert_eq!(picture(TileOrder::Morton, 5, 6), morton);
    // Hilbert's own curve.
    let hilbert = [" 0  1 14 15", " 3  2 13 12", " 4  7  8 11", " 5  6  9 10"];
    assert_eq!(picture(TileOrder::Hilbert, 4, 4), hilbert);
}

#[test]
fn serpentine_rows_and_columns_go_from_neighbour_to_neighbour() {
    for grid in small_grids() {
        for order in [
            TileOrder::SerpentineM { size: 1 },
            TileOrder::SerpentineN { size: 1 },
        ] {
            for pair in tiles(order, grid).windows(2) {
                assert!(
                    is_beside(pair[0], pair[1]),
                    "{order:?} on {grid:?}: {pair:?}"
                );
            }
        }
    }
}

#[test]
fn serpentine_groups_are_the_grouped_ones_with_every_other_turned_round() {
    for grid in small_grids() {
        for size in [1, 2, 3, 7] {
            let grouped = tiles(TileOrder::GroupedM { size }, grid);
            let serpentine = tiles(TileOrder::SerpentineM { size }, grid);
            for (there, here) in grouped.into_iter().zip(serpentine) {
                let turned = (there.m / size) % 2 == 1;
                let n = if turned {
                    grid.tiles_n - 1 - there.n
                } else {
                    there.n
                };
                assert_eq!(here, Tile { m: there.m, n }, "size {size} on {grid:?}");
            }
        }
    }
}

/// Whether a path of steps between neighbours exists. Each step changes the colour on the
/// chessboard, so no path leads from end to end of an odd side through an even number of
/// tiles.
fn has_path(grid: TileGrid) -> bool {
    let long = grid.tiles_m.max(grid.tiles_n);
    !grid.tiles().is_multiple_of(2) || long.is_multiple_of(2)
}

#[test]
fn hilbert_goes_from_neighbour_to_neighbour() {
    let large = [(500, 37), (37, 500), (64, 112), (129, 128)]
        .map(|(tiles_m, tiles_n)| TileGrid { tiles_m, tiles_n });
    for grid in small_grids().chain(large) {
        let diagonal = tiles(TileOrder::Hilbert, grid)
            .windows(2)
            .filter(|pair| !is_beside(pair[0], pair[1]))
            .inspect(|pair| assert_eq!(king_steps(pair[0], pair[1]), 1, "{grid:?}: {pair:?}"))
            .count();
        assert!(diagonal <= usize::from(!has_path(grid)), "{grid:?}");
    }
}

#[test]
fn hilbert_ends_at_the_other_end_of_the_longer_side() {
    for grid in small_grids().filter(|grid| has_path(*grid)) {
        let path = tiles(TileOrder::Hilbert, grid);
        assert_eq!(path[0], Tile { m: 0, n: 0 });
        let (m, n) = if grid.tiles_m > grid.tiles_n {
            (grid.tiles_m - 1, 0)
        } else {
            (0, grid.tiles_n - 1)
        };
        assert_eq!(path.last(), Some(&Tile { m, n }), "{grid:?}");
    }
}

/// A wave of W tiles in a row touches W + 1 rows and columns, a square wave 2 √W.
#[test]
fn a_wave_of_a_curve_is_nearly_square() {
    let grid = TileGrid {
        tiles_m: 150,
        tiles_n: 230,
    };
    for order in [TileOrder::Hilbert, TileOrder::Morton] {
        let path = tiles(order, grid);
        let waves = path.chunks_exact(144);
        let count = waves.len();
        let touched: usize = waves
            .map(|wave| {
                let mut rows: Vec<u32> = wave.iter().map(|tile| tile.m).collect();
                let mut cols: Vec<u32> = wave.iter().map(|tile| tile.n).collect();
                for side in [&mut rows, &mut cols] {
                    side.sort_unstable();
                    side.dedup();
                }
                rows.len() + cols.len()
            })
            .sum();
        let mean = touched as f64 / count as f64;
        assert!(
            mean < 1.5 * 24.0,
            "{order:?}: {mean} rows and columns a wave"
        );
    }
}

#[test]
fn morton_sorts_by_interleaved_bits() {
    let interleaved = |tile: &Tile| {
        (0..32).fold(0_u64, |code, bit| {
            let m = u64::from(tile.m >> bit & 1);
            let n = u64::from(tile.n >> bit & 1);
            code | m << (2 * bit + 1) | n << (2 * bit)
        })
    };
    let large = [(300, 7), (7, 300), (130, 129)];
    let large = large.map(|(tiles_m, tiles_n)| TileGrid { tiles_m, tiles_n });
    for grid in small_grids().chain(large) {
        let mut sorted = tiles(TileOrder::RowMajor, grid);
        sorted.sort_by_key(interleaved);
        assert_eq!(tiles(TileOrder::Morton, grid), sorted, "{grid:?}");
    }
}

/// The walk of CUTLASS's persistent scheduler, over the grid rounded up to whole
/// swizzles, without the tiles that lie outside.
fn cutlass_walk(grid: TileGrid, log_swizzle: u32, along_n: bool) -> Vec<Tile> {
    let swizzle = 1 << log_swizzle;
    let padded_m = grid.tiles_m.next_multiple_of(swizzle);
    let padded_n = grid.tiles_n.next_multiple_of(swizzle);
    let major_length = if along_n { padded_n } else { padded_m };
    (0..padded_m * padded_n)
        .map(|id| {
            let (offset, rest) = (id & (swizzle - 1), id >> log_swizzle);
            let minor = rest / major_length * swizzle + offset;
            let major = rest % major_length;
            match along_n {
                true => Tile { m: minor, n: major },
                false => Tile { m: major, n: minor },
            }
        })
        .filter(|tile| tile.m < grid.tiles_m && tile.n < grid.tiles_n)
        .collect()
}

#[test]
fn cutlass_swizzles_are_grouped_orders() {
    for grid in small_grids() {
        for log_swizzle in 0..4 {
            let size = 1 << log_swizzle;
            assert_eq!(
                cutlass_walk(grid, log_swizzle, true),
                tiles(TileOrder::GroupedM { size }, grid)
            );
            assert_eq!(
                cutlass_walk(grid, log_swizzle, false),
                tiles(TileOrder::GroupedN { size }, grid)
            );
        }
    }
}

#[test]
fn cutlass_picks_the_direction_on_the_padded_grid_and_shrinks_the_swizzle() {
    let pick = |tiles_m, tiles_n, max| TileOrder::cutlass(TileGrid { tiles_m, tiles_n }, max);
    // On grids higher than wide, or square, the raster goes along N and a swizzle is of rows.
    assert_eq!(pick(64, 64, 8), TileOrder::GroupedM { size: 8 });
    assert_eq!(pick(64, 65, 8), TileOrder::GroupedN { size: 8 });
    // 57 rounds up to 64 in swizzles of 8, so the rounded grid is square.
    assert_eq!(pick(57, 64, 8), TileOrder::GroupedM { size: 8 });
    assert_eq!(pick(57, 64, 1), TileOrder::GroupedN { size: 1 });
    for (side, size) in [(1, 1), (2, 2), (3, 4), (5, 4), (6, 8)] {
        assert_eq!(pick(64, side, 8), TileOrder::GroupedM { size }, "{side}");
    }
    for (max, size) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (7, 4), (100, 8)] {
        assert_eq!(pick(9, 9, max), TileOrder::GroupedM { size }, "{max}");
    }
}

#[test]
fn names_survive_and_others_are_refused() {
    for order in TileOrder::all(12) {
        assert_eq!(order.to_string().parse(), Ok(order));
    }
    for text in [
        "",
        "grouped",
        "grouped:",
        "grouped:0",
        "grouped:-1",
        "row:3",
        "row:",
        "hilbert:2",
        "Row",
    ] {
        assert!(text.parse::<TileOrder>().is_err(), "{text}");
    }
}

/// The launch parameters carry an order: a tag and one number.
#[test]
fn an_order_is_two_words() {
    assert_eq!(size_of::<TileOrder>(), 8);
    assert_eq!(align_of::<TileOrder>(), 4);
}
