//! Faults in a kernel, one at a time, each of which the emulator has to catch: by a check, or
//! by a wrong result.

use tilewise::emulator::{Fault, Instruction, Site};
use tilewise_emulate::{Error, Outcome};

/// A fault.
pub struct Mutation {
    /// What is wrong, in words.
    pub what: &'static str,
    /// The instruction that it changes.
    pub instruction: Instruction,
    /// Changes the arguments; `false` drops the instruction.
    pub change: fn(&Site, &mut [u64]) -> bool,
}

/// Runs the kernel without a fault, in different orders of its threads: the results are the same.
pub fn all_is_well(emulate: impl Fn(Vec<Fault>, u64) -> Result<Outcome, Error>) {
    let mut first = None;
    for seed in 0..6 {
        let outcome = match emulate(Vec::new(), seed) {
            Ok(outcome) => outcome,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let c = first.get_or_insert_with(|| outcome.c.clone());
        assert!(*c == outcome.c, "seed {seed}: another result");
    }
}

/// Runs the kernel with each fault: none gets through.
pub fn all_are_caught(
    mutations: &[Mutation],
    emulate: impl Fn(Vec<Fault>, u64) -> Result<Outcome, Error>,
) {
    let mut missed = Vec::new();
    for mutation in mutations {
        let fault = Fault {
            instruction: mutation.instruction,
            change: mutation.change,
        };
        match (0..3).find_map(|seed| emulate(vec![fault], seed).err()) {
            Some(error) => {
                let text = error.to_string();
                let line = text.lines().next().unwrap_or_default();
                println!("{}: {line}", mutation.what);
            }
            None => missed.push(mutation.what),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:#?}");
}
