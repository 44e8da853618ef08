//! Runs the kernels on the CPU.

pub mod semantics;
