//! What the rule loses against the best kernel measured, and where the library stands beside
//! cuBLASLt: with the kernel of the rule, and with the best kernel, which no rule can beat.

use crate::measure::regime::Regime;
use crate::sweep::outcome::{Outcome, Summary, outcomes, summaries};
use crate::sweep::row::SweepRow;
use crate::text_table::Table;
use std::collections::BTreeMap;

/// The report on `rows`, with the `worst` problems of each regime.
///
/// # Errors
/// A row names no problem.
pub fn render(rows: &[SweepRow], worst: usize) -> Result<String, String> {
    let problems = rows.chunk_by(SweepRow::same_problem).count();
    let mut text = format!("{problems} problems, {} rows\n", rows.len());
    let mut summary = Table::of(
        "regime | problems | of | regret | 95 % | most | rule | 5 % | least | best | 5 % | least",
    );
    let mut lists = String::new();
    for regime in [Regime::Cold, Regime::Sustained] {
        let Some((mut outcomes, unmeasured)) = outcomes(rows, regime)? else {
            continue;
        };
        if unmeasured > 0 {
            text += &format!(
                "{}: the rule's kernel was not measured for {unmeasured} problems\n",
                regime.name()
            );
        }
        for group in summaries(&outcomes) {
            summarise(&mut summary, &group);
        }
        lists += &list_worst(regime, &mut outcomes, worst);
        lists += &list_best(regime, &outcomes);
    }
    text += "\nTime of the rule's kernel over the best measured (mean, 95 % quantile, most), and\n\
             speedup over cuBLASLt of the rule's kernel and of the best (mean, 5 % quantile, \
             least):\n";
    Ok(text + &summary.render() + &lists)
}

fn summarise(table: &mut Table, summary: &Summary) {
    let Summary {
        regime,
        group,
        problems,
        regret,
        rule,
        best,
    } = summary;
    let cell = |value: &Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let figures = [regret, rule, best].into_iter().flatten().map(cell);
    let of_group = [
        regime.name().to_owned(),
        problems.to_string(),
        (*group).to_owned(),
    ];
    table.row(of_group.into_iter().chain(figures));
}

/// The problems on which the rule loses most.
fn list_worst(regime: Regime, outcomes: &mut [Outcome], worst: usize) -> String {
    outcomes.sort_by(|a, b| b.regret().total_cmp(&a.regret()));
    let mut table = Table::of("problem | µs | regret | rule | best | × cuBLASLt | best ×");
    for outcome in outcomes.iter().take(worst) {
        let cell = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        table.row([
            outcome.problem.clone(),
            format!("{:.1}", outcome.ms * 1e3),
            format!("{:.2}", outcome.regret()),
            outcome.kernel.clone(),
            outcome.best_kernel.clone(),
            cell(outcome.over_cublaslt()),
            cell(outcome.best_over_cublaslt()),
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
        *counts.entry(&outcome.best_kernel).or_default() += 1;
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
    use crate::modelled::selection::{self, H200};
    use crate::problem::names::Placement;

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
            line_classes: None,
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
