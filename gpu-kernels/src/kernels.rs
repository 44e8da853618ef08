//! The ladder of kernels, slowest and simplest first.

pub mod naive;
pub mod tensor_core;
