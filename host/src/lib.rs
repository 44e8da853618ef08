//! tilewise. (Stub.)

pub mod l2;
