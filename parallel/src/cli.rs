//! The commands.

pub mod bench;
mod case;
pub mod check;
mod devices;
mod nccl;
pub mod predict;
mod timer;
