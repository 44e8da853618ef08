//! The rules that the emulator checks, and the report of a broken rule.

use std::fmt;

use super::instruction::Instruction;

/// A rule of the PTX ISA that a kernel can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Check {
    /// An access outside every allocation, or outside the CTA's shared memory.
    OutOfBounds,
    /// An address that is not a multiple of the alignment that the instruction requires.
    Misaligned,
    /// A read of memory, or a use of an mbarrier, that nothing has written.
    Uninitialized,
    /// Two accesses, at least one of them a write, that nothing orders.
    DataRace,
    /// An access by TMA or wgmma to bytes that ordinary instructions wrote; the accesses
    /// are ordered, but without a `fence.proxy.async` between them.
    MissingProxyFence,
    /// Registers of an accumulator used while `wgmma` owns them, or given to `wgmma`
    /// without a `wgmma.fence`.
    AccumulatorInUse,
    /// Shared memory written while a `wgmma` that the warpgroup has not waited for reads it.
    OperandOverwritten,
    /// The bytes that land differ from the bytes that an mbarrier expects.
    ByteCount,
    /// Threads that must meet at an instruction do not meet.
    BarrierDivergence,
    /// Every thread waits.
    Deadlock,
    /// A CTA that ends while other CTAs, or copies, use its shared memory, or may still do so.
    PeerGone,
    /// Arguments that the instruction does not allow.
    InvalidArgument,
    /// Global memory touched before `griddepcontrol.wait`.
    DependencyNotAwaited,
    /// The kernel executed `trap`, or panicked.
    Trap,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address in global memory.
    Global(u64),
    /// An address in the shared memory of CTA `cta` of the grid.
    Shared {
        /// Index of the CTA whose memory it is.
        cta: u32,
        /// The address in it.
        address: u32,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Global(address) => write!(f, "global {address:#x}"),
            Address::Shared { cta, address } => write!(f, "shared {address:#x} of CTA {cta}"),
        }
    }
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// The rule.
    pub check: Check,
    /// Linear index of the CTA in the grid.
    pub cta: u32,
    /// Index of the thread in its CTA; `None` for a copy engine.
    pub thread: Option<u32>,
    /// The instruction that the thread executed, or that started the copy.
    pub instruction: Option<Instruction>,
    /// The address that it accessed.
    pub address: Option<Address>,
    /// What happened, in words.
    pub detail: String,
    /// The lines of source from the instruction outwards, innermost first, as far
    /// as debug information tells.
    pub source: Vec<String>,
    /// The seed of the order of events; a run with the same seed repeats the order.
    pub seed: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}, CTA {}", self.check, self.kernel, self.cta)?;
        if let Some(thread) = self.thread {
            write!(f, ", thread {thread}")?;
        }
        if let Some(instruction) = self.instruction {
            write!(f, ", at {}", instruction.name())?;
        }
        if let Some(address) = self.address {
            write!(f, ", {address}")?;
        }
        write!(f, ": {}", self.detail)?;
        for line in &self.source {
            write!(f, "\n    {line}")?;
        }
        write!(f, "\n    (seed {})", self.seed)
    }
}

impl std::error::Error for Report {}
