//! The instructions of an entry point, as far as the analysis needs them: opcode,
//! predicate, registers read and written, and the targets of branches.

use std::collections::HashMap;

use super::operand::Operand;
use super::operation::Operation;

/// An entry point, or a function that was not inlined.
pub(super) struct Entry {
    /// Whether it is a function: its parameters may differ from lane to lane.
    pub is_function: bool,
    /// In the order of the text.
    pub instructions: Vec<Instruction>,
    /// Labels, with the index of the instruction that follows each.
    pub labels: HashMap<String, usize>,
    /// For the label of each `.branchtargets`: the labels that it lists.
    pub branch_targets: HashMap<String, Vec<String>>,
    /// Registers; they are numbered from 0.
    pub registers: usize,
    /// Whether threads are numbered along x alone, so that a warp is 32 consecutive
    /// `%tid.x` (CUDA C++ Programming Guide, "SIMT Architecture").
    pub one_dimensional: bool,
}

/// An instruction.
pub(super) struct Instruction {
    /// Counted from 1.
    pub line: usize,
    /// The text, on one line.
    pub text: String,
    /// `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// Such as `setp.lt.u32`.
    pub opcode: String,
    /// All operands, in order.
    pub operands: Vec<Operand>,
    /// How its result depends on its sources.
    pub operation: Operation,
    /// Leading operands that are written; the others are read.
    pub written: usize,
}

/// A predicate.
pub(super) struct Guard {
    pub register: usize,
}

impl Instruction {
    /// The registers that it writes.
    pub fn writes(&self) -> impl Iterator<Item = usize> {
        let written = self.operands.iter().take(self.written);
        written.flat_map(Operand::registers)
    }

    /// The operands that it reads, without its predicate.
    pub fn sources(&self) -> &[Operand] {
        &self.operands[self.written..]
    }

    /// The registers that it reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> {
        let guard = self.guard.as_ref().map(|guard| guard.register);
        let sources = self.sources().iter().flat_map(Operand::registers);
        guard.into_iter().chain(sources)
    }
}
