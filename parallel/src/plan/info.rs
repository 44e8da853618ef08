//! [`PlanInfo`].

use std::time::Duration;

use crate::options::Engine;

/// What a plan will do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// How ranks exchange rows: by copies or by NCCL.
    pub engine: Engine,
    /// Number of launches for the rows of one rank.
    pub chunks: usize,
    /// Bytes of memory that the plan holds, on all ranks together, without the workspaces of its
    /// products.
    pub workspace_bytes: u64,
    /// The estimated time of a run, at the GPUs' highest clock; 0 on the CPU.
    pub estimate: Duration,
    /// The estimated time without any copy and any waiting.
    pub products: Duration,
}
