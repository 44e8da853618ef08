//! A race between candidates: it decides which candidate is timed next, and when the
//! winner is known. It uses no GPU.
//!
//! This is a racing algorithm (Birattari and others, "A Racing Algorithm for Configuring
//! Metaheuristics", 2002): all contenders are timed in turns, and a contender that is
//! clearly slower than the leader leaves, so that the budget goes to the contenders that
//! are hard to tell apart.
//!
//! - **Heats.** A group of contenders is a kernel with its orders. At first only the
//!   first contender of each group runs. The groups run in the given order, the best guess
//!   first, so that the best guess is timed even if the budget is short. The other
//!   contenders of a group join if its first contender came near the leader.
//! - **Turns.** After the heats, each round has a new random order, so that a drifting
//!   clock and the previous contender affect all contenders alike.
//! - **Leaving.** A contender leaves if it is never near the leader's median ([`is_far`]).
//!   After enough rounds, it also leaves if its lower quartile is above the leader's upper
//!   quartile. Quartiles are used because times on a GPU are skewed: some are far too slow.

use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

/// Number of rounds in which only the first contender of each group runs.
const HEATS: usize = 2;

/// Number of times that a contender needs before its quartiles count. The winner has at
/// least as many, unless the budget ends first.
const ENOUGH: usize = 7;

/// Number of rounds after which the race ends, because more would tell little.
const MAX_ROUNDS: usize = 60;

/// A race under way.
#[derive(Debug)]
pub(crate) struct Race {
    contenders: Vec<Contender>,
    /// Remaining turns of this round, the last turn first.
    turns: Vec<usize>,
    rounds: usize,
    budget: Duration,
    random: SmallRng,
}

#[derive(Debug)]
struct Contender {
    group: usize,
    state: State,
    /// In the order in which they were taken.
    times: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The contender waits for the heats to end.
    Waits,
    Runs,
    Left,
}

impl Race {
    /// A race with one contender for each element of `groups`, the best guess first.
    /// Contenders of the same group are adjacent and have the same number.
    pub(crate) fn new(groups: &[usize], budget: Duration, seed: u64) -> Race {
        let mut contenders: Vec<Contender> = Vec::new();
        for &group in groups {
            let is_first = contenders.last().is_none_or(|last| last.group != group);
            contenders.push(Contender {
                group,
                state: if is_first { State::Runs } else { State::Waits },
                times: Vec::new(),
            });
        }
        let mut race = Race {
            contenders,
            turns: Vec::new(),
            rounds: 0,
            budget,
            random: SmallRng::seed_from_u64(seed),
        };
        race.turns = race.running().rev().collect();
        race
    }

    /// The contender that is timed next; `None` when the race is over. `spent` is the
    /// time that the race has taken so far.
    pub(crate) fn next(&mut self, spent: Duration) -> Option<usize> {
        if spent >= self.budget && self.leader().is_some() {
            return None;
        }
        while let Some(next) = self.turns.pop() {
            if self.contenders[next].state == State::Runs {
                return Some(next);
            }
        }
        self.rounds += 1;
        self.let_leave();
        if self.rounds == HEATS {
            self.let_join();
        }
        self.turns = self.running().collect();
        let decided = self.turns.len() == 1 && self.rounds >= ENOUGH;
        if decided || self.rounds >= MAX_ROUNDS {
            return None;
        }
        self.turns.shuffle(&mut self.random);
        self.turns.pop()
    }

    /// Records that `contender` took `time`.
    pub(crate) fn time(&mut self, contender: usize, time: f64) {
        self.contenders[contender].times.push(time);
    }

    /// Records that `contender` cannot run.
    pub(crate) fn fail(&mut self, contender: usize) {
        let contender = &mut self.contenders[contender];
        contender.state = State::Left;
        contender.times.clear();
    }

    /// Whether `contender` has left the race.
    pub(crate) fn has_left(&self, contender: usize) -> bool {
        self.contenders[contender].state == State::Left
    }

    /// The contender with the lowest median so far, and that median. Ties go to the first
    /// contender.
    pub(crate) fn leader(&self) -> Option<(usize, f64)> {
        self.running()
            .filter_map(|index| Some((index, self.median(index)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The median of the times of `contender`, also of one that has left; `None` for one
    /// without times.
    pub(crate) fn median(&self, contender: usize) -> Option<f64> {
        quantile(&self.contenders[contender].times, 0.5)
    }

    fn running(&self) -> impl DoubleEndedIterator<Item = usize> {
        let runs = |index: &usize| self.contenders[*index].state == State::Runs;
        (0..self.contenders.len()).filter(runs)
    }

    fn let_leave(&mut self) {
        let Some((leader, median)) = self.leader() else {
            return;
        };
        let slow_leader = quantile(&self.contenders[leader].times, 0.75).unwrap_or(median);
        for (index, contender) in self.contenders.iter_mut().enumerate() {
            let times = &contender.times;
            let (Some(fastest), Some(fast)) = (quantile(times, 0.0), quantile(times, 0.25)) else {
                continue;
            };
            let is_slower = times.len() >= ENOUGH && fast > slow_leader;
            if index != leader && (is_far(times.len(), fastest, median) || is_slower) {
                contender.state = State::Left;
            }
        }
    }

    /// After the heats, lets waiting contenders join if their group still has a contender.
    fn let_join(&mut self) {
        let groups: Vec<usize> = self
            .running()
            .map(|index| self.contenders[index].group)
            .collect();
        for contender in &mut self.contenders {
            if contender.state == State::Waits {
                contender.state = if groups.contains(&contender.group) {
                    State::Runs
                } else {
                    State::Left
                };
            }
        }
    }
}

/// Whether the fastest of some times is hopelessly behind the leader's median. A single
/// time may have been disturbed, so its limit is twice the median.
fn is_far(times: usize, fastest: f64, median: f64) -> bool {
    fastest > median * if times < 2 { 2.0 } else { 1.3 }
}

/// The sample with `fraction` of the others below it (nearest rank); `None`
/// without samples.
fn quantile(samples: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(fraction * last as f64).round() as usize])
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    /// Runs a race on times from `stopwatch`, which also says how long a sample
    /// takes from the budget. Returns the turns and the race.
    fn run(
        groups: &[usize],
        budget: Duration,
        mut stopwatch: impl FnMut(usize, usize) -> f64,
    ) -> (Vec<usize>, Race) {
        let mut race = Race::new(groups, budget, 1);
        let (mut turns, mut spent) = (Vec::new(), 0.0);
        while let Some(next) = race.next(Duration::from_secs_f64(spent)) {
            assert!(!race.has_left(next));
            let time = stopwatch(next, turns.len());
            spent += time;
            turns.push(next);
            race.time(next, time);
        }
        (turns, race)
    }

    fn count(turns: &[usize], contender: usize) -> usize {
        turns.iter().filter(|&&turn| turn == contender).count()
    }

    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn the_fastest_wins_and_losers_leave_early() {
        let times = [1.2, 1.0, 1.1, 5.0];
        let (turns, race) = run(&[0, 1, 2, 3], LONG, |contender, _| times[contender]);
        assert_eq!(race.leader(), Some((1, 1.0)));
        // Contender 3 leaves after one time, the others after enough times.
        assert_eq!(count(&turns, 3), 1);
        assert_eq!(count(&turns, 0), ENOUGH);
        assert_eq!(count(&turns, 1), ENOUGH);
        assert!(race.has_left(0) && race.has_left(2) && !race.has_left(1));
    }

    #[test]
    fn noise_is_seen_through() {
        // The times are 1 % apart under noise of 4 %, with some slow outliers.
        let mut random = SmallRng::seed_from_u64(7);
        let (_, race) = run(&[0, 1, 2], LONG, |contender, turn| {
            let noise = random.random_range(0.0..0.04);
            let outlier = if turn % 11 == 0 { 3.0 } else { 1.0 };
            [1.02, 1.01, 1.0][contender] * (1.0 + noise) * outlier
        });
        assert_eq!(race.leader().unwrap().0, 2);
    }

    #[test]
    fn drift_meets_all_alike() {
        // The clock slows down to half; a contender must not lose because its turn is late.
        let (_, race) = run(&[0, 1], LONG, |contender, turn| {
            [1.0, 0.98][contender] * (1.0 + turn as f64 / 200.0)
        });
        assert_eq!(race.leader().unwrap().0, 1);
    }

    #[test]
    fn equal_ones_end_too_and_the_first_wins() {
        let (turns, race) = run(&[0, 1], LONG, |_, _| 1.0);
        assert_eq!(race.leader(), Some((0, 1.0)));
        assert_eq!(turns.len(), 2 * MAX_ROUNDS);
    }

    #[test]
    fn heats_let_in_the_orders_of_fast_kernels_only() {
        let groups = [0, 0, 0, 1, 1];
        let times = [1.0, 1.0, 0.9, 1.5, 1.4];
        let (turns, race) = run(&groups, LONG, |contender, _| times[contender]);
        assert_eq!(turns[..2], [0, 3]);
        assert_eq!(count(&turns[..4], 0), 2, "two heats");
        assert_eq!(race.leader(), Some((2, 0.9)));
        assert_eq!(count(&turns, 4), 0);
        assert!(race.has_left(4));
    }

    #[test]
    fn the_budget_ends_it_with_what_is_known() {
        let (turns, race) = run(&[0, 1, 2], Duration::ZERO, |_, _| 1.0);
        assert_eq!(turns, [0], "the best guess is timed in any case");
        assert_eq!(race.leader(), Some((0, 1.0)));
        let (turns, _) = run(&[0, 1, 2], Duration::from_secs(30), |_, _| 1.0);
        assert_eq!(turns.len(), 30);
    }

    #[test]
    fn what_cannot_run_never_wins() {
        let mut race = Race::new(&[0, 0, 1], LONG, 1);
        assert_eq!(race.next(Duration::ZERO), Some(0));
        race.fail(0);
        assert_eq!(race.next(Duration::ZERO), Some(2));
        race.time(2, 1.0);
        // Contender 1 does not join, because no contender of its group is left.
        while let Some(next) = race.next(Duration::ZERO) {
            assert_eq!(next, 2);
            race.time(next, 1.0);
        }
        assert_eq!(race.leader(), Some((2, 1.0)));

        let mut race = Race::new(&[0], Duration::ZERO, 1);
        assert_eq!(race.next(LONG), Some(0));
        race.fail(0);
        assert_eq!(race.next(LONG), None);
        assert_eq!(race.leader(), None);
    }

    #[test]
    fn without_contenders_there_is_no_race() {
        let mut race = Race::new(&[], LONG, 1);
        assert_eq!(race.next(Duration::ZERO), None);
        assert_eq!(race.leader(), None);
    }

    #[test]
    fn rounds_are_permutations_in_changing_orders() {
        let (turns, _) = run(&[0, 1, 2, 3], LONG, |_, _| 1.0);
        let mut orders = Vec::new();
        for round in turns.chunks_exact(4) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            orders.push(round);
        }
        orders.sort_unstable();
        orders.dedup();
        assert!(orders.len() > 10);
    }
}
