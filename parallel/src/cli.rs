//! The commands.

pub mod bench;
mod case;
pub mod check;
mod devices;
mod operations;
pub mod predict;
mod timer;
