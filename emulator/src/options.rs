//! How a launch is emulated.

use super::instruction::Instruction;

/// How to run a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether memory accesses are checked (see [`Check`](super::Check)). Deadlocks
    /// and divergence are found in any case.
    pub checks: bool,
    /// Which of the possible orders of events happens. With 0 a thread runs until
    /// it must wait, the others in turn, and copies land as late as possible;
    /// any other seed draws at random, also where a thread could go on. Clusters do
    /// not depend on each other, so a seed does the same again on any number of
    /// workers; but where they wait for each other's flags, on one only.
    pub seed: u64,
    /// Clusters that run at once. A kernel whose CTAs wait for each other needs as
    /// many as do so.
    pub slots: u32,
    /// Host threads.
    pub workers: usize,
    /// Whether an earlier grid still runs when this one starts, as under
    /// programmatic dependent launch: nothing may touch global memory before
    /// `griddepcontrol.wait`.
    pub overlaps: bool,
    /// Whether to keep the requests to L2 ([`Counts::requests`](super::Counts)).
    pub trace: bool,
    /// What to break on purpose.
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

/// A fault: changes the arguments of an instruction, or drops it. For tests that
/// show that the checks find it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The instruction it is about.
    pub instruction: Instruction,
    /// Is asked each time, and may change the arguments, in the order of the
    /// function in `isa`; `false` drops the instruction.
    pub change: fn(&Site, &mut [u64]) -> bool,
}

/// Where an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Linear index of the CTA.
    pub cta: u32,
    /// Index of the thread in its CTA.
    pub thread: u32,
    /// How often this thread has executed this instruction before.
    pub occurrence: u32,
}
