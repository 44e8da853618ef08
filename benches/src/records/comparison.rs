//! Row-major order against another order, with the same kernel and schedule: one line for
//! each product. Most readers of a benchmark come with this question.
//!
//! The other order is the library's choice where that was timed beside row-major order.
//! Where kernels or orders were forced, every forced order is compared.

use crate::candidates::candidate::{CHOSEN, INVARIANT, TUNED};
use crate::measure::regime::Regime;
use crate::records::record::{ROW_MAJOR, Record, Status, by_problem};
use serde::Serialize;

/// One product in two orders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Type of A and B.
    pub dtype: String,
    /// Type of C.
    pub output: String,
    /// See [`crate::problem::shape::BlasLayout`].
    pub layout: String,
    /// Entry point.
    pub kernel: String,
    /// Schedule.
    pub schedule: String,
    /// The order that row-major is compared with: itself where the library chose it.
    pub order: String,
    /// Whether the library chose kernel, order and schedule.
    pub chosen: bool,
    /// Times with L2 overwritten before each launch.
    pub cold: Option<Times>,
    /// Times back to back.
    pub sustained: Option<Times>,
    /// Bytes from and to DRAM in row-major order, by the model, GB.
    pub row_major_gb: Option<f64>,
    /// The same in [`Self::order`].
    pub order_gb: Option<f64>,
}

/// Both orders in one regime.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Median time of a product in row-major order, ms.
    pub row_major_ms: f64,
    /// Median time in the other order, ms.
    pub order_ms: f64,
    /// TFLOP/s in row-major order.
    pub row_major_tflops: f64,
    /// TFLOP/s in the other order.
    pub order_tflops: f64,
    /// How much faster the other order is: ratio of the medians.
    pub speedup: f64,
}

impl Times {
    fn of(row_major: &Record, order: &Record) -> Option<Times> {
        Some(Times {
            row_major_ms: row_major.median_ms?,
            order_ms: order.median_ms?,
            row_major_tflops: row_major.tflops?,
            order_tflops: order.tflops?,
            speedup: row_major.median_ms? / order.median_ms?,
        })
    }
}

/// Every comparison that `records` allow, in the order of measuring.
pub fn comparisons(records: &[Record]) -> Vec<Comparison> {
    by_problem(records)
        .iter()
        .flat_map(|records| {
            let (chosen, forced): (Vec<_>, Vec<_>) = in_problem(records)
                .into_iter()
                .partition(|comparison| comparison.chosen);
            if chosen.is_empty() { forced } else { chosen }
        })
        .collect()
}

fn in_problem(records: &[&Record]) -> Vec<Comparison> {
    let mut found: Vec<Comparison> = Vec::new();
    for &record in records {
        let chosen = record.implementation == CHOSEN;
        let is_asked = record.status == Status::Timed
            && ![TUNED, INVARIANT].contains(&record.implementation.as_str())
            && (chosen || record.order != ROW_MAJOR);
        let is_known = |known: &Comparison| {
            known.kernel == record.kernel
                && known.schedule == record.schedule
                && known.order == record.order
        };
        if is_asked && !found.iter().any(is_known) {
            found.extend(compare(record, records));
        }
    }
    found
}

/// The launch of `of` and the same in row-major order; `records` are of one product.
fn compare(of: &Record, records: &[&Record]) -> Option<Comparison> {
    let timed = |regime, is_it: &dyn Fn(&Record) -> bool| {
        let mut timed = records.iter().copied();
        timed.find(|record| {
            record.regime == regime && record.status == Status::Timed && is_it(record)
        })
    };
    let same_launch = |record: &Record| {
        record.implementation == of.implementation
            && record.kernel == of.kernel
            && record.schedule == of.schedule
            && record.order == of.order
    };
    let pair = |regime| {
        let row_major = timed(regime, &|record| record.is_row_major_of(of))?;
        Some((row_major, timed(regime, &same_launch)?))
    };
    let (cold, sustained) = (pair(Regime::Cold), pair(Regime::Sustained));
    let (row_major, order) = cold.or(sustained)?;
    Some(Comparison {
        m: of.m,
        n: of.n,
        k: of.k,
        dtype: of.dtype.clone(),
        output: of.output.clone(),
        layout: of.layout.clone(),
        kernel: of.kernel.clone(),
        schedule: of.schedule.clone(),
        order: of.order.clone(),
        chosen: of.implementation == CHOSEN,
        cold: cold.and_then(|(row_major, order)| Times::of(row_major, order)),
        sustained: sustained.and_then(|(row_major, order)| Times::of(row_major, order)),
        row_major_gb: row_major.modelled_dram_gb,
        order_gb: order.modelled_dram_gb,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::candidates::candidate::TILEWISE;
    use crate::records::record::tests::sample;

    /// Both regimes of a launch: sustained takes twice as long.
    pub(crate) fn timed(implementation: &str, order: &str, median_ms: f64) -> [Record; 2] {
        [(Regime::Cold, 1.0), (Regime::Sustained, 2.0)].map(|(regime, factor)| {
            let mut record = sample(implementation, order, median_ms * factor);
            record.regime = regime;
            record.modelled_dram_gb = Some(if order == ROW_MAJOR { 66.18 } else { 17.19 });
            record
        })
    }

    /// A product in the chosen order, in row-major order, and by a peer; and another
    /// family, which the default compares too.
    pub(crate) fn run() -> Vec<Record> {
        let mut other = [
            timed(TILEWISE, ROW_MAJOR, 0.8),
            timed(TILEWISE, "grouped:4", 0.7),
        ]
        .concat();
        for record in &mut other {
            record.kernel = "tensor_core".to_owned();
        }
        let mut records = [
            timed(CHOSEN, "grouped:16", 0.25),
            timed(TILEWISE, ROW_MAJOR, 0.3),
            timed("cuBLASLt 13.1", "", 0.25),
        ]
        .concat();
        records.extend(other);
        records
    }

    #[test]
    fn the_chosen_launch_is_compared_with_itself_in_row_major_order() {
        let all = comparisons(&run());
        let [comparison] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(comparison.chosen);
        assert_eq!(comparison.kernel, "kernel");
        assert_eq!(comparison.order, "grouped:16");
        let (cold, sustained) = (comparison.cold.unwrap(), comparison.sustained.unwrap());
        assert_eq!((cold.row_major_ms, cold.order_ms), (0.3, 0.25));
        assert_eq!((sustained.row_major_ms, sustained.order_ms), (0.6, 0.5));
        assert_eq!(cold.speedup, 0.3 / 0.25);
        assert!((cold.order_tflops / cold.row_major_tflops - 1.2).abs() < 1e-12);
        assert_eq!(comparison.row_major_gb, Some(66.18));
        assert_eq!(comparison.order_gb, Some(17.19));
    }

    #[test]
    fn no_other_kernel_schedule_or_product_stands_in_for_row_major() {
        let change: [fn(&mut Record); 4] = [
            |record| record.kernel = "other".to_owned(),
            |record| record.schedule = "grid1d".to_owned(),
            |record| record.layout = "nt".to_owned(),
            |record| record.status = Status::Wrong,
        ];
        for change in change {
            let mut row_major = timed(TILEWISE, ROW_MAJOR, 0.3);
            row_major.iter_mut().for_each(change);
            let records = [timed(CHOSEN, "grouped:16", 0.25), row_major].concat();
            assert_eq!(comparisons(&records), []);
        }
    }

    #[test]
    fn where_everything_is_forced_every_kernel_and_order_is_compared() {
        let mut records: Vec<Record> = run();
        records.retain(|record| record.implementation != CHOSEN);
        records.extend(timed(TILEWISE, "grouped:8", 0.15));
        let found = comparisons(&records);
        let found: Vec<_> = found
            .iter()
            .map(|c| (c.chosen, c.kernel.as_str(), c.order.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (false, "tensor_core", "grouped:4"),
                (false, "kernel", "grouped:8")
            ]
        );
    }

    #[test]
    fn a_regime_that_was_not_measured_is_missing_and_the_tuned_one_is_not_the_choice() {
        let mut records = run();
        records.retain(|record| record.regime == Regime::Sustained);
        records.extend(timed(TUNED, "hilbert", 0.1));
        let [comparison] = &comparisons(&records)[..] else {
            panic!("one product");
        };
        assert_eq!(comparison.cold, None);
        assert_eq!(comparison.sustained.unwrap().speedup, 0.6 / 0.5);
        assert_eq!(comparison.order_gb, Some(17.19));
    }

    #[test]
    fn a_choice_of_row_major_order_is_its_own_base() {
        let [comparison] = &comparisons(&timed(CHOSEN, ROW_MAJOR, 0.3))[..] else {
            panic!("one product");
        };
        assert_eq!(comparison.cold.unwrap().speedup, 1.0);
        assert_eq!(comparisons(&timed(TILEWISE, ROW_MAJOR, 0.3)), []);
    }
}
