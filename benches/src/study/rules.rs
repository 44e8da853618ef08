//! The loss of a rule that picks orders: the time of the order that it picks, over the best
//! time of the same product with the same kernel, less one.
//!
//! The best of many noisy times is a little better than the best order is, so even a
//! perfect rule has some regret here.

use serde::Serialize;

use crate::measure::regime::Regime;
use crate::study::groups::RowGroup;
use crate::study::row::{CHOOSER, CUTLASS, MODEL, StudyRow, TUNER};

/// A rule that picks an order.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    picks: fn(&StudyRow) -> bool,
}

/// The library's choice.
pub const CHOICE: Rule = Rule {
    name: "the library's choice",
    picks: |row| row.is_picked_by(CHOOSER),
};

/// The rules that are compared.
pub const RULES: [Rule; 6] = [
    CHOICE,
    Rule {
        name: "best by the model",
        picks: |row| row.is_picked_by(MODEL),
    },
    Rule {
        name: "the library's tuner",
        picks: |row| row.is_picked_by(TUNER),
    },
    Rule {
        name: "CUTLASS's heuristic",
        picks: |row| row.is_picked_by(CUTLASS),
    },
    Rule {
        name: "always grouped:8",
        picks: |row| row.order == "grouped:8",
    },
    Rule {
        name: "always row-major",
        picks: |row| row.order == "row",
    },
];

/// The regimes that rules are judged in.
pub const REGIMES: [Regime; 2] = [Regime::Sustained, Regime::Cold];

/// The losses of a rule over some groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// Groups in which its pick was measured.
    pub groups: usize,
    /// Mean loss.
    pub mean: f64,
    /// Greatest loss.
    pub worst: f64,
    /// Where, and which order it picked there.
    pub worst_at: String,
}

/// The losses of one rule in one regime.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRegret {
    /// The rule.
    pub rule: &'static str,
    /// The regime.
    pub regime: &'static str,
    /// The losses.
    #[serde(flatten)]
    pub regret: Regret,
}

/// What every rule loses over `groups`, in both regimes. A rule is left out if none of its
/// picks was timed.
pub fn regrets(groups: &[RowGroup]) -> Vec<RuleRegret> {
    let pairs = REGIMES
        .into_iter()
        .flat_map(|regime| RULES.iter().map(move |rule| (regime, rule)));
    let found = pairs.filter_map(|(regime, rule)| {
        Some(RuleRegret {
            rule: rule.name,
            regime: regime.name(),
            regret: regret(groups, rule, regime)?,
        })
    });
    found.collect()
}

/// The row with the least time; `None` where nothing was timed.
pub fn best<'a>(group: &RowGroup<'a>, regime: Regime) -> Option<(&'a StudyRow, f64)> {
    extreme(group, regime, |a, b| a < b)
}

/// The row with the greatest time.
pub fn slowest<'a>(group: &RowGroup<'a>, regime: Regime) -> Option<(&'a StudyRow, f64)> {
    extreme(group, regime, |a, b| a > b)
}

fn extreme<'a>(
    group: &RowGroup<'a>,
    regime: Regime,
    is_better: impl Fn(f64, f64) -> bool,
) -> Option<(&'a StudyRow, f64)> {
    let timed = group
        .rows
        .iter()
        .filter_map(|&row| Some((row, row.time_us(regime)?)));
    timed.reduce(|best, row| if is_better(row.1, best.1) { row } else { best })
}

/// What `rule` loses in one group, and the row it picked; `None` where its pick was not
/// timed.
pub fn loss<'a>(group: &RowGroup<'a>, rule: &Rule, regime: Regime) -> Option<(&'a StudyRow, f64)> {
    let (_, least) = best(group, regime)?;
    let picked = group.rows.iter().find(|row| (rule.picks)(row))?;
    Some((picked, picked.time_us(regime)? / least - 1.0))
}

/// What `rule` loses over `groups`; `None` where none has its pick.
pub fn regret(groups: &[RowGroup], rule: &Rule, regime: Regime) -> Option<Regret> {
    let losses: Vec<(&RowGroup, &StudyRow, f64)> = groups
        .iter()
        .filter_map(|group| {
            let (picked, loss) = loss(group, rule, regime)?;
            Some((group, picked, loss))
        })
        .collect();
    let worst = losses.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let sum: f64 = losses.iter().map(|(_, _, loss)| loss).sum();
    Some(Regret {
        groups: losses.len(),
        mean: sum / losses.len() as f64,
        worst: worst.2,
        worst_at: format!("{}: {}", worst.0.name(), worst.1.order),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::groups::groups;
    use crate::study::groups::tests::row;

    fn timed(m: usize, order: &str, sustained_us: f64, picked_by: &str) -> StudyRow {
        StudyRow {
            sustained_us: Some(sustained_us),
            picked_by: picked_by.to_owned(),
            ..row(m, order)
        }
    }

    #[test]
    fn regret_is_over_the_best_order_measured() {
        let rows = [
            timed(512, "row", 110.0, ""),
            timed(512, "grouped:8", 102.0, "chooser+cutlass"),
            timed(512, "hilbert", 100.0, "model"),
            timed(1024, "row", 300.0, "chooser"),
            timed(1024, "grouped:8", 330.0, ""),
            // CUTLASS's pick was counted but not timed.
            StudyRow {
                sustained_us: None,
                ..timed(1024, "col", 1.0, "cutlass")
            },
        ];
        let groups = groups(&rows);
        let of = |name: &str| {
            let rule = RULES.iter().find(|rule| rule.name == name).unwrap();
            regret(&groups, rule, Regime::Sustained)
        };
        let chooser = of("the library's choice").unwrap();
        assert_eq!(chooser.groups, 2);
        assert!((chooser.mean - 0.01).abs() < 1e-12);
        assert!((chooser.worst - 0.02).abs() < 1e-12);
        assert_eq!(chooser.worst_at, "512x512x512 128x256 grid1d: grouped:8");
        let row_major = of("always row-major").unwrap();
        assert!((row_major.worst - 0.1).abs() < 1e-12);
        assert_eq!(of("CUTLASS's heuristic").unwrap().groups, 1);
        assert_eq!(of("best by the model").unwrap().mean, 0.0);
        assert_eq!(of("the library's tuner"), None);
        assert_eq!(regret(&groups, &CHOICE, Regime::Cold), None);
    }

    #[test]
    fn the_slowest_order_is_the_other_end() {
        let rows = [timed(512, "row", 110.0, ""), timed(512, "col", 100.0, "")];
        let groups = groups(&rows);
        assert_eq!(best(&groups[0], Regime::Sustained).unwrap().0.order, "col");
        assert_eq!(slowest(&groups[0], Regime::Sustained).unwrap().1, 110.0);
        assert!(best(&groups[0], Regime::Cold).is_none());
    }
}
