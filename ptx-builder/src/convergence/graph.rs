//! The basic blocks of an entry point, and their post-dominators.

use fixedbitset::FixedBitSet;
use petgraph::algo::dominators::{self, Dominators};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, NodeFiltered, Reversed, Walker as _};

use super::instruction::{Entry, Instruction};
use super::operand::Operand;
use crate::Error;

/// A basic block, by its place in the text.
pub(super) type Block = NodeIndex;

/// The control flow of an entry point.
pub(super) struct Graph {
    /// Weights are the instructions, as a range; the last node is the exit.
    blocks: DiGraph<(usize, usize), ()>,
    exit: Block,
    /// "A Simple, Fast Dominance Algorithm" (Cooper, Harvey and Kennedy, 2001), on the
    /// reversed graph.
    post_dominators: Dominators<Block>,
}

/// How an instruction ends its block.
enum End {
    /// It does not.
    Falls,
    /// It goes to labels, and to what follows it if it may not go there.
    Jumps(Vec<String>),
    /// The thread exits.
    Exits,
    /// The grid ends.
    Traps,
}

impl Graph {
    /// # Errors
    /// [`Error::Syntax`] for a branch to a label that is not there.
    pub fn new(entry: &Entry) -> Result<Self, Error> {
        let count = entry.instructions.len();
        let ends: Vec<End> = entry.instructions.iter().map(|i| end(entry, i)).collect();
        let mut starts = FixedBitSet::with_capacity(count + 1);
        starts.insert(0);
        starts.extend(entry.labels.values().copied());
        for (at, end) in ends.iter().enumerate() {
            if !matches!(end, End::Falls) {
                starts.insert(at + 1);
            }
        }
        starts.grow_and_insert(count);
        let starts: Vec<usize> = starts.ones().filter(|&at| at <= count).collect();

        let mut blocks = DiGraph::new();
        let ranges = starts.windows(2).map(|pair| (pair[0], pair[1]));
        let nodes: Vec<Block> = ranges.map(|range| blocks.add_node(range)).collect();
        let exit = blocks.add_node((count, count));
        // What falls off the end of the text is an exit, too.
        let block_at = |at: usize| match starts.binary_search(&at) {
            Ok(block) if block < nodes.len() => nodes[block],
            _ => exit,
        };
        for &block in &nodes {
            let (_, past) = blocks[block];
            let last = &entry.instructions[past - 1];
            let mut next = Vec::new();
            match &ends[past - 1] {
                End::Falls => next.push(block_at(past)),
                End::Exits => next.push(exit),
                End::Traps => {}
                End::Jumps(labels) => {
                    for label in labels {
                        let at = entry.labels.get(label).ok_or(Error::Syntax {
                            line: last.line,
                            reason: "a branch to a label that is not there",
                        })?;
                        next.push(block_at(*at));
                    }
                }
            }
            if last.guard.is_some() && !matches!(ends[past - 1], End::Falls) {
                next.push(block_at(past));
            }
            for next in next {
                blocks.update_edge(block, next, ());
            }
        }
        leave_endless_loops(&mut blocks, exit);
        let post_dominators = dominators::simple_fast(Reversed(&blocks), exit);
        Ok(Graph {
            blocks,
            exit,
            post_dominators,
        })
    }

    /// All blocks, in the order of the text; the exit is the last.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + use<> {
        self.blocks.node_indices()
    }

    /// The blocks that may follow one.
    pub fn next(&self, block: Block) -> impl Iterator<Item = Block> {
        self.blocks.neighbors(block)
    }

    /// All blocks with more than one way out.
    pub fn branching(&self) -> impl Iterator<Item = Block> {
        let blocks = self.blocks.node_indices();
        blocks.filter(|&block| self.blocks.neighbors(block).nth(1).is_some())
    }

    /// The instructions of a block.
    pub fn instructions(&self, block: Block) -> std::ops::Range<usize> {
        let (start, past) = self.blocks[block];
        start..past
    }

    /// The instruction that ends a block.
    pub fn branch_of(&self, block: Block) -> usize {
        self.blocks[block].1 - 1
    }

    /// The blocks that lanes may be in after the branch at the end of `block` and before
    /// its join, the immediate post-dominator, where they meet again. A loop's own blocks
    /// are among them where the branch leaves the loop. There is no join where the branch
    /// leads to `trap` alone.
    pub fn between(&self, block: Block) -> Vec<Block> {
        let join = self.post_dominators.immediate_dominator(block);
        let inside = NodeFiltered::from_fn(&self.blocks, |node| Some(node) != join);
        let mut reached = FixedBitSet::with_capacity(self.blocks.node_count());
        for next in self
            .blocks
            .neighbors(block)
            .filter(|&next| Some(next) != join)
        {
            for node in Dfs::new(&inside, next).iter(&inside) {
                reached.insert(node.index());
            }
        }
        let nodes = reached.ones().map(NodeIndex::new);
        nodes.filter(|&node| node != self.exit).collect()
    }
}

/// Adds a way out to loops that have none, as if lanes that enter them were to exit: the
/// others never meet them again. What ends in `trap` needs none, for it ends the grid.
fn leave_endless_loops(blocks: &mut DiGraph<(usize, usize), ()>, exit: Block) {
    let reversed = Reversed(&*blocks);
    let leaves: Vec<Block> = Dfs::new(reversed, exit).iter(reversed).collect();
    let is_loop = |component: &Vec<Block>| {
        component.len() > 1 || blocks.contains_edge(component[0], component[0])
    };
    let endless: Vec<Block> = (petgraph::algo::tarjan_scc(&*blocks).into_iter())
        .filter(|component| is_loop(component) && !leaves.contains(&component[0]))
        .flatten()
        .collect();
    for block in endless {
        blocks.update_edge(block, exit, ());
    }
}

/// How an instruction ends its block.
fn end(entry: &Entry, instruction: &Instruction) -> End {
    let label = |operand: Option<&Operand>| match operand {
        Some(Operand::Symbol(name)) => name.clone(),
        _ => String::new(),
    };
    match instruction.opcode.split('.').next() {
        Some("bra") => End::Jumps(vec![label(instruction.operands.first())]),
        Some("brx") => {
            let list = label(instruction.operands.last());
            let targets = entry.branch_targets.get(&list);
            // A list that is missing leads to a label that is not there.
            End::Jumps(targets.cloned().unwrap_or_else(|| vec![list]))
        }
        Some("ret" | "exit") => End::Exits,
        Some("trap") => End::Traps,
        _ => End::Falls,
    }
}
