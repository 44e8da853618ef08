//! Random choices of the scheduler.

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

/// A random generator; each cluster has its own stream. With seed 0 there is no generator,
/// and every draw is the first choice.
pub(super) struct Random(Option<Pcg32>);

impl Random {
    /// The generator of cluster `cluster`.
    pub(super) fn new(seed: u64, cluster: u32) -> Random {
        Random((seed != 0).then(|| Pcg32::new(seed, cluster.into())))
    }

    /// A number below `bound`. `bound` is positive.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let draw = self.0.as_mut().map(|random| random.next_u32() as usize);
        draw.map_or(0, |draw| draw % bound)
    }

    /// True in `part` of `whole` draws.
    pub(super) fn takes(&mut self, part: usize, whole: usize) -> bool {
        self.0.is_some() && self.below(whole) < part
    }

    /// Whether a thread gives way though it could go on: true in one of four draws.
    pub(super) fn preempts(&mut self) -> bool {
        self.takes(1, 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_replay_and_differ() {
        let draws = |seed| {
            let mut random = Random::new(seed, 3);
            [0; 16].map(|_| random.below(1000))
        };
        assert_eq!(draws(0), [0; 16]);
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert!(!Random::new(0, 0).preempts());
    }
}
