//! What tilewise is measured against. Each peer is optional: found at run
//! time, and left out with a reason where it is missing.

pub mod cublaslt;
pub mod library;
pub mod triton;
