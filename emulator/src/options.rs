//! Options of an emulated launch.

use super::instruction::Instruction;

/// How to run a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether memory accesses are checked (see [`Check`](super::Check)). Deadlocks
    /// and divergence are found in any case.
    pub checks: bool,
    /// Chooses one of the possible orders of events. With 0 a thread runs until it must
    /// wait, then the next thread runs, and copies land as late as possible. With any other
    /// seed the order is random, and a thread may give way though it could go on. A seed
    /// repeats its order on any number of workers, because clusters do not depend on each
    /// other; where clusters wait for each other's flags, it repeats on one worker only.
    pub seed: u64,
    /// Clusters that run at once. A kernel whose CTAs wait for each other needs a slot for
    /// each cluster of those CTAs.
    pub slots: u32,
    /// Host threads.
    pub workers: usize,
    /// Whether an earlier grid still runs when this one starts, as under
    /// programmatic dependent launch: nothing may touch global memory before
    /// `griddepcontrol.wait`.
    pub overlaps: bool,
    /// Whether to keep the requests to L2 ([`Counts::requests`](super::Counts)).
    pub trace: bool,
    /// The fault to inject.
    pub faults: Vec<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            checks: true,
            seed: 0,
            slots: 4,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            overlaps: false,
            trace: false,
            faults: Vec::new(),
        }
    }
}

/// A fault changes the arguments of an instruction, or drops the instruction. Tests use
/// faults to show that the checks find them.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The instruction that the fault changes.
    pub instruction: Instruction,
    /// Called each time before the instruction executes. It may change the arguments, which
    /// are in the order of the function in `isa`; `false` drops the instruction.
    pub change: fn(&Site, &mut [u64]) -> bool,
}

/// The place where an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Linear index of the CTA.
    pub cta: u32,
    /// Index of the thread in its CTA.
    pub thread: u32,
    /// The number of times that this thread has executed this instruction before.
    pub occurrence: u32,
}
