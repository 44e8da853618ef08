//! The commands.

pub mod bench;
mod case;
pub mod check;
mod crew;
mod devices;
pub mod members;
mod operations;
pub mod predict;
pub mod rank;
mod timer;
