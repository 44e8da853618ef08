//! The ladder of kernels, slowest and simplest first.

pub mod hopper;
pub mod naive;
pub mod pack;
pub mod placement;
pub mod reduce;
pub mod split;
pub mod tensor_core;
pub mod tiled;
