//! What the rule loses on one problem of the sweep, and where the library stands beside
//! cuBLASLt on groups of problems.

use crate::measure::regime::Regime;
use crate::measure::stats::{geometric_mean, quantile};
use crate::modelled::selection::{self, H200};
use crate::problem::names::{Placement, short_kernel};
use crate::sweep::row::SweepRow;
use serde::Serialize;

/// The outcome of one problem in one regime.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the GPU.
    pub device: String,
    /// The problem: `MxNxK dtype layout`.
    pub problem: String,
    /// The regime.
    pub regime: Regime,
    /// The rule's kernel, without type and layouts.
    pub kernel: String,
    /// Its time, ms.
    pub ms: f64,
    /// The fastest kernel of the library that was measured, likewise.
    pub best_kernel: String,
    /// Its time, ms.
    pub best_ms: f64,
    /// The time of the best of cuBLASLt's first heuristics, ms.
    pub cublaslt_ms: Option<f64>,
    /// Whether the index of the problem is odd. `docs/sweep/README.md` says which of these a later
    /// fit of the constants has seen.
    pub held_out: bool,
    /// Whether the pitches of all operands are multiples of 16 bytes.
    pub aligned: bool,
}

impl Outcome {
    /// Time of the rule's kernel over the best.
    pub fn regret(&self) -> f64 {
        self.ms / self.best_ms
    }

    /// Speedup over cuBLASLt of the rule's kernel.
    pub fn over_cublaslt(&self) -> Option<f64> {
        Some(self.cublaslt_ms? / self.ms)
    }

    /// Speedup over cuBLASLt of the best kernel.
    pub fn best_over_cublaslt(&self) -> Option<f64> {
        Some(self.cublaslt_ms? / self.best_ms)
    }

    /// The outcome of problem `index`, whose rows these are; `None` if the rule's kernel was not
    /// measured.
    fn of(index: usize, rows: &[SweepRow], regime: Regime) -> Result<Option<Outcome>, String> {
        let problem = rows[0].problem()?;
        // Files from before lines had classes know of no launch that has them.
        let has_classes = rows.iter().any(|row| row.line_classes.is_some());
        let placement = Placement {
            line_classes: (!has_classes).then_some(1),
            ..Placement::default()
        };
        let choice = selection::choose(problem, None, placement, &H200.target)?;
        let timed = || {
            let ours = rows.iter().filter(|row| !row.is_cublaslt());
            ours.filter_map(|row| Some((row, row.time(regime)?)))
        };
        let rule = timed().find(|(row, _)| {
            row.kernel == choice.kernel.name && row.line_classes.unwrap_or(1) == choice.line_classes
        });
        let best = timed().min_by(|a, b| a.1.total_cmp(&b.1));
        let cublaslt = rows.iter().find(|row| row.is_cublaslt());
        let short = |row: &SweepRow| short_kernel(&row.kernel, &row.dtype).to_owned();
        Ok(rule.zip(best).map(|(rule, best)| {
            let SweepRow {
                device,
                m,
                n,
                k,
                dtype,
                layout,
                ..
            } = rule.0;
            Outcome {
                device: device.clone(),
                problem: format!("{m}x{n}x{k} {dtype} {layout}"),
                regime,
                kernel: short(rule.0),
                ms: rule.1,
                best_kernel: short(best.0),
                best_ms: best.1,
                cublaslt_ms: cublaslt.and_then(|row| row.time(regime)),
                held_out: !index.is_multiple_of(2),
                aligned: problem.has_aligned_pitches(),
            }
        }))
    }
}

/// The outcomes of the problems of `rows` in `regime`, and the number of problems for which the
/// rule's kernel was not measured; `None` where nothing was measured.
///
/// # Errors
/// A row names no problem.
pub fn outcomes(
    rows: &[SweepRow],
    regime: Regime,
) -> Result<Option<(Vec<Outcome>, usize)>, String> {
    let (mut outcomes, mut unmeasured) = (Vec::new(), 0);
    for (index, rows) in rows.chunk_by(SweepRow::same_problem).enumerate() {
        match Outcome::of(index, rows, regime)? {
            Some(outcome) => outcomes.push(outcome),
            None => unmeasured += 1,
        }
    }
    Ok((!outcomes.is_empty()).then_some((outcomes, unmeasured)))
}

/// Figures of a group of problems.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The regime.
    pub regime: Regime,
    /// The group's name.
    pub group: &'static str,
    /// Number of problems.
    pub problems: usize,
    /// Time of the rule's kernel over the best: geometric mean, 95 % quantile, most.
    pub regret: [Option<f64>; 3],
    /// Speedup over cuBLASLt of the rule's kernel: geometric mean, 5 % quantile, least.
    pub rule: [Option<f64>; 3],
    /// Likewise of the best kernel, which no rule can beat.
    pub best: [Option<f64>; 3],
}

/// Whether an outcome is in a group.
type IsIn = fn(&Outcome) -> bool;

/// The groups of problems.
const GROUPS: [(&str, IsIn); 4] = [
    ("fitted", |outcome| !outcome.held_out),
    ("held out", |outcome| outcome.held_out),
    ("16-byte pitch", |outcome| outcome.aligned),
    ("all", |_| true),
];

/// The figures of each group of `outcomes`, which are of one regime.
pub fn summaries(outcomes: &[Outcome]) -> Vec<Summary> {
    let Some(first) = outcomes.first() else {
        return Vec::new();
    };
    let of_group = |(name, is_in): (&'static str, IsIn)| {
        let group: Vec<&Outcome> = outcomes.iter().filter(|outcome| is_in(outcome)).collect();
        let ratios = |of: &dyn Fn(&Outcome) -> Option<f64>| -> Vec<f64> {
            group.iter().filter_map(|outcome| of(outcome)).collect()
        };
        let speedups = |ratios: Vec<f64>| {
            let least = ratios.iter().copied().min_by(f64::total_cmp);
            [geometric_mean(&ratios), quantile(&ratios, 0.05), least]
        };
        let regrets = ratios(&|outcome| Some(outcome.regret()));
        Summary {
            regime: first.regime,
            group: name,
            problems: group.len(),
            regret: [
                geometric_mean(&regrets),
                quantile(&regrets, 0.95),
                regrets.iter().copied().max_by(f64::total_cmp),
            ],
            rule: speedups(ratios(&Outcome::over_cublaslt)),
            best: speedups(ratios(&Outcome::best_over_cublaslt)),
        }
    };
    GROUPS.map(of_group).into()
}
