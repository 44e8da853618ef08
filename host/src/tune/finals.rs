//! Who wins of those that were fastest with a cold L2: the tuner's decision about both regimes.
//!
//! A launch that finds its operands in DRAM waits for memory; launches back to back find them in
//! L2 or share a power limit, and another choice may be faster there. The winner must not be
//! slower than the choice of the rule in either, or measuring would be worse than not measuring.

/// A choice takes part in the finals if its time with a cold L2 is at most this multiple of the
/// shortest.
const NEAR: f64 = 1.05;

/// Most finalists. The sustained time of each needs tens of milliseconds.
const MOST: usize = 6;

/// The multiple of the rule's time that counts as equal to it: medians of the same launch differ
/// by this much from race to race.
const EQUAL: f64 = 1.005;

/// The median times of a choice, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// Of one launch after L2 was overwritten.
    pub(super) cold: f64,
    /// Of one of many launches back to back, if it was measured.
    pub(super) sustained: Option<f64>,
}

/// The finalists among choices with these median `cold` times (none where a choice has failed or
/// was not timed): the first choice, which is the rule's, and then the fastest.
pub(super) fn finalists(cold: &[Option<f64>]) -> Vec<usize> {
    let mut timed: Vec<(usize, f64)> = (cold.iter().enumerate())
        .filter_map(|(index, time)| Some((index, (*time)?)))
        .collect();
    timed.sort_by(|a, b| a.1.total_cmp(&b.1));
    let limit = timed.first().map_or(0.0, |fastest| fastest.1 * NEAR);
    let is_rule = |&(index, _): &(usize, f64)| index == 0;
    let near = timed
        .iter()
        .filter(|timed| !is_rule(timed) && timed.1 <= limit);
    (timed.iter().filter(|timed| is_rule(timed)))
        .chain(near)
        .map(|&(index, _)| index)
        .take(MOST)
        .collect()
}

/// The winner among the finalists, of which the first is the one to beat: the lowest product of
/// both times among those that are slower than the first in neither regime. Ties go to the
/// earlier one; `None` without finalists.
pub(super) fn winner(finalists: &[Times]) -> Option<usize> {
    let first = finalists.first()?;
    let score = |times: &Times| match (times.sustained, first.sustained) {
        (Some(sustained), Some(_)) => Some(times.cold * sustained),
        // The budget ended before the first had its time.
        (_, None) => Some(times.cold),
        (None, Some(_)) => None,
    };
    let loses = |times: &Times| {
        let is_slower = |time: f64, first: f64| time > first * EQUAL;
        is_slower(times.cold, first.cold)
            || times
                .sustained
                .zip(first.sustained)
                .is_some_and(|(time, first)| is_slower(time, first))
    };
    (finalists.iter().enumerate())
        .filter(|(_, times)| !loses(times))
        .filter_map(|(index, times)| Some((index, score(times)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cold: f64, sustained: f64) -> Times {
        Times {
            cold,
            sustained: Some(sustained),
        }
    }

    #[test]
    fn the_rule_and_the_fastest_are_finalists() {
        assert_eq!(
            finalists(&[Some(2.0), Some(1.04), None, Some(1.0), Some(1.06)]),
            [0, 3, 1]
        );
        assert_eq!(finalists(&[None, Some(1.0), Some(1.0)]), [1, 2]);
        assert!(finalists(&[None, None]).is_empty());
        assert_eq!(finalists(&[Some(1.0); 20]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_winner_is_slower_than_the_rule_in_neither_regime() {
        let rule = times(1.0, 1.0);
        // Faster cold and slower sustained, and the other way round.
        assert_eq!(winner(&[rule, times(0.9, 1.02), times(1.02, 0.8)]), Some(0));
        assert_eq!(
            winner(&[rule, times(0.99, 0.98), times(0.98, 1.004)]),
            Some(1)
        );
        assert_eq!(winner(&[rule, times(1.004, 0.9)]), Some(1));
        assert_eq!(winner(&[rule, rule]), Some(0));
        assert_eq!(winner(&[]), None);
    }

    #[test]
    fn without_sustained_times_the_cold_ones_decide() {
        let cold = |cold| Times {
            cold,
            sustained: None,
        };
        assert_eq!(winner(&[cold(1.0), cold(0.9)]), Some(1));
        // The budget ended before the second had its turn.
        assert_eq!(winner(&[times(1.0, 1.0), cold(0.9)]), Some(0));
    }
}
