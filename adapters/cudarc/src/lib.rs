#![doc = include_str!("../README.md")]

mod blas;
mod config;
mod error;
mod inputs;
mod slice;

pub use cudarc;
pub use tilewise;

pub use blas::Blas;
pub use config::{Activation, MatmulConfig};
pub use error::Error;
pub use inputs::Inputs;
pub use slice::{MatrixSlice, MatrixSliceMut, Slice, SliceMut};
