//! The values that are the same in all lanes of a warp.

use std::collections::BTreeMap;

use super::definitions::Definitions;
use super::graph::{Block, Graph};
use super::instruction::Entry;
use super::operand::Operand;
use super::operation::Differing;

/// The result of the analysis of an entry point.
pub(super) struct Uniformity<'e> {
    entry: &'e Entry,
    definitions: Definitions,
    /// The bits in which the value of each definition may differ between lanes.
    values: Vec<Differing>,
    /// Blocks whose last instruction is a branch that may separate the lanes, each with
    /// the blocks between the branch and its join.
    divergent: BTreeMap<Block, Vec<Block>>,
}

impl<'e> Uniformity<'e> {
    /// Starts with all values uniform, and takes that back until nothing changes.
    pub fn of(entry: &'e Entry, graph: &Graph) -> Self {
        let definitions = Definitions::of(entry, graph);
        let mut this = Uniformity {
            entry,
            values: vec![Differing::NONE; definitions.count()],
            definitions,
            divergent: BTreeMap::new(),
        };
        loop {
            let mut changed = false;
            for instruction in 0..entry.instructions.len() {
                changed |= this.compute(instruction);
            }
            for block in graph.branching() {
                let branch = graph.branch_of(block);
                if !this.divergent.contains_key(&block) && this.is_divergent(branch) {
                    this.diverge(graph, block);
                    changed = true;
                }
            }
            if !changed {
                return this;
            }
        }
    }

    /// Whether what an instruction finds in a register may differ between lanes.
    pub fn varies(&self, instruction: usize, register: usize) -> bool {
        !self.value(instruction, register).is_none()
    }

    /// Blocks whose last instruction is a branch that may separate the lanes, in the order
    /// of the text, each with the blocks between the branch and its join.
    pub fn divergent_blocks(&self) -> impl Iterator<Item = (Block, &[Block])> {
        let blocks = self.divergent.iter();
        blocks.map(|(&block, between)| (block, between.as_slice()))
    }

    fn value(&self, instruction: usize, register: usize) -> Differing {
        let reaching = self.definitions.read_by(instruction, register).iter();
        reaching.fold(Differing::NONE, |all, &one| all.or(self.values[one]))
    }

    /// Updates the values that an instruction writes. Returns whether any changed.
    fn compute(&mut self, index: usize) -> bool {
        let instruction = &self.entry.instructions[index];
        if instruction.written == 0 {
            return false;
        }
        let sources: Vec<Differing> = (instruction.sources().iter())
            .map(|operand| self.operand(index, operand))
            .collect();
        // If the predicate differs between lanes, only some of them write.
        let guard = instruction.guard.as_ref();
        let result = match guard.is_some_and(|guard| self.varies(index, guard.register)) {
            true => Differing::ALL,
            false => instruction.operation.result(&sources),
        };
        let mut changed = false;
        for definition in self.definitions.by(index) {
            let known = &mut self.values[definition];
            let both = known.or(result);
            changed |= both != *known;
            *known = both;
        }
        changed
    }

    fn operand(&self, instruction: usize, operand: &Operand) -> Differing {
        match operand {
            Operand::Register(register) => self.value(instruction, *register),
            Operand::Special(name) => special(name, self.entry.one_dimensional),
            Operand::Immediate(_) | Operand::Symbol(_) => Differing::NONE,
            Operand::Several(parts) | Operand::Address(parts) => (parts.iter())
                .map(|part| self.operand(instruction, part))
                .fold(Differing::NONE, Differing::or),
        }
    }

    /// Whether the lanes of a warp may go different ways at a branch.
    fn is_divergent(&self, branch: usize) -> bool {
        let mut reads = self.entry.instructions[branch].reads();
        reads.any(|register| self.varies(branch, register))
    }

    /// Notes that the branch at the end of `block` separates the lanes. Behind its join, a
    /// register written between branch and join may differ from lane to lane.
    fn diverge(&mut self, graph: &Graph, block: Block) {
        let between = graph.between(block);
        for &inside in &between {
            for instruction in graph.instructions(inside) {
                for definition in self.definitions.by(instruction) {
                    self.values[definition] = Differing::ALL;
                }
            }
        }
        self.divergent.insert(block, between);
    }
}

/// A special register (PTX ISA, "Special Registers").
fn special(name: &str, one_dimensional: bool) -> Differing {
    #[rustfmt::skip]
    let of_the_cta_or_more = |register: &str| matches!(
        register,
        "%ntid" | "%ctaid" | "%nctaid" | "%warpid" | "%nwarpid" | "%gridid"
            | "%is_explicit_cluster" | "%clusterid" | "%nclusterid" | "%cluster_ctaid"
            | "%cluster_nctaid" | "%cluster_ctarank"
    );
    let (register, _) = name.split_once('.').unwrap_or((name, ""));
    match name {
        "%laneid" => Differing::LANE,
        "%tid.x" if one_dimensional => Differing::LANE,
        "%tid.y" | "%tid.z" if one_dimensional => Differing::NONE,
        "%cluster_nctarank" => Differing::NONE,
        _ if of_the_cta_or_more(register) => Differing::NONE,
        _ => Differing::ALL,
    }
}
