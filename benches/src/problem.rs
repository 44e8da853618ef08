//! What is computed, as it is written on the command line.

pub mod names;
pub mod shape;
pub mod spec;
pub mod suite;
