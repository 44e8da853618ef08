//! The summary of a suite, or of the library's choice on other shapes: for each group of
//! problems and each regime the geometric mean of the speedups over cuBLASLt, the value that
//! one problem in twenty falls below, and the least speedup.
//!
//! The mean hides where a library is slow, so the least stands beside it, with its problem;
//! and a problem that was refused or computed wrongly is visible as missing from the count.

use crate::measure::regime::Regime;
use crate::measure::stats::{geometric_mean, quantile};
use crate::problem::spec::ProblemSpec;
use crate::problem::suite::Suite;
use crate::records::record::{Record, Status};
use crate::text_table::Table;

/// Problems that are summed up together.
#[derive(Clone, Debug)]
pub struct ProblemGroup {
    /// The name in the table.
    pub name: &'static str,
    /// The problems.
    pub problems: Vec<ProblemSpec>,
}

/// The groups of `problems`: those of `suite`, all, and those whose pitches are multiples of
/// 16 bytes, where others are not.
pub fn groups(suite: Option<&Suite>, problems: &[ProblemSpec]) -> Vec<ProblemGroup> {
    let group = |name, is_in: &dyn Fn(&ProblemSpec) -> bool| ProblemGroup {
        name,
        problems: problems.iter().copied().filter(is_in).collect(),
    };
    let of_suite = suite.map_or(&[][..], Suite::groups).iter();
    let mut groups: Vec<ProblemGroup> = of_suite
        .map(|of| group(of.name, &|problem| of.shapes.contains(&problem.shape)))
        .collect();
    groups.push(group("all", &|_| true));
    let aligned = group("16-byte pitch", &ProblemSpec::has_aligned_pitches);
    if aligned.problems.len() < problems.len() {
        groups.push(aligned);
    }
    groups
}

/// The table of `groups`; without cuBLASLt, a line that says so. `title` names what was
/// measured.
pub fn render(title: &str, groups: &[ProblemGroup], records: &[Record]) -> String {
    let mut table = Table::of("regime | group | implementation | timed | mean | 5 % | least | at");
    let mut rows = 0;
    for regime in [Regime::Cold, Regime::Sustained] {
        for group in groups {
            for row in rows_of(group, regime, records) {
                table.row(row);
                rows += 1;
            }
        }
    }
    if rows == 0 {
        return format!("\n{title}: nothing to compare with cuBLASLt\n");
    }
    format!(
        "\n{title}: speedup over cuBLASLt: geometric mean over problems, 5 % quantile, least\n{}",
        table.render()
    )
}

/// One row for each implementation measured beside cuBLASLt.
fn rows_of(group: &ProblemGroup, regime: Regime, records: &[Record]) -> Vec<[String; 8]> {
    let is_in = |record: &Record| {
        let mut problems = group.problems.iter();
        problems.any(|problem| record.is_of(problem))
    };
    let timed: Vec<&Record> = records
        .iter()
        .filter(|record| record.regime == regime && record.status == Status::Timed && is_in(record))
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
        let least = compared.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(mean), Some(low), Some((ratio, at))) =
            (geometric_mean(&ratios), quantile(&ratios, 0.05), least)
        else {
            continue;
        };
        let star = if first.interleaved { "" } else { "*" };
        rows.push([
            regime.name().to_owned(),
            group.name.to_owned(),
            format!("{name}{star}"),
            format!("{}/{problems}", compared.len()),
            format!("{mean:.3}"),
            format!("{low:.3}"),
            format!("{ratio:.3}"),
            format!("{} {} {}", at.shape(), at.dtype, at.layout),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::candidate::CHOSEN;
    use crate::problem::shape::{BlasLayout, GemmShape};
    use crate::records::record::{fill_speedups, tests::sample};
    use gpu_kernels::{DType, OutputType};

    const SHAPES: [GemmShape; 3] = [
        GemmShape::new(4096, 4096, 4096),
        GemmShape::new(512, 4096, 4096),
        // With rows of C that are 6 bytes long.
        GemmShape::new(4096, 3, 4096),
    ];

    fn problem(shape: GemmShape) -> ProblemSpec {
        ProblemSpec {
            shape,
            layout: BlasLayout::NT,
            dtype: DType::F16,
            output: OutputType::Input,
        }
    }

    fn at(shape: GemmShape, implementation: &str, median_ms: f64) -> Record {
        Record {
            m: shape.m,
            n: shape.n,
            layout: "nt".to_owned(),
            ..sample(implementation, "", median_ms)
        }
    }

    /// Speedups of 2, 0.5 and 4, and one of a shape that nobody asked for.
    fn records() -> Vec<Record> {
        let [cube, wide, narrow] = SHAPES;
        let mut records = vec![
            at(cube, CHOSEN, 1.0),
            at(cube, "cuBLASLt 13.0", 2.0),
            at(wide, CHOSEN, 4.0),
            at(wide, "cuBLASLt 13.0", 2.0),
            at(narrow, CHOSEN, 1.0),
            at(narrow, "cuBLASLt 13.0", 4.0),
            at(GemmShape::new(7, 4096, 4096), CHOSEN, 1.0),
            at(GemmShape::new(7, 4096, 4096), "cuBLASLt 13.0", 99.0),
        ];
        fill_speedups(&mut records);
        records
    }

    fn rendered(records: &[Record]) -> String {
        render("--choice", &groups(None, &SHAPES.map(problem)), records)
    }

    /// The cells of the row of a group.
    fn row(text: &str, group: &str) -> Vec<String> {
        let row = text.lines().find(|line| line.contains(group));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        row.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn mean_quantile_and_least_are_of_the_groups_problems() {
        let text = rendered(&records());
        let least = "512x4096x4096 f16 nt";
        // A twentieth of the way from the first to the last: a tenth from 0.5 to 2, and
        // a twentieth where there are two.
        assert_eq!(
            row(&text, " all "),
            [
                "cold", "all", CHOSEN, "3/3", "1.587", "0.650", "0.500", least
            ]
        );
        assert_eq!(
            row(&text, "16-byte pitch"),
            [
                "cold",
                "16-byte pitch",
                CHOSEN,
                "2/2",
                "1.000",
                "0.575",
                "0.500",
                least
            ]
        );
        assert!(!text.contains("sustained"), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{text}");
    }

    #[test]
    fn a_suite_has_its_groups_beside_the_whole() {
        let suite: Suite = "transformer".parse().unwrap();
        let problems = suite.problems(&[DType::Bf16], &[BlasLayout::NT], OutputType::Input, false);
        let sizes: Vec<_> = groups(Some(&suite), &problems)
            .iter()
            .map(|group| (group.name, group.problems.len()))
            .collect();
        assert_eq!(sizes, [("decode", 64), ("prefill", 32), ("all", 96)]);
    }

    #[test]
    fn a_problem_that_was_not_timed_is_missing_from_the_count() {
        let mut records = records();
        records[2].status = Status::Wrong;
        assert_eq!(
            row(&rendered(&records), "16-byte pitch")[3..5],
            ["1/2", "2.000"]
        );
    }

    #[test]
    fn other_types_and_layouts_are_other_problems() {
        let mut records = records();
        records[2].dtype = "bf16".to_owned();
        records[4].layout = "tt".to_owned();
        assert_eq!(row(&rendered(&records), " all ")[3..5], ["1/3", "2.000"]);
    }

    #[test]
    fn paired_ratios_are_preferred() {
        let mut records = records();
        records[0].set_pairs(&[1.0], &[2.0]);
        let row = row(&rendered(&records), "16-byte pitch");
        assert_eq!(row[4..7], ["0.500", "0.500", "0.500"]);
    }

    #[test]
    fn without_cublaslt_there_is_nothing_to_compare() {
        let text = rendered(&[at(SHAPES[0], CHOSEN, 1.0)]);
        assert!(text.contains("--choice: nothing to compare"), "{text}");
    }
}
