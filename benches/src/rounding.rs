//! How exact products in f32 are: the errors of every precision and of cuBLAS, on ten kinds of
//! data and from shallow to deep.

pub mod data;
pub mod errors;
pub mod rounding_arguments;
