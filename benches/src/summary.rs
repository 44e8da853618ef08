//! What a suite comes to: for each group and regime the geometric mean of the
//! speedups over cuBLASLt, and the worst of them.
//!
//! The mean hides where a library is slow, so the worst stands beside it, with
//! its problem; and a problem that was refused or came out wrong is missing
//! from the count, not from view.

use crate::record::{Record, Regime, Status};
use crate::stats::geometric_mean;
use crate::suite::{Group, Suite};
use crate::table::Table;

/// The table of `suite`; a line instead where cuBLASLt was not measured.
pub fn render(suite: &Suite, records: &[Record]) -> String {
    let mut table = Table::new([
        "regime",
        "group",
        "implementation",
        "problems",
        "x cuBLASLt",
        "worst",
        "at",
    ]);
    let mut rows = 0;
    for regime in [Regime::Cold, Regime::Sustained] {
        for group in suite.groups {
            for row in rows_of(group, regime, records) {
                table.row(row);
                rows += 1;
            }
        }
    }
    if rows == 0 {
        return format!("\nsuite {}: nothing to compare with cuBLASLt\n", suite.name);
    }
    format!(
        "\nsuite {}: speedup over cuBLASLt, geometric mean over problems, and the worst problem\n{}",
        suite.name,
        table.render()
    )
}

/// One row for each implementation measured beside cuBLASLt.
fn rows_of(group: &Group, regime: Regime, records: &[Record]) -> Vec<[String; 7]> {
    let timed: Vec<&Record> = records
        .iter()
        .filter(|record| {
            record.regime == regime
                && record.status == Status::Timed
                && group.shapes.contains(&record.shape())
        })
        .collect();
    let problems = timed.iter().filter(|record| record.is_cublaslt()).count();
    let mut rows = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for first in timed.iter().filter(|record| !record.is_cublaslt()) {
        let name = first.implementation.as_str();
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let compared: Vec<(f64, &Record)> = timed
            .iter()
            .filter(|record| record.implementation == name)
            .filter_map(|record| Some((record.over_cublaslt()?, *record)))
            .collect();
        let ratios: Vec<f64> = compared.iter().map(|(ratio, _)| *ratio).collect();
        let worst = compared.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(mean), Some((ratio, at))) = (geometric_mean(&ratios), worst) else {
            continue;
        };
        let star = if first.interleaved { "" } else { "*" };
        rows.push([
            regime.name().to_owned(),
            group.name.to_owned(),
            format!("{name}{star}"),
            format!("{} of {problems}", compared.len()),
            format!("{mean:.3}"),
            format!("{ratio:.3}"),
            format!("{} {} {}", at.shape(), at.dtype, at.layout),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::CHOSEN;
    use crate::record::{fill_speedups, tests::sample};
    use crate::shape::Shape;

    const SUITE: Suite = Suite {
        name: "test",
        dtypes: &[],
        groups: &[
            Group {
                name: "cubes",
                shapes: &[Shape::new(4096, 4096, 4096), Shape::new(512, 4096, 4096)],
            },
            Group {
                name: "unmeasured",
                shapes: &[Shape::new(1, 1, 1)],
            },
        ],
    };

    fn at(m: usize, implementation: &str, median_ms: f64) -> Record {
        Record {
            m,
            ..sample(implementation, "", median_ms)
        }
    }

    fn records() -> Vec<Record> {
        let mut records = vec![
            at(4096, CHOSEN, 1.0),
            at(4096, "cuBLASLt 13.0", 2.0),
            at(512, CHOSEN, 4.0),
            at(512, "cuBLASLt 13.0", 2.0),
            at(7, CHOSEN, 1.0),
            at(7, "cuBLASLt 13.0", 9.0),
        ];
        fill_speedups(&mut records);
        records
    }

    #[test]
    fn means_are_geometric_and_the_worst_is_named() {
        let text = render(&SUITE, &records());
        let row = text.lines().last().unwrap();
        // Of 2 and 0.5, and not of the shape that is in no group.
        for part in [
            "cold",
            "cubes",
            CHOSEN,
            "2 of 2",
            "1.000",
            "0.500",
            "512x4096x4096",
        ] {
            assert!(row.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("unmeasured"), "{text}");
    }

    #[test]
    fn a_problem_that_was_not_timed_is_missing_from_the_count() {
        let mut records = records();
        records[2].status = Status::Wrong;
        let text = render(&SUITE, &records);
        assert!(text.contains("1 of 2") && text.contains("2.000"), "{text}");
    }

    #[test]
    fn paired_ratios_are_preferred() {
        let mut records = records();
        records[0].set_pairs(&[1.0], &[2.0]);
        let text = render(&SUITE, &records);
        assert!(text.contains("0.500  0.500"), "{text}");
    }

    #[test]
    fn without_cublaslt_there_is_nothing_to_compare() {
        let text = render(&SUITE, &[at(4096, CHOSEN, 1.0)]);
        assert!(text.contains("nothing to compare"), "{text}");
    }
}
