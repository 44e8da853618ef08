//! Properties of tile schedulers, on random grids.

use gpu_kernels::schedule::{CtaPosition, TileScheduler, WorkTile};
use gpu_kernels::{Raster, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x7475_726e;

/// The tiles of `new`, whatever it has derived from the launch being derived anew at each tile.
fn tiles_of(new: TileScheduler) -> Vec<WorkTile> {
    let mut tiles = new;
    let found: Vec<_> = std::iter::from_fn(|| tiles.next()).collect();
    let mut tiles = new;
    let renewed = std::iter::from_fn(|| {
        tiles = tiles.renewed(new);
        tiles.next()
    });
    assert_eq!(renewed.collect::<Vec<_>>(), found);
    found
}

/// Taken in turn, the tiles of all consumers that alternate are the scheduler's tiles.
#[test]
fn alternating_consumers_have_the_tiles_of_their_scheduler() {
    let mut rng = StdRng::seed_from_u64(SEED);
    for _ in 0..2000 {
        let grid = TileGrid {
            tiles_m: rng.random_range(1..20),
            tiles_n: rng.random_range(1..20),
        };
        let batches = rng.random_range(1..4);
        // A CTA for each tile, or any number.
        let ctas = match rng.random_range(0..2) {
            0 => rng.random_range(1..40),
            _ => grid.tiles() * batches,
        };
        let cta = CtaPosition {
            x: rng.random_range(0..ctas),
            y: 0,
            grid_x: ctas,
            grid_y: 1,
        };
        let raster = Raster::new(TileOrder::GroupedM { size: 3 }, grid);
        let tiles = TileScheduler::new(raster, Some(batches), cta);
        let of = rng.random_range(1..4);
        let mut consumers: Vec<_> = (0..of)
            .map(|next| {
                let mut share = tiles;
                share.alternate(next, of);
                tiles_of(share).into_iter()
            })
            .collect();
        let mut dealt = Vec::new();
        let mut next = 0;
        while let Some(tile) = consumers[next].next() {
            dealt.push(tile);
            next = (next + 1) % consumers.len();
        }
        assert_eq!(dealt, tiles_of(tiles), "{grid:?} {cta:?} of {of}");
        assert!(consumers.iter_mut().all(|rest| rest.next().is_none()));
    }
}
