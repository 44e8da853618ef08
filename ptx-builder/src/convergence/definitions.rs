//! The definitions of a register that reach each instruction that reads it, by forward data
//! flow. One register can hold several values one after the other; some of them may differ
//! between lanes and others not.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;

use super::graph::{Block, Graph};
use super::instruction::Entry;

/// The definitions of an entry point, numbered in the order of the text: each is an
/// instruction that writes a register.
pub(super) struct Definitions {
    /// The register of each.
    all: Vec<usize>,
    /// The number of the first definition of each instruction; its others follow.
    first_of: Vec<usize>,
    /// The definitions that reach each read, by instruction and register.
    reads: HashMap<(usize, usize), Vec<usize>>,
}

impl Definitions {
    pub fn of(entry: &Entry, graph: &Graph) -> Self {
        let (mut all, mut first_of) = (Vec::new(), Vec::new());
        let mut of_register = vec![Vec::new(); entry.registers];
        for instruction in &entry.instructions {
            first_of.push(all.len());
            for register in instruction.writes() {
                of_register[register].push(all.len());
                all.push(register);
            }
        }
        let mut this = Definitions {
            all,
            first_of,
            reads: HashMap::new(),
        };
        let reaching = this.reach(entry, graph, &of_register);
        this.reads = this.chains(entry, graph, &of_register, &reaching);
        this
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The definitions that an instruction makes.
    pub fn by(&self, instruction: usize) -> std::ops::Range<usize> {
        let next = self.first_of.get(instruction + 1).copied();
        self.first_of[instruction]..next.unwrap_or(self.all.len())
    }

    /// The definitions whose value an instruction may find in a register that it reads.
    pub fn read_by(&self, instruction: usize, register: usize) -> &[usize] {
        let found = self.reads.get(&(instruction, register));
        found.map_or(&[], Vec::as_slice)
    }

    /// The definitions that reach the start of each block.
    fn reach(&self, entry: &Entry, graph: &Graph, of_register: &[Vec<usize>]) -> Vec<FixedBitSet> {
        let none = || FixedBitSet::with_capacity(self.all.len());
        let blocks: Vec<Block> = graph.blocks().collect();
        let (mut made, mut overwritten) = (vec![none(); blocks.len()], vec![none(); blocks.len()]);
        for &block in &blocks {
            let (made, overwritten) = (&mut made[block.index()], &mut overwritten[block.index()]);
            for index in graph.instructions(block) {
                for definition in self.by(index) {
                    // Where the predicate does not hold, the register keeps its value.
                    if entry.instructions[index].guard.is_none() {
                        for &other in &of_register[self.all[definition]] {
                            made.remove(other);
                            overwritten.insert(other);
                        }
                    }
                    made.insert(definition);
                }
            }
        }
        let mut reaching = vec![none(); blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &blocks {
                let mut out = reaching[block.index()].clone();
                out.difference_with(&overwritten[block.index()]);
                out.union_with(&made[block.index()]);
                for next in graph.next(block) {
                    let reaching = &mut reaching[next.index()];
                    if !out.is_subset(reaching) {
                        reaching.union_with(&out);
                        changed = true;
                    }
                }
            }
        }
        reaching
    }

    fn chains(
        &self,
        entry: &Entry,
        graph: &Graph,
        of_register: &[Vec<usize>],
        reaching: &[FixedBitSet],
    ) -> HashMap<(usize, usize), Vec<usize>> {
        let mut chains = HashMap::new();
        for block in graph.blocks() {
            let at_start = |register: usize| {
                let all = of_register[register].iter().copied();
                all.filter(|&definition| reaching[block.index()].contains(definition))
                    .collect::<Vec<_>>()
            };
            let mut here: HashMap<usize, Vec<usize>> = HashMap::new();
            for index in graph.instructions(block) {
                let instruction = &entry.instructions[index];
                for register in instruction.reads() {
                    let found = here.entry(register).or_insert_with(|| at_start(register));
                    chains.insert((index, register), found.clone());
                }
                for definition in self.by(index) {
                    let register = self.all[definition];
                    if instruction.guard.is_none() {
                        here.insert(register, vec![definition]);
                    } else {
                        let found = here.entry(register).or_insert_with(|| at_start(register));
                        found.push(definition);
                    }
                }
            }
        }
        chains
    }
}
