//! Properties of tile walks, on random grids.

use gpu_kernels::schedule::{CtaPosition, TileWalk};
use gpu_kernels::{Schedule, Tile, TileGrid, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x7475_726e;

fn tiles_of(mut walk: TileWalk) -> Vec<Tile> {
    std::iter::from_fn(|| walk.next()).collect()
}

/// Dealt out again in order, one at a time, the tiles of all turns are those of
/// the walk.
#[test]
fn turns_deal_out_the_tiles_of_a_walk() {
    let mut rng = StdRng::seed_from_u64(SEED);
    for _ in 0..2000 {
        let grid = TileGrid {
            tiles_m: rng.random_range(1..20),
            tiles_n: rng.random_range(1..20),
        };
        let schedule = [Schedule::Grid1d, Schedule::Persistent][rng.random_range(0..2)];
        let grid_x = match schedule {
            Schedule::Persistent => rng.random_range(1..40),
            _ => grid.tiles(),
        };
        let cta = CtaPosition {
            x: rng.random_range(0..grid_x),
            y: 0,
            grid_x,
        };
        let walk = TileWalk::new(schedule, TileOrder::GroupedM { size: 3 }, grid, cta);
        let of = rng.random_range(1..4);
        let mut turns: Vec<_> = (0..of)
            .map(|turn| {
                let mut share = walk;
                share.take_turns(turn, of);
                tiles_of(share).into_iter()
            })
            .collect();
        let mut dealt = Vec::new();
        let mut turn = 0;
        while let Some(tile) = turns[turn].next() {
            dealt.push(tile);
            turn = (turn + 1) % turns.len();
        }
        assert_eq!(
            dealt,
            tiles_of(walk),
            "{schedule:?} {grid:?} {cta:?} of {of}"
        );
        assert!(turns.iter_mut().all(|rest| rest.next().is_none()));
    }
}
