//! The counts of a comparison.

use std::fmt;

/// One row of the report.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The instruction.
    pub subject: String,
    /// The kind of operands.
    pub case: String,
    /// Results compared.
    pub values: u64,
    /// Results with the same bits on the GPU and in the emulator.
    pub identical: u64,
    /// Results with different bits, but no further apart than documented.
    pub within: u64,
    /// The first result that is neither, or why nothing could be compared.
    pub failure: Option<String>,
    /// The first results that are neither, [`DIFFERENCES`] at most.
    pub differences: Vec<String>,
}

/// The number of differing results that a comparison keeps.
const DIFFERENCES: usize = 24;

/// How two results that differ in bits are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The documentation allows the difference.
    Allowed,
    /// The documentation does not allow the difference.
    Wrong,
}

impl Tally {
    pub fn new(subject: impl Into<String>, case: impl Into<String>) -> Self {
        Tally {
            subject: subject.into(),
            case: case.into(),
            values: 0,
            identical: 0,
            within: 0,
            failure: None,
            differences: Vec::new(),
        }
    }

    /// The subject and the case, for people.
    pub fn name(&self) -> String {
        format!("{}, {}", self.subject, self.case)
    }

    /// Compares results bit by bit; `judge` is asked about results that differ, by
    /// index.
    pub fn compare<T: PartialEq + fmt::LowerHex>(
        &mut self,
        gpu: &[T],
        emulated: &[T],
        judge: impl Fn(usize) -> Difference,
    ) {
        self.compare_named(gpu, emulated, |index| format!("result {index}"), judge);
    }

    /// [`Tally::compare`], where `name` gives the name of the result at an index.
    pub fn compare_named<T: PartialEq + fmt::LowerHex>(
        &mut self,
        gpu: &[T],
        emulated: &[T],
        name: impl Fn(usize) -> String,
        judge: impl Fn(usize) -> Difference,
    ) {
        assert_eq!(gpu.len(), emulated.len(), "results of one launch");
        for (index, (gpu, emulated)) in gpu.iter().zip(emulated).enumerate() {
            self.values += 1;
            if gpu == emulated {
                self.identical += 1;
            } else if judge(index) == Difference::Allowed {
                self.within += 1;
            } else if self.differences.len() < DIFFERENCES {
                let name = name(index);
                self.differences
                    .push(format!("{name}: GPU {gpu:#x}, emulator {emulated:#x}"));
            }
        }
        if self.failure.is_none() {
            self.failure = self.differences.first().cloned();
        }
    }

    /// Adds another comparison's counts.
    pub fn add(&mut self, other: Tally) {
        self.values += other.values;
        self.identical += other.identical;
        self.within += other.within;
        self.failure = self.failure.take().or(other.failure);
        let room = DIFFERENCES.saturating_sub(self.differences.len());
        self.differences
            .extend(other.differences.into_iter().take(room));
    }

    /// Records why nothing was compared.
    pub fn fail(&mut self, reason: impl fmt::Display) {
        self.failure.get_or_insert_with(|| reason.to_string());
    }

    pub fn passed(&self) -> bool {
        self.failure.is_none() && self.values > 0
    }

    /// The results beyond what is documented.
    pub fn beyond(&self) -> u64 {
        self.values - self.identical - self.within
    }
}
