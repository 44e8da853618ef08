//! The case of a seed.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::{bf16, f16};

use super::{Case, Outcome, Place};

/// The most that one case may take: most of it is the reference, on one device.
pub const CASE_LIMIT: Duration = Duration::from_secs(120);

/// Runs the case of `seed` on the ranks of `place`; as NCCL takes it, if it is `by_nccl`.
pub fn run_case(
    seed: u64,
    place: &Place,
    largest: usize,
    delays: bool,
    by_nccl: bool,
) -> (Case, Result<Outcome, String>) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let case = Case::random(&mut rng, place.ranks(), largest, delays);
    let case = if by_nccl { case.by_nccl() } else { case };
    let outcome = match rng.random_range(0..6) {
        0 | 1 => case.run::<bf16, bf16>(place, &mut rng),
        2 => case.run::<f16, f16>(place, &mut rng),
        3 => case.run::<f16, f32>(place, &mut rng),
        4 => case.run::<bf16, f32>(place, &mut rng),
        _ => case.run::<f32, f32>(place, &mut rng),
    };
    (case, outcome)
}
