//! Draws for the scheduler.

/// A SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014); with seed 0 none at
/// all: every draw is the first choice.
pub(super) struct Random(Option<u64>);

impl Random {
    /// The generator of cluster `cluster`.
    pub(super) fn new(seed: u64, cluster: u32) -> Random {
        let mut random = Random((seed != 0).then_some(seed));
        // Neighbouring clusters do not take neighbouring paths.
        for _ in 0..cluster % 64 {
            random.draw();
        }
        random
    }

    fn draw(&mut self) -> Option<u64> {
        let state = self.0.as_mut()?;
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(z ^ z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.draw().map_or(0, |draw| (draw % bound as u64) as usize)
    }

    /// True `part` of `whole` times.
    pub(super) fn takes(&mut self, part: usize, whole: usize) -> bool {
        self.0.is_some() && self.below(whole) < part
    }

    /// Whether a thread gives way though it could go on: one time in four.
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
