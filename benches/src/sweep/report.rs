//! What the rule loses against the best kernel measured, and where the library stands beside
//! cuBLASLt: with the kernel of the rule, and with the best kernel, which no rule can beat.

use crate::measure::regime::Regime;
use crate::measure::stats::{geometric_mean, quantile};
use crate::modelled::selection::{self, H200};
use crate::problem::names::{Placement, short_kernel};
use crate::sweep::row::SweepRow;
use crate::text_table::Table;
use std::collections::BTreeMap;

/// The outcome of one problem in one regime.
struct Outcome<'a> {
    /// Index of the problem.
    index: usize,
    /// The row of the rule's kernel, and its time.
    rule: (&'a SweepRow, f64),
    /// The fastest row of the library, and its time.
    best: (&'a SweepRow, f64),
    /// cuBLASLt's time.
    cublaslt: Option<f64>,
    aligned: bool,
}

impl Outcome<'_> {
    /// Time of the rule's kernel over the best.
    fn regret(&self) -> f64 {
        self.rule.1 / self.best.1
    }

    fn problem(&self) -> String {
        let SweepRow {
            m,
            n,
            k,
            dtype,
            layout,
            ..
        } = self.rule.0;
        format!("{m}x{n}x{k} {dtype} {layout}")
    }
}

/// The report on `rows`, with the `worst` problems of each regime.
///
/// # Errors
/// A row names no problem.
pub fn render(rows: &[SweepRow], worst: usize) -> Result<String, String> {
    let problems: Vec<&[SweepRow]> = rows.chunk_by(SweepRow::same_problem).collect();
    let mut text = format!("{} problems, {} rows\n", problems.len(), rows.len());
    let mut summary = Table::of(
        "regime | problems | of | regret | 95 % | most | rule | 5 % | least | best | 5 % | least",
    );
    let mut lists = String::new();
    for regime in [Regime::Cold, Regime::Sustained] {
        let mut outcomes = Vec::new();
        let mut unmeasured = 0;
        for (index, rows) in problems.iter().enumerate() {
            match outcome(index, rows, regime)? {
                Some(outcome) => outcomes.push(outcome),
                None => unmeasured += 1,
            }
        }
        if outcomes.is_empty() {
            continue;
        }
        if unmeasured > 0 {
            text += &format!(
                "{}: the rule's kernel was not measured for {unmeasured} problems\n",
                regime.name()
            );
        }
        for (name, is_in) in GROUPS {
            summarise(&mut summary, regime.name(), name, &outcomes, is_in);
        }
        lists += &list_worst(regime, &mut outcomes, worst);
        lists += &list_best(regime, &outcomes);
    }
    text += "\nTime of the rule's kernel over the best measured (mean, 95 % quantile, most), and\n\
             speedup over cuBLASLt of the rule's kernel and of the best (mean, 5 % quantile, \
             least):\n";
    Ok(text + &summary.render() + &lists)
}

/// Whether an outcome is in a group.
type IsIn = fn(&Outcome) -> bool;

/// The groups of problems.
const GROUPS: [(&str, IsIn); 4] = [
    ("fitted", |outcome| outcome.index.is_multiple_of(2)),
    ("held out", |outcome| !outcome.index.is_multiple_of(2)),
    ("16-byte pitch", |outcome| outcome.aligned),
    ("all", |_| true),
];

/// The outcome of the problem of `rows`; `None` if the rule's kernel was not measured.
fn outcome(index: usize, rows: &[SweepRow], regime: Regime) -> Result<Option<Outcome<'_>>, String> {
    let problem = rows[0].problem()?;
    let choice = selection::choose(problem, None, Placement::default(), &H200.target)?;
    let timed = || {
        let ours = rows.iter().filter(|row| !row.is_cublaslt());
        ours.filter_map(|row| Some((row, row.time(regime)?)))
    };
    let rule = timed().find(|(row, _)| row.kernel == choice.kernel.name);
    let best = timed().min_by(|a, b| a.1.total_cmp(&b.1));
    let cublaslt = rows.iter().find(|row| row.is_cublaslt());
    Ok(rule.zip(best).map(|(rule, best)| Outcome {
        index,
        rule,
        best,
        cublaslt: cublaslt.and_then(|row| row.time(regime)),
        aligned: problem.has_aligned_pitches(),
    }))
}

fn summarise(table: &mut Table, regime: &str, name: &str, outcomes: &[Outcome], is_in: IsIn) {
    let group: Vec<&Outcome> = outcomes.iter().filter(|outcome| is_in(outcome)).collect();
    let regrets: Vec<f64> = group.iter().map(|outcome| outcome.regret()).collect();
    let over = |time: &dyn Fn(&Outcome) -> f64| -> Vec<f64> {
        let ratio = |outcome: &&Outcome| Some(outcome.cublaslt? / time(outcome));
        group.iter().filter_map(ratio).collect()
    };
    let (rule, best) = (
        over(&|outcome| outcome.rule.1),
        over(&|outcome| outcome.best.1),
    );
    let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let least = |ratios: &[f64]| ratios.iter().copied().min_by(f64::total_cmp);
    let of_ratios = |ratios: &[f64]| {
        let values = [
            geometric_mean(ratios),
            quantile(ratios, 0.05),
            least(ratios),
        ];
        values.map(cell)
    };
    let mut cells = vec![regime.to_owned(), group.len().to_string(), name.to_owned()];
    cells.extend([
        cell(geometric_mean(&regrets)),
        cell(quantile(&regrets, 0.95)),
        cell(regrets.iter().copied().max_by(f64::total_cmp)),
    ]);
    cells.extend(of_ratios(&rule));
    cells.extend(of_ratios(&best));
    table.row(cells);
}

/// The problems on which the rule loses most.
fn list_worst(regime: Regime, outcomes: &mut [Outcome], worst: usize) -> String {
    outcomes.sort_by(|a, b| b.regret().total_cmp(&a.regret()));
    let mut table = Table::of("problem | µs | regret | rule | best | × cuBLASLt | best ×");
    for outcome in outcomes.iter().take(worst) {
        let ratio = |time: f64| {
            let ratio = outcome.cublaslt.map(|cublaslt| cublaslt / time);
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
        };
        let kernel = |(row, _): (&SweepRow, f64)| short_kernel(&row.kernel, &row.dtype).to_owned();
        table.row([
            outcome.problem(),
            format!("{:.1}", outcome.rule.1 * 1e3),
            format!("{:.2}", outcome.regret()),
            kernel(outcome.rule),
            kernel(outcome.best),
            ratio(outcome.rule.1),
            ratio(outcome.best.1),
        ]);
    }
    format!(
        "\nWhere the rule loses most, {}:\n{}",
        regime.name(),
        table.render()
    )
}

/// How often each tile is the best.
fn list_best(regime: Regime, outcomes: &[Outcome]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes {
        let (row, _) = outcome.best;
        *counts
            .entry(short_kernel(&row.kernel, &row.dtype))
            .or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(kernel, count)| format!("{kernel} {count}"))
        .collect();
    format!("\nFastest, {}: {}\n", regime.name(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(shape: [usize; 3], implementation: &str, kernel: &str, cold_ms: f64) -> SweepRow {
        let [m, n, k] = shape;
        SweepRow {
            device: "NVIDIA H200".to_owned(),
            m,
            n,
            k,
            dtype: "bf16".to_owned(),
            layout: "nt".to_owned(),
            implementation: implementation.to_owned(),
            kernel: kernel.to_owned(),
            order: String::new(),
            schedule: String::new(),
            cold_ms: Some(cold_ms),
            sustained_ms: None,
        }
    }

    #[test]
    fn the_rule_is_held_against_the_best_and_both_against_cublaslt() {
        let shape = [4096, 4096, 4096];
        let mut rows = vec![row(shape, "cuBLASLt 13.0", "heuristic 1 of 8", 2.0)];
        let problem = rows[0].problem().unwrap();
        let choice = selection::choose(problem, None, Placement::default(), &H200.target).unwrap();
        rows.push(row(shape, "tilewise (chosen)", choice.kernel.name, 4.0));
        rows.push(row(shape, "tilewise", "hopper_bf16_ak_bk_other", 1.0));
        // The rule's kernel was not measured here.
        rows.push(row([8, 8, 8], "tilewise", "hopper_bf16_ak_bk_other", 1.0));
        let text = render(&rows, 3).unwrap();
        assert!(text.contains("2 problems, 4 rows"), "{text}");
        assert!(text.contains("not measured for 1 problems"), "{text}");
        let all = text.lines().find(|line| line.contains(" all ")).unwrap();
        for value in ["4.000", "0.500", "2.000"] {
            assert!(all.contains(value), "{text}");
        }
        assert!(text.contains("4096x4096x4096 bf16 nt"), "{text}");
        assert!(!text.contains("sustained"), "{text}");
    }

    #[test]
    fn a_row_without_a_layout_is_refused() {
        let mut rows = vec![row([8, 8, 8], "tilewise", "naive_f16", 1.0)];
        rows[0].layout = "xy".to_owned();
        assert!(render(&rows, 3).unwrap_err().contains("xy"));
    }
}
