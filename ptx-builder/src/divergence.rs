//! What the proof finds: a warp-aligned instruction in divergent code.

use std::fmt;

/// A warp-aligned instruction that some lanes of a warp may not execute, or not
/// together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The instruction.
    pub instruction: String,
    /// Its line in the program, counted from 1.
    pub line: usize,
    /// The branch that separates the lanes: the instruction stands between it and its
    /// join. `None` where the instruction itself has a predicate that varies.
    pub branch: Option<Branch>,
}

/// A branch that some lanes of a warp may take and others not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The instruction.
    pub instruction: String,
    /// Its line in the program, counted from 1.
    pub line: usize,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence {
            instruction, line, ..
        } = self;
        write!(f, "`{instruction}` (line {line}) ")?;
        match &self.branch {
            Some(branch) => write!(
                f,
                "stands between the divergent branch `{}` (line {}) and its join",
                branch.instruction, branch.line
            ),
            None => f.write_str("has a predicate that differs between lanes"),
        }
    }
}
