//! What batch-invariant results cost: how fast the library's choice for them is beside its
//! free choice, which may split K.

use crate::candidates::candidate::{CHOSEN, INVARIANT};
use crate::measure::regime::Regime;
use crate::measure::stats::geometric_mean;
use crate::records::record::Record;
use std::fmt::Write as _;

/// For each regime the geometric mean, over problems, of the free choice's time over the
/// batch-invariant one's, the least, and the number of problems with another launch.
pub fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for regime in [Regime::Cold, Regime::Sustained] {
        let compared = pairs(records, regime);
        let ratios: Vec<f64> = compared.iter().map(|(ratio, ..)| *ratio).collect();
        let least = compared.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(mean), Some((ratio, at, _))) = (geometric_mean(&ratios), least) else {
            continue;
        };
        let others = compared.iter().filter(|(.., other)| *other).count();
        let _ = writeln!(
            text,
            "batch-invariant / chosen, {}: {mean:.3} × as fast (geometric mean over {} problems, \
             {others} of them launched otherwise; at least {ratio:.3}, at {} {} {})",
            regime.name(),
            compared.len(),
            at.shape(),
            at.dtype,
            at.layout,
        );
    }
    if text.is_empty() {
        text += "batch-invariant / chosen: nothing to compare\n";
    }
    format!("\n{text}")
}

/// The ratio of times, the batch-invariant record, and whether its launch is another than the
/// free choice's.
fn pairs(records: &[Record], regime: Regime) -> Vec<(f64, &Record, bool)> {
    let of = |implementation| {
        let is_it = move |record: &&Record| {
            record.regime == regime && record.implementation == implementation
        };
        records.iter().filter(is_it)
    };
    let pair = |invariant| {
        let chosen = of(CHOSEN).find(|chosen: &&Record| chosen.same_problem(invariant))?;
        // Times that are freed of what all candidates of a round share are compared where
        // there are some.
        let times = chosen.levelled_ms.zip(invariant.levelled_ms);
        let (free, time) = times.or(chosen.median_ms.zip(invariant.median_ms))?;
        let launch = |record: &Record| {
            let Record {
                kernel,
                order,
                schedule,
                ..
            } = record;
            (kernel.clone(), order.clone(), schedule.clone())
        };
        Some((free / time, invariant, launch(chosen) != launch(invariant)))
    };
    of(INVARIANT).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::tests::sample;

    fn at(m: usize, implementation: &str, kernel: &str, median_ms: f64) -> Record {
        Record {
            m,
            kernel: kernel.to_owned(),
            ..sample(implementation, "", median_ms)
        }
    }

    #[test]
    fn the_mean_is_over_problems_and_the_slowest_is_named() {
        let records = [
            at(16, CHOSEN, "split", 1.0),
            at(16, INVARIANT, "whole", 2.0),
            at(4096, CHOSEN, "whole", 1.0),
            at(4096, INVARIANT, "whole", 1.0),
            // No pair: alone, or forced.
            at(7, INVARIANT, "whole", 1.0),
            at(7, "tilewise", "whole", 9.0),
        ];
        let text = render(&records);
        assert!(text.contains("cold: 0.707 × as fast"), "{text}");
        assert!(text.contains("over 2 problems, 1 of them"), "{text}");
        assert!(text.contains("at least 0.500, at 16x4096x4096"), "{text}");
        assert!(!text.contains("sustained"), "{text}");
    }

    #[test]
    fn without_a_pair_it_says_so() {
        let text = render(&[at(512, CHOSEN, "whole", 4.0)]);
        assert!(text.contains("nothing to compare"), "{text}");
    }
}
