//! The commands.

pub mod bench;
mod capture;
mod case;
pub mod check;
mod crew;
mod devices;
mod layer;
pub mod measure;
pub mod members;
mod operations;
pub mod predict;
pub mod rank;
mod timer;
