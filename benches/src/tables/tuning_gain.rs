//! How much slower the library's choice is than its tuner's plan: the regret of the cost
//! model behind `tilewise::select`.

use crate::candidates::candidate::{CHOSEN, TUNED};
use crate::measure::regime::Regime;
use crate::measure::stats::geometric_mean;
use crate::records::record::Record;
use std::fmt::Write as _;

/// For each regime the geometric mean, over problems, of the chosen one's time
/// over the tuned one's, and the worst.
pub fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for regime in [Regime::Cold, Regime::Sustained] {
        let of = |implementation| {
            let is_it = move |record: &&Record| {
                record.regime == regime && record.implementation == implementation
            };
            records.iter().filter(is_it)
        };
        let compared: Vec<(f64, &Record)> = of(TUNED)
            .filter_map(|tuned| {
                let chosen = of(CHOSEN).find(|chosen| chosen.same_problem(tuned))?;
                Some((chosen.median_ms? / tuned.median_ms?, tuned))
            })
            .collect();
        let ratios: Vec<f64> = compared.iter().map(|(ratio, _)| *ratio).collect();
        let worst = compared.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(mean), Some((ratio, at))) = (geometric_mean(&ratios), worst) else {
            continue;
        };
        let _ = writeln!(
            text,
            "chosen / tuned, {}: {mean:.3} (geometric mean of the times' ratio over {} problems; \
             at most {ratio:.3}, at {} {} {})",
            regime.name(),
            compared.len(),
            at.shape(),
            at.dtype,
            at.layout,
        );
    }
    if text.is_empty() {
        text += "chosen / tuned: nothing to compare\n";
    }
    format!("\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::{Status, tests::sample};

    fn at(m: usize, implementation: &str, median_ms: f64) -> Record {
        Record {
            m,
            ..sample(implementation, "", median_ms)
        }
    }

    #[test]
    fn the_mean_is_over_problems_and_the_worst_is_named() {
        let mut records = vec![
            at(512, CHOSEN, 4.0),
            at(512, TUNED, 1.0),
            at(4096, CHOSEN, 1.0),
            at(4096, TUNED, 1.0),
            // No pair: tuned alone, chosen alone, forced.
            at(7, TUNED, 1.0),
            at(8, CHOSEN, 9.0),
            at(7, "tilewise", 9.0),
        ];
        let text = render(&records);
        assert!(text.contains("cold: 2.000"), "{text}");
        assert!(text.contains("over 2 problems"), "{text}");
        assert!(text.contains("4.000, at 512x4096x4096"), "{text}");
        assert!(!text.contains("sustained"), "{text}");
        // What was not timed has no time to compare.
        records[1].status = Status::Skipped;
        records[1].median_ms = None;
        assert!(render(&records).contains("over 1 problems"));
    }

    #[test]
    fn without_a_pair_it_says_so() {
        let text = render(&[at(512, CHOSEN, 4.0)]);
        assert!(text.contains("nothing to compare"), "{text}");
    }
}
