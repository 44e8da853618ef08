//! Which registers hold one value in all lanes of a warp.

use super::graph::{Block, Graph};
use super::instruction::{Entry, Instruction, Operand};
use super::operation::LowBits;

/// What is known of the registers of an entry point.
pub(super) struct Uniformity {
    /// In how many bits a register may differ between lanes.
    registers: Vec<LowBits>,
    /// Blocks whose last instruction is a branch that may separate the lanes.
    divergent: Vec<Block>,
}

impl Uniformity {
    /// Starts with all registers uniform, and takes that back until nothing changes.
    pub fn of(entry: &Entry, graph: &Graph) -> Self {
        let mut this = Uniformity {
            registers: vec![LowBits::UNIFORM; entry.registers],
            divergent: Vec::new(),
        };
        loop {
            let mut changed = false;
            for instruction in &entry.instructions {
                changed |= this.compute(entry, instruction);
            }
            for block in graph.branching() {
                let branch = &entry.instructions[graph.branch_of(block)];
                if !this.divergent.contains(&block) && this.is_divergent(branch) {
                    this.divergent.push(block);
                    changed = true;
                    this.vary_past_the_join(entry, graph, block);
                }
            }
            if !changed {
                // In the order of the text, for the report.
                this.divergent.sort();
                return this;
            }
        }
    }

    /// Whether a register's value may differ between the lanes of a warp.
    pub fn varies(&self, register: usize) -> bool {
        !self.registers[register].is_uniform()
    }

    /// Blocks whose last instruction is a branch that may separate the lanes.
    pub fn divergent_blocks(&self) -> impl Iterator<Item = Block> {
        self.divergent.iter().copied()
    }

    /// Takes into account what an instruction writes. Whether that changed anything.
    fn compute(&mut self, entry: &Entry, instruction: &Instruction) -> bool {
        if instruction.written == 0 {
            return false;
        }
        let sources: Vec<LowBits> = (instruction.sources().iter())
            .map(|operand| self.operand(entry, operand))
            .collect();
        // Where the predicate differs between lanes, so does whether this is written.
        let guarded = (instruction.guard.as_ref()).is_some_and(|guard| self.varies(guard.register));
        let result = match guarded {
            true => LowBits::ALL,
            false => instruction.operation.result(&sources),
        };
        let mut changed = false;
        for register in instruction.writes() {
            let known = &mut self.registers[register];
            if result > *known {
                *known = result;
                changed = true;
            }
        }
        changed
    }

    fn operand(&self, entry: &Entry, operand: &Operand) -> LowBits {
        match operand {
            Operand::Register(register) => self.registers[*register],
            Operand::Special(name) => special(name, entry.one_dimensional),
            Operand::Immediate(_) | Operand::Symbol(_) => LowBits::UNIFORM,
            Operand::Several(parts) | Operand::Address(parts) => parts
                .iter()
                .map(|part| self.operand(entry, part))
                .max()
                .unwrap_or(LowBits::UNIFORM),
        }
    }

    /// Whether the lanes of a warp may go different ways at a branch.
    fn is_divergent(&self, branch: &Instruction) -> bool {
        branch.reads().any(|register| self.varies(register))
    }

    /// Registers that are written between a divergent branch and its join, and live
    /// there, hold what each lane has written on its way.
    fn vary_past_the_join(&mut self, entry: &Entry, graph: &Graph, block: Block) {
        let Some(join) = graph.join(block) else {
            return;
        };
        let live = graph.live(join);
        for inside in graph.between(block) {
            for instruction in &entry.instructions[graph.instructions(inside)] {
                for register in instruction.writes() {
                    if live.contains(register) {
                        self.registers[register] = LowBits::ALL;
                    }
                }
            }
        }
    }
}

/// A special register (PTX ISA, "Special Registers").
fn special(name: &str, one_dimensional: bool) -> LowBits {
    const OF_THE_CTA_OR_MORE: [&str; 12] = [
        "%ntid",
        "%ctaid",
        "%nctaid",
        "%warpid",
        "%nwarpid",
        "%gridid",
        "%is_explicit_cluster",
        "%clusterid",
        "%nclusterid",
        "%cluster_ctaid",
        "%cluster_nctaid",
        "%cluster_ctarank",
    ];
    let (register, _) = name.split_once('.').unwrap_or((name, ""));
    match name {
        "%laneid" => LowBits::LANE,
        "%tid.x" if one_dimensional => LowBits::LANE,
        "%tid.y" | "%tid.z" if one_dimensional => LowBits::UNIFORM,
        "%cluster_nctarank" => LowBits::UNIFORM,
        _ if OF_THE_CTA_OR_MORE.contains(&register) => LowBits::UNIFORM,
        _ => LowBits::ALL,
    }
}
