//! Order statistics: a median with its quartiles, and ratios of medians.
//!
//! Times on a GPU are skewed (a sample can be slow, never too fast), so the
//! mean says little; the median and the quartiles are what nvbench prints too.

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
    /// use tilewise_bench::stats::Quartiles;
    /// let of_five = Quartiles::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
    /// assert_eq!((of_five.q1, of_five.median, of_five.q3), (2.0, 3.0, 4.0));
    /// ```
    pub fn of(samples: &[f64]) -> Option<Quartiles> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Quartiles {
            q1: quantile(&sorted, 0.25)?,
            median: quantile(&sorted, 0.5)?,
            q3: quantile(&sorted, 0.75)?,
        })
    }
}

/// The median of any samples; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    Quartiles::of(samples).map(|quartiles| quartiles.median)
}

fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
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
}
