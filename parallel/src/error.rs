//! All errors of the crate.

use std::io;

use tilewise::Layout;

use crate::rank_error::RankError;

/// Every error this crate returns.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A group without ranks.
    #[error("a group needs at least one device")]
    NoRanks,

    /// A GPU of the driver together with another kind of device.
    #[error(
        "rank 0 is {first} and rank {rank} is {other}; a group has GPUs of the driver, or none"
    )]
    MixedDevices {
        /// The device of rank 0.
        first: String,
        /// The first rank with another kind.
        rank: usize,
        /// Its device.
        other: String,
    },

    /// Two GPUs of the group cannot reach each other's memory.
    #[error(
        "{from} cannot access the memory of {to}; a group needs GPUs linked by NVLink or PCIe peer access"
    )]
    NoPeerAccess {
        /// The GPU that would access.
        from: String,
        /// The GPU that has the memory.
        to: String,
    },

    /// Not one matrix a rank.
    #[error("{argument}: {found} matrices for {ranks} ranks; give one for each")]
    Count {
        /// The argument.
        argument: &'static str,
        /// Number of matrices.
        found: usize,
        /// Number of ranks.
        ranks: usize,
    },

    /// A matrix with a shape, a layout or a device other than needed.
    #[error("{argument} of rank {rank} is {found}; accepted: {accepted}")]
    Operand {
        /// The argument.
        argument: &'static str,
        /// The rank.
        rank: usize,
        /// What it is.
        found: String,
        /// What would be accepted.
        accepted: String,
    },

    /// A call of the driver failed.
    #[error("{call} failed with CUDA error {code} ({name})")]
    Driver {
        /// The function.
        call: &'static str,
        /// Its result.
        code: u32,
        /// The name of the result.
        name: String,
    },

    /// A call of NCCL failed.
    #[error("{call} failed ({name})")]
    Nccl {
        /// The function.
        call: &'static str,
        /// The name of its result.
        name: String,
    },

    /// [`Engine::Nccl`](crate::Engine::Nccl) cannot run the operation.
    #[error(
        "NCCL cannot run this operation: {why}; accepted: on one host, Engine::Auto or Engine::Peer"
    )]
    NoNccl {
        /// What is in its way.
        why: String,
    },

    /// A run failed half-way, so that ranks wait for steps that were never enqueued or have
    /// received sums of different runs. The plan cannot run any more.
    #[error("an earlier run of this plan failed ({why}); make a new plan")]
    Abandoned {
        /// The error of that run.
        why: String,
    },

    /// The stream of a rank captures a CUDA graph, which work of several ranks cannot be part of.
    /// The graph of a member's run would hold waits that are right for one run alone; that of a
    /// group's run would need the streams of all ranks in one capture.
    #[error(
        "the stream of rank {rank} captures a graph, and work of several ranks cannot be captured; \
         plan and run before the capture, or after it"
    )]
    Capturing {
        /// The rank.
        rank: usize,
    },

    /// A rank that its group does not have.
    #[error("rank is {rank} of {ranks}; accepted: less than the number of ranks")]
    NoSuchRank {
        /// The rank.
        rank: usize,
        /// Number of ranks.
        ranks: usize,
    },

    /// A call of the operating system failed.
    #[error("{what} failed: {why}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        why: String,
    },

    /// Something went wrong between processes.
    #[error(transparent)]
    Rank(#[from] RankError),

    /// An error of the library.
    #[error(transparent)]
    Tilewise(#[from] tilewise::Error),
}

impl Error {
    /// An operand with a layout that does not fit.
    pub(crate) fn operand(
        argument: &'static str,
        rank: usize,
        found: Layout,
        accepted: impl Into<String>,
    ) -> Self {
        Error::Operand {
            argument,
            rank,
            found: found.to_string(),
            accepted: accepted.into(),
        }
    }

    /// A call of the operating system that failed.
    pub(crate) fn system(what: impl Into<String>, why: &io::Error) -> Self {
        Error::System {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
