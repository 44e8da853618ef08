//! The counts of a launch: instructions, bytes, bank conflicts, requests to L2.

use super::instruction::Instruction;

/// A request to L2: a box that TMA copies, or a 128-byte line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The time of the request: the instructions that the threads of the cluster had executed
    /// before, divided by the number of threads.
    pub time: u64,
    /// Linear index of the CTA that makes the request.
    pub cta: u32,
    /// Global address of the first byte.
    pub address: u64,
    /// Bytes inside the tensor; 128 for a line.
    pub bytes: u32,
    /// Whether the request is a write.
    pub writes: bool,
}

/// Counts of one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions of each instruction, by thread, in the order of
    /// [`Instruction::ALL`].
    executed: Vec<u64>,
    /// Bytes that threads and copy engines read from global memory.
    pub global_read_bytes: u64,
    /// Bytes that threads and copy engines wrote to global memory.
    pub global_written_bytes: u64,
    /// Accesses of a warp to shared memory (`ld`, `st`, and each matrix of
    /// `ldmatrix` and `stmatrix`).
    pub shared_accesses: u64,
    /// Cycles beyond one that bank conflicts added to these accesses.
    pub bank_conflicts: u64,
    /// Multiplications and additions of the tensor cores.
    pub tensor_operations: u64,
    /// Requests to L2 in the order of time, if [`Options::trace`](super::Options) asks for them.
    pub requests: Vec<Request>,
}

impl Counts {
    pub(super) fn count(&mut self, instruction: Instruction) {
        if self.executed.is_empty() {
            self.executed = vec![0; Instruction::ALL.len()];
        }
        self.executed[instruction as usize] += 1;
    }

    /// The number of times that threads executed `instruction`.
    pub fn executed(&self, instruction: Instruction) -> u64 {
        self.executed
            .get(instruction as usize)
            .copied()
            .unwrap_or(0)
    }

    /// Executions of all instructions.
    pub fn instructions(&self) -> u64 {
        self.executed.iter().sum()
    }

    pub(super) fn add(&mut self, other: Counts) {
        if self.executed.is_empty() {
            self.executed = other.executed;
        } else {
            for (mine, theirs) in self.executed.iter_mut().zip(other.executed) {
                *mine += theirs;
            }
        }
        self.global_read_bytes += other.global_read_bytes;
        self.global_written_bytes += other.global_written_bytes;
        self.shared_accesses += other.shared_accesses;
        self.bank_conflicts += other.bank_conflicts;
        self.tensor_operations += other.tensor_operations;
        self.requests.extend(other.requests);
    }
}
