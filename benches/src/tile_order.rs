//! One tile order of one product: what the model of L2 says of it, and pictures.

pub mod analysis;
pub mod picture;
