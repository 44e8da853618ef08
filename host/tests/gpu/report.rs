//! Prints what libtest-mimic does not print: each failure at once, and the counts of each
//! kernel and kind of test.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Completion, Failed};

use crate::test::{Test, Verdict};

/// The counts of some tests.
#[derive(Default)]
struct Counts {
    passed: usize,
    /// Number of passed tests whose case the library refused, as it should.
    refused: usize,
    failed: usize,
    skipped: usize,
    /// Why the last of them was.
    skip_reason: Option<&'static str>,
    not_run: usize,
    /// Largest error over the largest accepted.
    worst: f64,
}

/// The counts of a run, of which all threads have a part.
pub struct Report {
    seed: u64,
    counts: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    /// By the first part of the name, a kernel in most.
    groups: BTreeMap<String, Counts>,
    kinds: BTreeMap<&'static str, Counts>,
}

impl Report {
    /// Of no test yet.
    pub fn new(seed: u64) -> Self {
        Report {
            seed,
            counts: Mutex::default(),
        }
    }

    /// Counts the verdict of `test`, and translates it for libtest-mimic. A failure is
    /// printed at once, because a later test that hangs would keep libtest-mimic from
    /// printing it at the end.
    pub fn add(&self, test: &Test, verdict: Verdict) -> Result<Completion, Failed> {
        {
            let mut tables = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let group = test.group().to_owned();
            tables.groups.entry(group).or_default().add(&verdict);
            tables.kinds.entry(test.kind).or_default().add(&verdict);
        }
        let failed = |why: &str| {
            println!(
                "\nFAILED --seed {} --exact '{}': {why}",
                self.seed, test.name
            );
            Err(Failed::without_message())
        };
        match verdict {
            Verdict::Passed(_) | Verdict::Refused => Ok(Completion::Completed),
            Verdict::Skipped(why) => Ok(Completion::ignored_with(why)),
            Verdict::NotRun => Ok(Completion::ignored_with("the device has failed")),
            Verdict::Failed(why) => failed(&why),
            Verdict::DeviceLost(why) => failed(&format!(
                "{why}\nthe device has failed; the rest is not run"
            )),
        }
    }

    /// Prints the counts, group by group where anything ran.
    pub fn finish(&self) {
        let tables = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (group, counts) in &tables.groups {
            if counts.passed + counts.failed > 0 {
                println!("{group}: {}", counts.in_words());
            }
        }
        let kinds: Vec<String> = tables
            .kinds
            .iter()
            .map(|(kind, counts)| format!("{kind} ({})", counts.in_words()))
            .collect();
        println!("seed {}: {}", self.seed, kinds.join(", "));
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
