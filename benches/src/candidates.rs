//! What is compared: tilewise's plans, and its peers. A peer is optional: it is looked for at
//! run time, and left out with a reason where it is missing.

pub mod candidate;
pub mod cublaslt;
pub mod cublaslt_library;
pub mod planned;
pub mod triton;
