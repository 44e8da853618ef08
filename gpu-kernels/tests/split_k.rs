//! Split-K: every k-block runs once, and the parts of a tile follow each other in the order of K.

use gpu_kernels::schedule::{CtaPosition, TileScheduler, WorkTile};
use gpu_kernels::split_k::{self, SplitKScheduler, SplitKUnit};
use gpu_kernels::{Raster, Tile, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;

const SEED: u64 = 0x5b1;

/// A launch: the tiles of C, the k-blocks of a tile, and the CTAs that share them.
#[derive(Clone, Copy, Debug)]
struct Launch {
    grid: TileGrid,
    k_blocks: u32,
    ctas: u32,
}

impl Launch {
    fn random(random: &mut StdRng) -> Self {
        let grid = TileGrid {
            tiles_m: random.random_range(1..=20),
            tiles_n: random.random_range(1..=20),
        };
        let ctas = match random.random_bool(0.3) {
            true => grid.tiles() * random.random_range(1..=4),
            false => random.random_range(1..=140),
        };
        Launch {
            grid,
            k_blocks: random.random_range(1..=70),
            ctas,
        }
    }

    fn raster(&self) -> Raster {
        Raster::new(TileOrder::GroupedM { size: 3 }, self.grid)
    }

    /// The units of CTA `x`, in its order.
    fn units(&self, x: u32) -> Vec<SplitKUnit> {
        let cta = CtaPosition {
            x,
            y: 0,
            grid_x: self.ctas,
            grid_y: 1,
        };
        let tiles = TileScheduler::new(self.raster(), None, cta);
        let new = SplitKScheduler::new(tiles, cta, self.ctas, self.k_blocks);
        let mut scheduler = new;
        let units: Vec<_> = std::iter::from_fn(|| scheduler.next()).collect();
        // What it derives from the launch may be derived anew at any time.
        let mut scheduler = new;
        let renewed = std::iter::from_fn(|| {
            scheduler = scheduler.renewed(new);
            scheduler.next()
        });
        assert_eq!(renewed.collect::<Vec<_>>(), units, "{self:?}");
        units
    }

    fn check(&self) {
        let tiles = self.grid.tiles();
        let mut of_tiles: HashMap<WorkTile, Vec<SplitKUnit>> = HashMap::new();
        let fewest = tiles * self.k_blocks / self.ctas;
        for cta in 0..self.ctas {
            let units = self.units(cta);
            let k_blocks: u32 = units.iter().map(|unit| unit.end - unit.first).sum();
            let is_even = [fewest, fewest + 1].contains(&k_blocks);
            // Where each tile has its own CTAs, their ranges differ by one at most.
            assert!(is_even || self.ctas.is_multiple_of(tiles), "{self:?}");
            for unit in units {
                of_tiles.entry(unit.tile).or_default().push(unit);
            }
        }
        let mut seen = vec![false; split_k::parts(tiles, self.ctas) as usize];
        for id in 0..tiles {
            let Tile { m, n } = self.raster().tile(id);
            let mut units = of_tiles.remove(&WorkTile { m, n, batch: 0 }).unwrap();
            units.sort_unstable_by_key(|unit| unit.first);
            let (first, count) = split_k::parts_of_tile(id, (tiles, self.k_blocks), self.ctas);
            let found: Vec<_> = units.iter().map(|unit| unit.part).collect();
            let expected: Vec<_> = (first..first + count).collect();
            assert_eq!(found, expected, "{self:?}: tile {id}");
            let mut k_block = 0;
            for unit in units {
                assert_eq!(unit.first, k_block, "{self:?}");
                assert!(unit.end > unit.first);
                k_block = unit.end;
                let seen = &mut seen[unit.part as usize];
                assert!(!*seen, "{self:?}: part {} of two units", unit.part);
                *seen = true;
            }
            assert_eq!(k_block, self.k_blocks, "{self:?}");
        }
        assert!(of_tiles.is_empty(), "{self:?}");
    }
}

#[test]
fn random_launches_run_every_k_block_once() {
    let mut random = StdRng::seed_from_u64(SEED);
    for _ in 0..3000 {
        Launch::random(&mut random).check();
    }
}

#[test]
fn the_example_of_the_documentation() {
    let launch = Launch {
        grid: TileGrid {
            tiles_m: 1,
            tiles_n: 2,
        },
        k_blocks: 8,
        ctas: 3,
    };
    let units = |cta| {
        let units = launch.units(cta).into_iter();
        units
            .map(|unit| (unit.tile.n, unit.first, unit.end, unit.part))
            .collect::<Vec<_>>()
    };
    assert_eq!(units(0), [(0, 0, 6, 0)]);
    assert_eq!(units(1), [(0, 6, 8, 1), (1, 0, 3, 2)]);
    assert_eq!(units(2), [(1, 3, 8, 3)]);
}
