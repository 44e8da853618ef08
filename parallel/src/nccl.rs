//! NCCL's collectives between GPUs. The library is opened at run time.

mod call;
mod closing;
mod group;
mod rank;
mod sharing;

pub(crate) use closing::Closing;
pub(crate) use group::{Exchange, Nccl};
pub(crate) use rank::Communicator;
pub(crate) use sharing::{SHARING, shares_gpus};
