//! The commands.

pub mod bench;
mod case;
pub mod check;
mod devices;
pub mod predict;
mod timer;
