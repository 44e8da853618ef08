//! What is printed: a line a failure, a line a group, the summary.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::test::{Test, Verdict};

/// Failures of a group that get a line of their own.
const MAX_REPORTS: usize = 20;

/// What came of some tests.
#[derive(Default)]
struct Counts {
    passed: usize,
    /// Of the passed, those the library refused, as it should.
    refused: usize,
    failed: usize,
    skipped: usize,
    /// Why the last of them was.
    skip_reason: Option<&'static str>,
    not_run: usize,
    /// Largest error over the largest accepted.
    worst: f64,
}

/// The tests of one group.
struct Group {
    waiting: usize,
    counts: Counts,
}

/// The state of a run.
pub struct Report<'a> {
    seed: u64,
    tests: &'a [Test],
    start: Instant,
    groups: BTreeMap<&'a str, Group>,
    kinds: BTreeMap<&'static str, Counts>,
    total: Counts,
}

impl<'a> Report<'a> {
    /// Of `tests`, none of which has run.
    pub fn new(seed: u64, tests: &'a [Test]) -> Self {
        let mut groups = BTreeMap::new();
        for test in tests {
            let group = groups.entry(test.group()).or_insert_with(|| Group {
                waiting: 0,
                counts: Counts::default(),
            });
            group.waiting += 1;
        }
        Report {
            seed,
            tests,
            start: Instant::now(),
            groups,
            kinds: BTreeMap::new(),
            total: Counts::default(),
        }
    }

    /// Takes down what came of test `index`, once for each.
    pub fn add(&mut self, index: usize, verdict: Verdict) {
        let test = &self.tests[index];
        let name = test.group();
        let group = self.groups.get_mut(name).expect("made in `new`");
        let kind = self.kinds.entry(test.kind).or_default();
        for counts in [&mut group.counts, kind, &mut self.total] {
            counts.add(&verdict);
        }
        let (why, lost) = match &verdict {
            Verdict::Failed(why) => (Some(why), false),
            Verdict::DeviceLost(why) => (Some(why), true),
            _ => (None, false),
        };
        if let Some(why) = why.filter(|_| lost || group.counts.failed <= MAX_REPORTS) {
            println!(
                "FAILED --seed {} --filter '{}': {why}",
                self.seed, test.name
            );
        }
        if lost {
            println!("the device has failed; the rest is not run");
        }
        group.waiting -= 1;
        if group.waiting == 0 {
            println!("{name}: {}", group.counts.in_words());
        }
    }

    /// Prints the summary; returns whether anything failed.
    pub fn finish(self) -> bool {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|(kind, counts)| format!("{kind} ({})", counts.in_words()))
            .collect();
        println!(
            "{} passed, {} failed, {} skipped in {:.1} s (seed {}): {}",
            self.total.passed,
            self.total.failed,
            self.total.skipped,
            self.start.elapsed().as_secs_f64(),
            self.seed,
            kinds.join(", ")
        );
        self.total.failed > 0
    }
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed(share) => {
                self.passed += 1;
                self.worst = self.worst.max(*share);
            }
            Verdict::Refused => {
                self.passed += 1;
                self.refused += 1;
            }
            Verdict::Skipped(why) => {
                self.skipped += 1;
                self.skip_reason = Some(why);
            }
            Verdict::Failed(_) | Verdict::DeviceLost(_) => self.failed += 1,
            Verdict::NotRun => self.not_run += 1,
        }
    }

    fn in_words(&self) -> String {
        let mut parts = Vec::new();
        if self.passed > 0 {
            parts.push(format!("{} passed", self.passed));
        }
        if self.refused > 0 {
            parts.push(format!("{} of them refusals", self.refused));
        }
        if self.failed > 0 {
            parts.push(format!("{} FAILED", self.failed));
        }
        if let Some(reason) = self.skip_reason {
            parts.push(format!("{} skipped ({reason})", self.skipped));
        }
        if self.not_run > 0 {
            parts.push(format!("{} not run", self.not_run));
        }
        if self.worst > 0.0 {
            parts.push(format!("errors up to {:.2} of the bound", self.worst));
        }
        parts.join(", ")
    }
}
