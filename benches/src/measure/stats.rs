//! Order statistics: a median with its quartiles, of times and of ratios.
//!
//! Times on a GPU are skewed (a sample can be slow, never too fast), so the
//! mean says little; the median and the quartiles are what nvbench prints too.
//! Two candidates are compared by the ratio within each round first and the
//! median of those ratios second: a round's clock is in both times and cancels.

/// The middle half of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the samples are below.
    pub q1: f64,
    /// Half of the samples are below.
    pub median: f64,
    /// Three quarters of the samples are below.
    pub q3: f64,
}

impl Quartiles {
    /// Quartiles by linear interpolation between the two nearest samples
    /// (NumPy's default). `None` without samples.
    ///
    /// ```
    /// use tilewise_benches::measure::stats::Quartiles;
    /// let of_five = Quartiles::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
    /// assert_eq!((of_five.q1, of_five.median, of_five.q3), (2.0, 3.0, 4.0));
    /// ```
    pub fn of(samples: &[f64]) -> Option<Quartiles> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Quartiles {
            q1: of_sorted(&sorted, 0.25)?,
            median: of_sorted(&sorted, 0.5)?,
            q3: of_sorted(&sorted, 0.75)?,
        })
    }
}

/// The median of any samples; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    Quartiles::of(samples).map(|quartiles| quartiles.median)
}

/// Quartiles of how much faster `of` is than `base`, round by round:
/// `base[i] / of[i]`. `None` unless both have the same rounds, at least one.
///
/// ```
/// use tilewise_benches::measure::stats::paired_ratios;
/// // The clock fell to half from the first round to the last.
/// let (base, of) = ([1.0, 1.5, 2.0], [2.0, 3.0, 4.0]);
/// let ratios = paired_ratios(&base, &of).unwrap();
/// assert_eq!((ratios.q1, ratios.median, ratios.q3), (0.5, 0.5, 0.5));
/// ```
pub fn paired_ratios(base: &[f64], of: &[f64]) -> Option<Quartiles> {
    if base.len() != of.len() {
        return None;
    }
    let ratios: Vec<f64> = base.iter().zip(of).map(|(base, of)| base / of).collect();
    Quartiles::of(&ratios)
}

/// A time that is free of the drift between rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levelled {
    /// The time, in the unit of the samples.
    pub time: f64,
    /// Its standard error over itself; `None` for a single round.
    pub error: Option<f64>,
}

/// A time for each candidate that is free of the drift between rounds: the median over
/// the rounds of what it takes over the round's geometric mean, times the median of those
/// means. `times[i]` are the candidate's times, round by round. `None` unless all have the
/// same rounds, at least one.
///
/// ```
/// use tilewise_benches::measure::stats::levelled;
/// // The second takes 1 % less in every round; the clock fell in the last two.
/// let (first, second) = ([1.0, 1.0, 2.0, 3.0], [0.99, 0.99, 1.98, 2.97]);
/// let level = levelled(&[&first, &second]).unwrap();
/// assert!((level[1].time / level[0].time - 0.99).abs() < 1e-12);
/// ```
pub fn levelled(times: &[&[f64]]) -> Option<Vec<Levelled>> {
    let rounds = times.first()?.len();
    if times.iter().any(|times| times.len() != rounds) {
        return None;
    }
    let of_round = |round: usize| times.iter().map(|times| times[round]).collect::<Vec<_>>();
    let means: Vec<f64> = (0..rounds)
        .map(|round| geometric_mean(&of_round(round)))
        .collect::<Option<_>>()?;
    let centre = median(&means)?;
    times
        .iter()
        .map(|times| {
            let ratios: Vec<f64> = times.iter().zip(&means).map(|(t, mean)| t / mean).collect();
            let middle = median(&ratios)?;
            Some(Levelled {
                time: middle * centre,
                error: standard_error(&ratios).map(|error| error / middle),
            })
        })
        .collect()
}

/// The standard error of the median of samples that are about normally distributed: √(π/2)
/// times that of the mean. `None` for fewer than two samples.
fn standard_error(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    Some((std::f64::consts::FRAC_PI_2 * squares / (count - 1.0) / count).sqrt())
}

/// The geometric mean, the mean for ratios: that of the inverses is its
/// inverse. `None` without values.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    if ratios.is_empty() {
        return None;
    }
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Some((logs / ratios.len() as f64).exp())
}

/// What `fraction` of the samples are below, as in [`Quartiles::of`]; `None` without samples.
///
/// ```
/// use tilewise_benches::measure::stats::quantile;
/// let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
/// assert_eq!(quantile(&hundred, 0.05), Some(5.0));
/// ```
pub fn quantile(samples: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, fraction)
}

fn of_sorted(sorted: &[f64], fraction: f64) -> Option<f64> {
    let position = fraction * sorted.len().checked_sub(1)? as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_between_samples() {
        let four = Quartiles::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((four.q1, four.median, four.q3), (1.75, 2.5, 3.25));
    }

    #[test]
    fn one_sample_is_all_three() {
        let one = Quartiles::of(&[7.0]).unwrap();
        assert_eq!((one.q1, one.median, one.q3), (7.0, 7.0, 7.0));
    }

    #[test]
    fn no_samples_have_no_median() {
        assert_eq!(Quartiles::of(&[]), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_slow_sample_moves_no_median() {
        assert_eq!(median(&[1.0, 1.0, 1.0, 1.0, 900.0]), Some(1.0));
    }

    #[test]
    fn pairs_see_a_difference_that_drift_hides() {
        // Each round is 20 % slower than the one before; `of` always by 2 %.
        let base: Vec<f64> = (0..9).map(|round| 1.2f64.powi(round)).collect();
        let of: Vec<f64> = base.iter().map(|time| time * 1.02).collect();
        let ratios = paired_ratios(&base, &of).unwrap();
        assert!((ratios.median - 1.0 / 1.02).abs() < 1e-12);
        assert!(ratios.q3 - ratios.q1 < 1e-12);
        let spread = Quartiles::of(&of).unwrap();
        assert!(spread.q3 / spread.q1 > 2.0);
    }

    #[test]
    fn rounds_that_do_not_match_make_no_pairs() {
        assert_eq!(paired_ratios(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(paired_ratios(&[], &[]), None);
    }

    #[test]
    fn drift_between_rounds_moves_no_levelled_time() {
        let drift = [1.0, 1.03, 0.98, 1.05, 1.01];
        let slow: Vec<f64> = drift.iter().map(|clock| 2.0 * clock).collect();
        // Twice as fast, and disturbed in one round.
        let mut fast: Vec<f64> = drift.to_vec();
        fast[3] *= 1.5;
        let level = levelled(&[&slow, &fast]).unwrap();
        assert!(
            (level[0].time / level[1].time - 2.0).abs() < 1e-12,
            "{level:?}"
        );
        assert!((level[0].time / 2.0 - 1.01).abs() < 0.01, "{level:?}");
        assert_eq!(levelled(&[&slow, &fast[1..]]), None);
        assert_eq!(levelled(&[&[], &[]]), None);
        assert_eq!(levelled(&[]), None);
    }

    #[test]
    fn a_levelled_time_knows_its_error() {
        // Ratios to the rounds' means of 0.9 and 1.1 by turns, whose standard deviation
        // is 0.1·√(4/3).
        let times = [0.9, 1.1, 0.9, 1.1];
        let inverse = times.map(|time| 1.0 / time);
        let level = levelled(&[&times, &inverse]).unwrap();
        let error = (std::f64::consts::FRAC_PI_2 * 0.01 * 4.0 / 3.0 / 4.0).sqrt();
        assert!((level[0].error.unwrap() - error).abs() < 1e-9, "{level:?}");
        assert_eq!(
            levelled(&[&[1.0]]).unwrap()[0],
            Levelled {
                time: 1.0,
                error: None
            }
        );
    }

    #[test]
    fn the_geometric_mean_of_inverses_is_the_inverse() {
        let mean = geometric_mean(&[2.0, 8.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        let inverse = geometric_mean(&[0.5, 0.125]).unwrap();
        assert!((mean * inverse - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
