//! NCCL's collectives between GPUs. The library is opened at run time.

mod call;
mod group;
mod rank;

pub(crate) use group::{Exchange, Nccl};
pub(crate) use rank::Communicator;
