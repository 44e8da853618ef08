//! How good the predictions are: their errors, and whether they rank the orders of a product
//! as the measurements do.

use crate::measure::stats::median;
use crate::study::groups::RowGroup;
use crate::study::row::StudyRow;

/// Values that differ by at most this share count as equal: two counts of the same DRAM
/// bytes differ by about as much.
pub const EQUAL: f64 = 0.02;

/// Errors up to this are close.
pub const CLOSE: f64 = 0.25;

/// A quantity that is both counted and predicted.
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// As counted.
    pub measured: fn(&StudyRow) -> Option<f64>,
    /// As predicted.
    pub predicted: fn(&StudyRow) -> Option<f64>,
}

/// The model's main claim.
pub const DRAM_READ: Quantity = Quantity {
    name: "DRAM bytes read",
    measured: |row| row.dram_read_bytes,
    predicted: |row| row.model_dram_read_bytes,
};

/// All quantities that are both counted and predicted.
pub const QUANTITIES: [Quantity; 5] = [
    DRAM_READ,
    Quantity {
        name: "DRAM bytes written",
        measured: |row| row.dram_write_bytes,
        predicted: |row| row.model_dram_write_bytes,
    },
    Quantity {
        name: "L2 bytes read",
        measured: |row| row.l2_read_bytes,
        predicted: |row| row.model_l2_read_bytes,
    },
    Quantity {
        name: "L2 hit rate",
        measured: |row| row.l2_hit_rate,
        predicted: |row| row.model_l2_hit_rate,
    },
    Quantity {
        name: "L2 bytes between partitions",
        measured: |row| row.l2_fabric_bytes,
        predicted: |row| row.model_l2_fabric_bytes,
    },
];

impl Quantity {
    /// Measured and predicted, where a row has both and something was measured.
    fn pair(&self, row: &StudyRow) -> Option<(f64, f64)> {
        let pair = (self.measured)(row).zip((self.predicted)(row));
        pair.filter(|(measured, _)| *measured > 0.0)
    }
}

/// Relative errors of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    /// Pairs of measured and predicted.
    pub pairs: usize,
    /// Median of |predicted / measured - 1|.
    pub median: f64,
    /// Share of pairs with an error up to [`CLOSE`].
    pub close: f64,
    /// Median of predicted / measured - 1: above 0 where the model says too much.
    pub bias: f64,
    /// The greatest error.
    pub worst: f64,
}

/// Errors over `rows`; `None` without a pair.
pub fn errors<'a>(
    rows: impl IntoIterator<Item = &'a StudyRow>,
    quantity: &Quantity,
) -> Option<Errors> {
    let signed: Vec<f64> = rows
        .into_iter()
        .filter_map(|row| quantity.pair(row))
        .map(|(measured, predicted)| predicted / measured - 1.0)
        .collect();
    let sizes: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
    let close = sizes.iter().filter(|&&error| error <= CLOSE).count();
    Some(Errors {
        pairs: sizes.len(),
        median: median(&sizes)?,
        close: close as f64 / sizes.len() as f64,
        bias: median(&signed)?,
        worst: sizes.iter().copied().fold(0.0, f64::max),
    })
}

/// Whether the model ranks the orders of a group as the measurement does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ranking {
    /// Fewer than three orders have both figures.
    TooFew,
    /// All orders measure the same, within [`EQUAL`]: there is nothing to rank.
    OrderMakesNoDifference,
    /// Spearman's coefficient.
    Correlated {
        /// With values that are [`EQUAL`] tied.
        rho: f64,
        /// With exactly equal values tied.
        strict: f64,
    },
}

/// Ranks the orders of a group. A model that predicts the same for all orders that
/// measure differently has a coefficient of 0.
pub fn ranking(group: &RowGroup, quantity: &Quantity) -> Ranking {
    let pairs = group.rows.iter().filter_map(|row| quantity.pair(row));
    let (measured, predicted): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if measured.len() < 3 {
        return Ranking::TooFew;
    }
    let least = measured.iter().copied().fold(f64::INFINITY, f64::min);
    if measured.iter().all(|&value| value <= least * (1.0 + EQUAL)) {
        return Ranking::OrderMakesNoDifference;
    }
    Ranking::Correlated {
        rho: spearman(&measured, &predicted, EQUAL),
        strict: spearman(&measured, &predicted, 0.0),
    }
}

/// Spearman's rank correlation: Pearson's, of the ranks. 0 where one side is all ties.
pub fn spearman(a: &[f64], b: &[f64], equal: f64) -> f64 {
    let (a, b) = (ranks(a, equal), ranks(b, equal));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    if spread == 0.0 {
        return 0.0;
    }
    product(&a, &b) / spread
}

/// Ranks from 1. From the least value up, all that are at most `equal` above the least of
/// their tie share its mean rank.
fn ranks(values: &[f64], equal: f64) -> Vec<f64> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < places.len() {
        let most = values[places[first]] * (1.0 + equal);
        let tied = places[first..]
            .iter()
            .take_while(|&&at| values[at] <= most)
            .count();
        // The mean of first + 1 ..= first + tied.
        let rank = first as f64 + (tied as f64 + 1.0) / 2.0;
        for &at in &places[first..first + tied] {
            ranks[at] = rank;
        }
        first += tied;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::groups::groups;
    use crate::study::groups::tests::row;

    fn pair(order: &str, measured: f64, predicted: f64) -> StudyRow {
        StudyRow {
            dram_read_bytes: Some(measured),
            model_dram_read_bytes: Some(predicted),
            ..row(8192, order)
        }
    }

    #[test]
    fn errors_are_relative_to_the_measurement() {
        let mut rows = vec![
            pair("row", 100.0, 110.0),
            pair("col", 100.0, 70.0),
            pair("morton", 200.0, 204.0),
        ];
        // No pair: not counted, and nothing to divide by.
        rows.push(StudyRow {
            dram_read_bytes: None,
            ..pair("hilbert", 1.0, 9.0)
        });
        rows.push(pair("grouped:4", 0.0, 9.0));
        let errors = errors(&rows, &DRAM_READ).unwrap();
        assert_eq!(errors.pairs, 3);
        assert!((errors.median - 0.10).abs() < 1e-12);
        assert!((errors.bias - 0.02).abs() < 1e-12);
        assert!((errors.close - 2.0 / 3.0).abs() < 1e-12);
        assert!((errors.worst - 0.30).abs() < 1e-12);
        assert_eq!(super::errors(&rows, &QUANTITIES[1]), None);
    }

    #[test]
    fn ties_share_the_mean_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 2.0, 1.0], 0.0), [4.0, 1.5, 3.0, 1.5]);
        // 101 and 102 are within 2 % of 100; 103 begins anew.
        assert_eq!(
            ranks(&[103.0, 100.0, 102.0, 101.0], 0.02),
            [4.0, 2.0, 2.0, 2.0]
        );
        assert_eq!(ranks(&[], 0.02), Vec::<f64>::new());
    }

    #[test]
    fn spearman_is_that_of_the_textbooks() {
        // 1 - 6·Σd²/(n·(n² - 1)) with d = (0, 1, 1, 0): 1 - 12/60.
        let rho = spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 30.0, 20.0, 40.0], 0.0);
        assert!((rho - 0.8).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[9.0, 4.0, 1.0], 0.0), -1.0);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0], 0.0), 0.0);
    }

    #[test]
    fn what_hardly_differs_is_not_ranked_against_the_model() {
        let ranked = |rows: &[StudyRow]| ranking(&groups(rows)[0], &DRAM_READ);
        let same = [
            pair("row", 100.0, 5.0),
            pair("col", 101.5, 9.0),
            pair("morton", 101.0, 1.0),
        ];
        assert_eq!(ranked(&same), Ranking::OrderMakesNoDifference);
        assert_eq!(ranked(&same[..2]), Ranking::TooFew);
        // Two that are equal within 2 %, in the wrong order: only the strict one minds.
        let two = [
            pair("row", 100.0, 99.0),
            pair("col", 101.0, 98.5),
            pair("morton", 200.0, 150.0),
        ];
        match ranked(&two) {
            Ranking::Correlated { rho, strict } => {
                assert_eq!((rho, strict), (1.0, 0.5));
            }
            other => panic!("{other:?}"),
        }
    }
}
