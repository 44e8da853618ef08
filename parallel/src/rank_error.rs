//! [`RankError`]: what goes wrong between processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What went wrong between the members of a group, each a process or a thread of its own. All
/// members return the same error, but where one has failed by itself: it returns its own error, and
/// the others [`RankError::Failed`]. (Where two failures happen at once, members may return either.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// A rank did not join in time.
    #[error("rank {rank} did not join within {limit:?}")]
    Missing {
        /// The rank.
        rank: usize,
        /// The limit.
        limit: Duration,
    },

    /// A rank has ended, or its connection has broken.
    #[error("rank {rank} is lost: {why}")]
    Lost {
        /// The rank.
        rank: usize,
        /// What was seen of it.
        why: String,
    },

    /// A rank did not do its part in time.
    #[error("rank {rank} did not {what} within {limit:?}")]
    Late {
        /// The rank.
        rank: usize,
        /// What it should have done.
        what: String,
        /// The limit.
        limit: Duration,
    },

    /// A rank has returned an error of its own.
    #[error("rank {rank} failed: {why}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its error.
        why: String,
    },

    /// A rank differs from the others in what has to be the same.
    #[error("{argument} of rank {rank} is {found}; accepted: {accepted}")]
    Disagreement {
        /// What differs.
        argument: String,
        /// The rank.
        rank: usize,
        /// What it has.
        found: String,
        /// What the others have, or may have.
        accepted: String,
    },
}

impl RankError {
    /// The rank at fault.
    pub fn rank(&self) -> usize {
        match self {
            RankError::Missing { rank, .. }
            | RankError::Lost { rank, .. }
            | RankError::Late { rank, .. }
            | RankError::Failed { rank, .. }
            | RankError::Disagreement { rank, .. } => *rank,
        }
    }
}
