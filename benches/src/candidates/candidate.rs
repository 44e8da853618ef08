//! One way to compute a problem, and its name in records.

use crate::error::Error;
use crate::measure::problem_data::ProblemData;
use std::fmt;
use std::time::Duration;

/// The implementation of a record whose kernel was forced, or of the CPU.
pub const TILEWISE: &str = "tilewise";

/// The implementation of a record with nothing forced: what a user gets.
pub const CHOSEN: &str = "tilewise (chosen)";

/// The implementation of a record whose kernel, order and schedule a
/// [`tilewise::Tuner`] measured.
pub const TUNED: &str = "tilewise (tuned)";

/// The implementation of a record with nothing forced but batch-invariant results.
pub const INVARIANT: &str = "tilewise (batch-invariant)";

/// Whether `implementation`, of a label or a record, is cuBLASLt of any version.
pub fn is_cublaslt(implementation: &str) -> bool {
    implementation.starts_with("cuBLASLt")
}

/// How a candidate is named in records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// [`TILEWISE`], [`CHOSEN`], [`TUNED`], [`INVARIANT`], or a peer with its version.
    pub implementation: String,
    /// Entry point or algorithm.
    pub kernel: String,
    /// Tile order; empty for a peer and on the CPU.
    pub order: String,
    /// Schedule; empty for a peer and on the CPU.
    pub schedule: String,
    /// CTAs launched, where known.
    pub ctas: Option<u64>,
    /// Number of classes of lines, where there is more than one.
    pub line_classes: Option<u32>,
    /// Remarks, such as where a tuned plan came from.
    pub note: String,
}

impl Label {
    /// A label of the implementation alone.
    pub fn of(implementation: impl Into<String>) -> Label {
        Label {
            implementation: implementation.into(),
            ..Label::default()
        }
    }

    /// Whether both name the same launch, forced or chosen.
    pub fn same_launch(&self, other: &Label) -> bool {
        self.kernel == other.kernel
            && self.order == other.order
            && self.schedule == other.schedule
            && self.ctas == other.ctas
            && self.line_classes == other.line_classes
    }
}

/// Implementation, kernel, order and schedule in words; empty ones are left out.
pub fn launch_name(implementation: &str, kernel: &str, order: &str, schedule: &str) -> String {
    let mut parts = vec![implementation, kernel, order, schedule];
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// As [`launch_name`] has it.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&launch_name(
            &self.implementation,
            &self.kernel,
            &self.order,
            &self.schedule,
        ))
    }
}

/// One way to compute a [`ProblemData`].
pub trait Candidate<T, O> {
    /// Its name.
    fn label(&self) -> &Label;

    /// Enqueues (GPU) or makes (CPU) one product.
    ///
    /// # Errors
    /// The launch failed.
    fn launch(&mut self, workload: &mut ProblemData<T, O>) -> Result<(), Error>;

    /// The estimated time of one product; zero where it is unknown.
    fn estimate(&self) -> Duration {
        Duration::ZERO
    }

    /// Bytes from and to DRAM of one product, by the model; `None` where the
    /// algorithm is not known.
    fn modelled_dram_bytes(&self, _workload: &ProblemData<T, O>) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_launch_can_be_the_chosen_one() {
        let chosen = Label {
            implementation: CHOSEN.to_owned(),
            kernel: "hopper_f16".to_owned(),
            order: "grouped:8".to_owned(),
            ..Label::default()
        };
        let forced = Label {
            implementation: TILEWISE.to_owned(),
            ..chosen.clone()
        };
        assert!(chosen.same_launch(&forced) && chosen != forced);
        let other = Label {
            order: "row".to_owned(),
            ..chosen.clone()
        };
        assert!(!chosen.same_launch(&other));
    }
}
