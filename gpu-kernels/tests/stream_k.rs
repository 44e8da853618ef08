//! Stream-K: every step once, evenly dealt, and no CTA waits for one that waits.

use std::collections::HashMap;

use gpu_kernels::schedule::{CtaPosition, TileWalk};
use gpu_kernels::stream_k::{Part, PartWalk, Role};
use gpu_kernels::{Schedule, Tile, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x57a;

/// A launch: C in tiles of so many steps, CTAs, and those of them that share.
#[derive(Clone, Copy, Debug)]
struct Launch {
    grid: TileGrid,
    k_steps: u32,
    ctas: u32,
    sharers: u32,
}

impl Launch {
    /// One row of `tiles`.
    fn row(tiles: u32, k_steps: u32, ctas: u32, sharers: u32) -> Self {
        let grid = TileGrid {
            tiles_m: 1,
            tiles_n: tiles,
        };
        Launch {
            grid,
            k_steps,
            ctas,
            sharers,
        }
    }

    fn random(random: &mut StdRng) -> Self {
        let ctas = random.random_range(1..=140);
        Launch {
            grid: TileGrid {
                tiles_m: random.random_range(1..=20),
                tiles_n: random.random_range(1..=20),
            },
            k_steps: random.random_range(1..=70),
            ctas,
            sharers: random.random_range(1..=ctas),
        }
    }

    /// Tiles of the last wave.
    fn shared(&self) -> u32 {
        self.grid.tiles() % self.ctas
    }

    /// The parts of CTA `x`, in its order.
    fn parts(&self, x: u32) -> Vec<Part> {
        let cta = CtaPosition {
            x,
            y: 0,
            grid_x: self.ctas,
        };
        let order = TileOrder::GroupedM { size: 3 };
        let tiles = TileWalk::new(Schedule::StreamK, order, self.grid, cta);
        let mut walk = PartWalk::shared(tiles, cta, self.sharers, self.k_steps);
        std::iter::from_fn(|| walk.next()).collect()
    }

    /// Every step of every tile is somebody's, once, and a tile is lent to by
    /// those right before its finisher, in the order of K.
    fn check(&self) {
        let mut of_tile: HashMap<Tile, Vec<(u32, Part)>> = HashMap::new();
        for cta in 0..self.ctas {
            for part in self.parts(cta) {
                of_tile.entry(part.tile).or_default().push((cta, part));
            }
        }
        assert_eq!(of_tile.len(), self.grid.tiles() as usize, "{self:?}");
        for (tile, mut parts) in of_tile {
            assert!(tile.m < self.grid.tiles_m && tile.n < self.grid.tiles_n);
            parts.sort_by_key(|(_, part)| part.first);
            let mut step = 0;
            for (_, part) in &parts {
                assert_eq!(part.first, step, "{self:?} {parts:?}");
                assert!(part.end > part.first);
                step = part.end;
            }
            assert_eq!(step, self.k_steps, "{self:?} {parts:?}");
            let (finisher, last) = parts.pop().unwrap();
            let lenders = parts.len() as u32;
            match last.role {
                Role::Whole => assert_eq!(lenders, 0, "{self:?}"),
                Role::Finish { lenders: awaited } => assert_eq!(awaited, lenders, "{self:?}"),
                Role::Lend => panic!("{self:?}: nobody finishes {tile:?}"),
            }
            for (index, (cta, part)) in parts.iter().enumerate() {
                assert_eq!(part.role, Role::Lend);
                assert_eq!(*cta, finisher - lenders + index as u32, "{self:?}");
            }
        }
    }

    /// Steps that CTA `x` has of shared tiles. What is alone in a tile comes
    /// first; what is lent comes before what is waited for, and at most once.
    fn check_cta(&self, x: u32) -> u32 {
        let mut parts = self.parts(x);
        let alone = (self.grid.tiles() / self.ctas) as usize;
        let run = parts.split_off(alone);
        assert!(parts.iter().all(|part| part.role == Role::Whole));
        let lent = run.iter().filter(|part| part.role == Role::Lend).count();
        assert!(lent <= 1, "{self:?}: CTA {x} has one slot");
        if lent == 1 {
            assert_eq!(
                run[0].role,
                Role::Lend,
                "{self:?}: CTA {x} waits, then lends"
            );
        }
        if self.sharers >= self.shared() {
            assert!(run.len() <= 2, "{self:?}: {run:?}");
        }
        run.iter().map(|part| part.end - part.first).sum()
    }
}

#[test]
fn random_launches_run_every_step_once() {
    let mut random = StdRng::seed_from_u64(SEED);
    for _ in 0..400 {
        let launch = Launch::random(&mut random);
        launch.check();
        let steps: Vec<u32> = (0..launch.ctas).map(|x| launch.check_cta(x)).collect();
        let (sharers, others) = steps.split_at(launch.sharers as usize);
        assert!(others.iter().all(|steps| *steps == 0), "{launch:?}");
        let (least, most) = (sharers.iter().min(), sharers.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 1, "{launch:?}: {steps:?}");
    }
}

#[test]
fn special_launches_run_every_step_once() {
    for launch in [
        // One step along K: nothing to cut, and fewer steps than sharers.
        Launch::row(10, 1, 7, 7),
        Launch::row(3, 1, 7, 7),
        // Whole waves only.
        Launch::row(14, 9, 7, 7),
        // One tile for all, with a step each or less.
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
    let of = |launch: Launch, cta| -> Vec<(u32, u32, u32, Role)> {
        let parts = launch.parts(cta);
        let part = |part: &Part| (part.tile.n, part.first, part.end, part.role);
        parts.iter().map(part).collect()
    };
    let one = Role::Finish { lenders: 1 };
    let even = Launch::row(10, 8, 4, 4);
    assert_eq!(
        of(even, 2),
        [
            (2, 0, 8, Role::Whole),
            (6, 0, 8, Role::Whole),
            (9, 0, 4, Role::Lend)
        ]
    );
    assert_eq!(of(even, 3)[2], (9, 4, 8, one));
    let uneven = Launch { sharers: 3, ..even };
    assert_eq!(of(uneven, 0)[2..], [(8, 0, 6, Role::Lend)]);
    assert_eq!(of(uneven, 1)[2..], [(9, 0, 3, Role::Lend), (8, 6, 8, one)]);
    assert_eq!(of(uneven, 2)[2..], [(9, 3, 8, one)]);
    assert_eq!(of(uneven, 3).len(), 2);
}
