//! Stream-K: every k-block runs once, k-blocks are dealt evenly, and a CTA writes before
//! it waits.

use std::collections::HashMap;

use gpu_kernels::schedule::{CtaPosition, TileScheduler, WorkTile};
use gpu_kernels::stream_k::{FixUp, StreamKScheduler, WorkUnit};
use gpu_kernels::{Raster, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x57a;

/// A launch: the tiles of C, the k-blocks of a tile, the CTAs, and the number of CTAs that
/// share the last wave.
#[derive(Clone, Copy, Debug)]
struct Launch {
    grid: TileGrid,
    k_blocks: u32,
    ctas: u32,
    stream_k_ctas: u32,
}

impl Launch {
    /// A launch whose C is one row of `tiles` tiles.
    fn row(tiles: u32, k_blocks: u32, ctas: u32, stream_k_ctas: u32) -> Self {
        let grid = TileGrid {
            tiles_m: 1,
            tiles_n: tiles,
        };
        Launch {
            grid,
            k_blocks,
            ctas,
            stream_k_ctas,
        }
    }

    fn random(random: &mut StdRng) -> Self {
        let ctas = random.random_range(1..=140);
        Launch {
            grid: TileGrid {
                tiles_m: random.random_range(1..=20),
                tiles_n: random.random_range(1..=20),
            },
            k_blocks: random.random_range(1..=70),
            ctas,
            stream_k_ctas: random.random_range(1..=ctas),
        }
    }

    /// Tiles of the last wave.
    fn shared(&self) -> u32 {
        self.grid.tiles() % self.ctas
    }

    /// The parts of CTA `x`, in its order.
    fn parts(&self, x: u32) -> Vec<WorkUnit> {
        let cta = CtaPosition {
            x,
            y: 0,
            grid_x: self.ctas,
            grid_y: 1,
        };
        let raster = Raster::new(TileOrder::GroupedM { size: 3 }, self.grid);
        let tiles = TileScheduler::new(raster, None, cta);
        let new = StreamKScheduler::new(tiles, cta, self.stream_k_ctas, self.k_blocks);
        let mut units = new;
        let parts: Vec<_> = std::iter::from_fn(|| units.next()).collect();
        // What it derives from the launch may be derived anew at any time.
        let mut units = new;
        let renewed = std::iter::from_fn(|| {
            units = units.renewed(new);
            units.next()
        });
        assert_eq!(renewed.collect::<Vec<_>>(), parts, "{self:?}");
        parts
    }

    /// Every k-block of every tile belongs to exactly one CTA, and the CTA that reduces a
    /// tile adds the sums of the CTAs right before it, in the order of K.
    fn check(&self) {
        let mut of_tile: HashMap<WorkTile, Vec<(u32, WorkUnit)>> = HashMap::new();
        for cta in 0..self.ctas {
            for part in self.parts(cta) {
                of_tile.entry(part.tile).or_default().push((cta, part));
            }
        }
        assert_eq!(of_tile.len(), self.grid.tiles() as usize, "{self:?}");
        for (tile, mut parts) in of_tile {
            assert!(tile.m < self.grid.tiles_m && tile.n < self.grid.tiles_n);
            parts.sort_by_key(|(_, part)| part.first);
            let mut k_block = 0;
            for (_, part) in &parts {
                assert_eq!(part.first, k_block, "{self:?} {parts:?}");
                assert!(part.end > part.first);
                k_block = part.end;
            }
            assert_eq!(k_block, self.k_blocks, "{self:?} {parts:?}");
            let (reducer, last) = parts.pop().unwrap();
            let peers = parts.len() as u32;
            match last.fix_up {
                FixUp::None => assert_eq!(peers, 0, "{self:?}"),
                FixUp::Reduce { peers: awaited } => assert_eq!(awaited, peers, "{self:?}"),
                FixUp::Write => panic!("{self:?}: nobody reduces {tile:?}"),
            }
            for (index, (cta, part)) in parts.iter().enumerate() {
                assert_eq!(part.fix_up, FixUp::Write);
                assert_eq!(*cta, reducer - peers + index as u32, "{self:?}");
            }
        }
    }

    /// The number of k-blocks of shared tiles that CTA `x` has. Whole tiles come first; the
    /// CTA writes partial accumulators before it waits for any, and at most once.
    fn check_cta(&self, x: u32) -> u32 {
        let mut parts = self.parts(x);
        let alone = (self.grid.tiles() / self.ctas) as usize;
        let run = parts.split_off(alone);
        assert!(parts.iter().all(|part| part.fix_up == FixUp::None));
        let written = run
            .iter()
            .filter(|part| part.fix_up == FixUp::Write)
            .count();
        assert!(
            written <= 1,
            "{self:?}: CTA {x} has one part of the workspace"
        );
        if written == 1 {
            assert_eq!(
                run[0].fix_up,
                FixUp::Write,
                "{self:?}: CTA {x} waits, then writes"
            );
        }
        if self.stream_k_ctas >= self.shared() {
            assert!(run.len() <= 2, "{self:?}: {run:?}");
        }
        if self.shared() > 0 && self.stream_k_ctas.is_multiple_of(self.shared()) {
            assert!(run.len() <= 1, "{self:?}: {run:?}");
        }
        run.iter().map(|part| part.end - part.first).sum()
    }
}

#[test]
fn random_launches_run_every_k_block_once() {
    let mut random = StdRng::seed_from_u64(SEED);
    for _ in 0..400 {
        let launch = Launch::random(&mut random);
        launch.check();
        let k_blocks: Vec<u32> = (0..launch.ctas).map(|x| launch.check_cta(x)).collect();
        let (stream_k_ctas, others) = k_blocks.split_at(launch.stream_k_ctas as usize);
        assert!(others.iter().all(|k_blocks| *k_blocks == 0), "{launch:?}");
        let (least, most) = (stream_k_ctas.iter().min(), stream_k_ctas.iter().max());
        assert!(
            most.unwrap() - least.unwrap() <= 1,
            "{launch:?}: {k_blocks:?}"
        );
    }
}

#[test]
fn special_launches_run_every_k_block_once() {
    for launch in [
        // Tiles of one k-block cannot be cut, and there are fewer k-blocks than stream-K CTAs.
        Launch::row(10, 1, 7, 7),
        Launch::row(3, 1, 7, 7),
        // Whole waves only.
        Launch::row(14, 9, 7, 7),
        // All CTAs share one tile, with at most one k-block each.
        Launch::row(1, 7, 7, 7),
        Launch::row(1, 5, 7, 7),
        Launch::row(8, 64, 7, 1),
        Launch::row(0, 64, 1, 1),
    ] {
        launch.check();
        for x in 0..launch.ctas {
            launch.check_cta(x);
        }
    }
}

#[test]
fn the_examples_of_the_documentation() {
    let of = |launch: Launch, cta| -> Vec<(u32, u32, u32, FixUp)> {
        let parts = launch.parts(cta);
        let part = |unit: &WorkUnit| (unit.tile.n, unit.first, unit.end, unit.fix_up);
        parts.iter().map(part).collect()
    };
    let one = FixUp::Reduce { peers: 1 };
    let even = Launch::row(10, 8, 4, 4);
    assert_eq!(
        of(even, 2),
        [
            (2, 0, 8, FixUp::None),
            (6, 0, 8, FixUp::None),
            (9, 0, 4, FixUp::Write)
        ]
    );
    assert_eq!(of(even, 3)[2], (9, 4, 8, one));
    let uneven = Launch {
        stream_k_ctas: 3,
        ..even
    };
    assert_eq!(of(uneven, 0)[2..], [(8, 0, 6, FixUp::Write)]);
    assert_eq!(
        of(uneven, 1)[2..],
        [(9, 0, 3, FixUp::Write), (8, 6, 8, one)]
    );
    assert_eq!(of(uneven, 2)[2..], [(9, 3, 8, one)]);
    assert_eq!(of(uneven, 3).len(), 2);
}
