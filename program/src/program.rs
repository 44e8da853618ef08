//! Programs: which step of which rank waits for which.
//!
//! A program is data. It says what each rank copies and multiplies, in which order, and what
//! each step waits for; it holds no address and no device. `tilewise-parallel` enqueues it on
//! GPUs, or runs it step by step, [`crate::estimate`] adds up its times, and
//! [`Program::check`] proves that no two steps meet in memory.
//!
//! ```text
//! all-gather + GEMM, 2 ranks            GEMM + reduce-scatter, 2 ranks
//!
//! rank 0  compute │ A₀·B₀ │ A₁·B₀ │     rank 0  compute │ rows of 1 │ own rows + received │
//!         copy    │ A₁ ←──┤                     copy        └──→ rank 1 ─┤
//! rank 1  compute │ A₁·B₁ │ A₀·B₁ │     rank 1  compute │ rows of 0 │ own rows + received │
//!         copy    │ A₀ ←──┤                     copy        └──→ rank 0 ─┤      time ─→
//! ```

mod all_gather;
mod check;
mod pushed;
mod reduce_scatter;
mod shards;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

pub use all_gather::all_gather_matmul;
pub use check::Conflict;
pub use pushed::{all_gather_matmul_pushed, matmul_all_reduce_pushed};
pub use reduce_scatter::{matmul_all_reduce, matmul_reduce_scatter};
pub use shards::Shards;

/// What the ranks compute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// All-gather + GEMM: [`all_gather_matmul`].
    AllGather,
    /// GEMM + reduce-scatter: [`matmul_reduce_scatter`].
    ReduceScatter,
    /// GEMM + all-reduce: [`matmul_all_reduce`].
    AllReduce,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] = [
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllReduce,
    ];

    /// The program of the operation, with the rows of each rank in at most `chunks` launches.
    pub fn program(self, rows: &Shards, chunks: usize) -> Program {
        match self {
            Operation::AllGather => all_gather_matmul(rows, chunks),
            Operation::ReduceScatter => matmul_reduce_scatter(rows, chunks),
            Operation::AllReduce => matmul_all_reduce(rows, chunks),
        }
    }

    /// The program of the operation where ranks are processes, which write into memory of the
    /// plan on other ranks and touch nothing else there.
    pub fn pushed_program(self, rows: &Shards, chunks: usize) -> Program {
        match self {
            Operation::AllGather => all_gather_matmul_pushed(rows, chunks),
            Operation::ReduceScatter => matmul_reduce_scatter(rows, chunks),
            Operation::AllReduce => matmul_all_reduce_pushed(rows, chunks),
        }
    }
}

/// A matrix that steps read and write, in the memory of `rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The caller's A.
    A {
        /// Its rank.
        rank: usize,
    },
    /// The caller's B.
    B {
        /// Its rank.
        rank: usize,
    },
    /// The caller's C.
    C {
        /// Its rank.
        rank: usize,
    },
    /// What `rank` copies of the A of `from`.
    Gathered {
        /// Its rank.
        rank: usize,
        /// The rank that A comes from.
        from: usize,
    },
    /// The sums that `rank` makes at a hop of a ring, for the next rank.
    Made {
        /// Its rank.
        rank: usize,
        /// Number of products in the sums, less one.
        hop: usize,
    },
    /// The sums that `rank` receives after a hop of a ring.
    Received {
        /// Its rank.
        rank: usize,
        /// Number of products in the sums, less one.
        hop: usize,
    },
    /// The finished sums that `rank` receives of the rows of `from`.
    Finished {
        /// Its rank.
        rank: usize,
        /// The rank that owns the rows.
        from: usize,
    },
}

impl Buffer {
    /// The rank whose memory holds it.
    pub fn rank(self) -> usize {
        match self {
            Buffer::A { rank }
            | Buffer::B { rank }
            | Buffer::C { rank }
            | Buffer::Gathered { rank, .. }
            | Buffer::Made { rank, .. }
            | Buffer::Received { rank, .. }
            | Buffer::Finished { rank, .. } => rank,
        }
    }
}

/// Some rows of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The buffer.
    pub buffer: Buffer,
    /// Its rows.
    pub rows: Range<usize>,
}

impl Part {
    /// `rows` of `buffer`.
    pub fn new(buffer: Buffer, rows: Range<usize>) -> Self {
        Part { buffer, rows }
    }

    /// Whether both have a row in common.
    fn meets(&self, other: &Part) -> bool {
        self.buffer == other.buffer
            && self.rows.start < other.rows.end
            && other.rows.start < self.rows.end
    }
}

/// Steps of one rank and one queue run one after the other, in the order of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Products: the stream of the device, on which the caller's own work is, too.
    Compute,
    /// Every other product. Its CTAs start as those of the product before finish, SM by SM,
    /// where one stream would wait for the last.
    Aside,
    /// Copies between ranks, by the copy engines.
    Copy,
    /// Copies from the plan's memory into C, on one rank.
    Local,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing: what the caller enqueued before the run has finished.
    Start,
    /// Nothing: what the caller enqueues after the run may begin.
    End,
    /// Copies rows.
    Copy {
        /// What is read.
        from: Part,
        /// What is written: as many rows.
        to: Part,
    },
    /// Multiplies rows of A with the rank's B, and adds `source`.
    Product {
        /// The rows of A.
        a: Part,
        /// What is added to the product.
        source: Option<Part>,
        /// What is written.
        c: Part,
        /// Whether this is the last product of the sum, so that it has the bias and the
        /// activation.
        is_last: bool,
    },
}

/// One step of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rank that runs it.
    pub rank: usize,
    /// Its queue.
    pub queue: Queue,
    /// Earlier steps of other queues that it waits for, by their index.
    pub after: Vec<usize>,
    /// What it does.
    pub work: Work,
}

/// How the products of each rank take turns.
struct Turns {
    next_queue: Vec<Queue>,
    /// The last product in [`Queue::Aside`].
    last_aside: Vec<Option<usize>>,
}

impl Turns {
    fn new(ranks: usize) -> Self {
        Turns {
            next_queue: vec![Queue::Compute; ranks],
            last_aside: vec![None; ranks],
        }
    }
}

/// The steps of all ranks, each after those that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Number of ranks.
    pub ranks: usize,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Program {
    /// A program without steps.
    fn new(ranks: usize) -> Self {
        let steps = Vec::new();
        Program { ranks, steps }
    }

    /// Appends a step, and returns its index.
    fn push(&mut self, rank: usize, queue: Queue, after: Vec<usize>, work: Work) -> usize {
        self.steps.push(Step {
            rank,
            queue,
            after,
            work,
        });
        self.steps.len() - 1
    }

    /// Appends the start of every rank, in order: rank r starts with step r.
    fn start_all(&mut self) {
        for rank in 0..self.ranks {
            self.push(rank, Queue::Compute, Vec::new(), Work::Start);
        }
    }

    /// Appends a product to the queue of its rank that did not get the last one.
    fn multiply(
        &mut self,
        turns: &mut Turns,
        rank: usize,
        mut after: Vec<usize>,
        product: Work,
    ) -> usize {
        let queue = turns.next_queue[rank];
        if queue == Queue::Compute {
            turns.next_queue[rank] = Queue::Aside;
            return self.push(rank, queue, after, product);
        }
        turns.next_queue[rank] = Queue::Compute;
        if after.is_empty() && turns.last_aside[rank].is_none() {
            // What it would wait for otherwise waits for this rank's start.
            after.push(rank);
        }
        let step = self.push(rank, queue, after, product);
        turns.last_aside[rank] = Some(step);
        step
    }

    /// The last product aside, if it writes the caller's C. (Where it makes a sum for the next
    /// rank, a copy is behind it.)
    fn last_of_c(&self, turns: &Turns, rank: usize) -> Option<usize> {
        turns.last_aside[rank]
            .filter(|&step| matches!(self.steps[step].work, Work::Product { is_last: true, .. }))
    }

    /// For each step, whether a step waits for it for which `counts` holds: it is given the step
    /// that waits, and the one that it waits for.
    pub fn awaited(&self, counts: impl Fn(&Step, &Step) -> bool) -> Vec<bool> {
        let mut awaited = vec![false; self.steps.len()];
        for step in &self.steps {
            for &before in &step.after {
                awaited[before] |= counts(step, &self.steps[before]);
            }
        }
        awaited
    }
}
