//! No warp-aligned instruction in divergent code.
//!
//! `wgmma`, `setmaxnreg`, `ldmatrix`, `bar.sync` and others ask that all threads of a
//! warp execute the same instruction (PTX ISA, ".aligned"). A warp whose lanes have
//! taken two sides of a branch does not, and the kernel hangs or computes nonsense.
//! Sources that keep to this rule are not enough: to a compiler an `asm!` is an
//! instruction like any other, which it may move, or copy into both arms of a branch.
//! So the rule is proved here, on the PTX of every kernel, whichever compiler wrote it.
//!
//! The steps, a module each:
//!
//! 1. `reader` reads the entry point into `instruction`s.
//! 2. `graph` finds its basic blocks, and the *join* of each branch: the immediate
//!    post-dominator of the branch's block.
//! 3. `definitions` finds which definitions of a register reach each place that reads it.
//! 4. `uniformity` finds the definitions that have one value in all lanes of a warp, and
//!    the branches whose condition may differ from lane to lane.
//! 5. [`check`] refuses every warp-aligned instruction that stands between such a
//!    branch and its join.
//!
//! The algorithm is the divergence analysis of Coutinho, Sampaio, Pereira and Meira,
//! "Divergence Analysis and Optimizations" (PACT 2011): a value varies if it is computed
//! from one that does, or if which definition reaches a join depends on a divergent
//! branch. PTX is not in SSA form, so this is put in terms of reaching definitions. Where
//! the analysis does not know, it assumes variance: it can raise a false alarm, and cannot
//! miss a divergence.
//!
//! **What it takes for granted**: `ptxas` and the GPU bring the lanes of a warp together
//! again at the join, where an aligned instruction follows.

mod definitions;
mod graph;
mod instruction;
mod operand;
mod operation;
mod reader;
mod uniformity;

use crate::Error;
use crate::divergence::{Branch, Divergence};
use graph::Graph;
use instruction::{Entry, Instruction};
use uniformity::Uniformity;

/// The warp-aligned instructions of a program that stand in divergent code, each once,
/// with the first such branch.
///
/// # Errors
/// [`Error::Syntax`] where the text is no PTX that this crate reads.
pub fn check(ptx: &str) -> Result<Vec<Divergence>, Error> {
    let mut divergences = Vec::new();
    let entries = reader::entries(ptx)?;
    // A call of a function with such an instruction is one, too.
    let calls_align = (entries.iter().filter(|entry| entry.is_function))
        .any(|function| function.instructions.iter().any(is_aligned));
    for entry in &entries {
        check_entry(entry, calls_align, &mut divergences)?;
    }
    Ok(divergences)
}

fn check_entry(
    entry: &Entry,
    calls_align: bool,
    divergences: &mut Vec<Divergence>,
) -> Result<(), Error> {
    let is_aligned = |instruction: &Instruction| {
        is_aligned(instruction) || calls_align && instruction.opcode.starts_with("call")
    };
    // Most programs have few aligned instructions, some none.
    if !entry.instructions.iter().any(is_aligned) {
        return Ok(());
    }
    let graph = Graph::new(entry)?;
    let uniformity = Uniformity::of(entry, &graph);
    let mut reported = vec![false; entry.instructions.len()];
    let mut report = |at: usize, branch: Option<&Instruction>| {
        let instruction = &entry.instructions[at];
        if is_aligned(instruction) && !std::mem::replace(&mut reported[at], true) {
            divergences.push(Divergence {
                instruction: instruction.text.clone(),
                line: instruction.line,
                branch: branch.map(|branch| Branch {
                    instruction: branch.text.clone(),
                    line: branch.line,
                }),
            });
        }
    };
    for (block, between) in uniformity.divergent_blocks() {
        let branch = &entry.instructions[graph.branch_of(block)];
        for &inside in between {
            for at in graph.instructions(inside) {
                report(at, Some(branch));
            }
        }
    }
    for (at, instruction) in entry.instructions.iter().enumerate() {
        let guard = instruction.guard.as_ref();
        if guard.is_some_and(|guard| uniformity.varies(at, guard.register)) {
            report(at, None);
        }
    }
    Ok(())
}

/// Whether all lanes of a warp have to execute an instruction together. `bar` is
/// `barrier` with `.aligned` (PTX ISA, "bar, barrier"); `bar.warp.sync` and `shfl`,
/// `vote`, `match` and `redux` wait for the lanes that their mask names, which in these
/// kernels are all of a warp's.
fn is_aligned(instruction: &Instruction) -> bool {
    let mut parts = instruction.opcode.split('.');
    match parts.next() {
        Some("bar") => true,
        Some("shfl" | "vote" | "match" | "redux" | "elect") => true,
        _ => parts.any(|part| part == "aligned"),
    }
}

#[cfg(test)]
mod tests;
