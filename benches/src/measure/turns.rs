//! In which order candidates take their turns: a new random permutation every
//! round.
//!
//! In a fixed cycle a candidate always follows the same neighbour. A GPU at its power limit
//! sets its clock by the load of the last milliseconds, so a candidate that follows a slow,
//! cool kernel runs at a higher clock than one that follows a hot kernel. In a fixed cycle
//! that bias is the same in every round, and no number of rounds removes it. With random
//! orders each candidate follows each other one equally often in the long run, and what is
//! left is noise, which the quartiles show.
//!
//! One generator serves a whole run, so that problems differ in their orders
//! and the same seed repeats them.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Draws the order of each round.
#[derive(Debug)]
pub struct Turns {
    rng: StdRng,
}

impl Turns {
    /// A sequence of orders that only depends on `seed`.
    pub fn new(seed: u64) -> Self {
        Turns {
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// The next round: a permutation of `0..candidates`.
    pub fn round(&mut self, candidates: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..candidates).collect();
        order.shuffle(&mut self.rng);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_a_permutation() {
        let mut turns = Turns::new(1);
        for candidates in [0, 1, 2, 7] {
            let mut order = turns.round(candidates);
            order.sort_unstable();
            assert_eq!(order, (0..candidates).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_seed_repeats_and_rounds_differ() {
        let rounds = |seed| {
            let mut turns = Turns::new(seed);
            (0..10).map(|_| turns.round(8)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(42), rounds(42));
        assert_ne!(rounds(42), rounds(43));
        let mut distinct = rounds(42);
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 5, "{distinct:?}");
    }

    #[test]
    fn every_candidate_follows_every_other_about_equally_often() {
        const CANDIDATES: usize = 4;
        const ROUNDS: usize = 6000;
        let mut turns = Turns::new(7);
        let mut follows = [[0usize; CANDIDATES]; CANDIDATES];
        for _ in 0..ROUNDS {
            for pair in turns.round(CANDIDATES).windows(2) {
                follows[pair[0]][pair[1]] += 1;
            }
        }
        // Three neighbours a round, twelve ordered pairs: a quarter of the rounds.
        for (before, counts) in follows.iter().enumerate() {
            for (after, &count) in counts.iter().enumerate().filter(|&(at, _)| at != before) {
                let expected = ROUNDS / 4;
                assert!(
                    count.abs_diff(expected) < expected / 10,
                    "{after} follows {before} {count} times"
                );
            }
        }
    }
}
