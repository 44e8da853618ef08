//! Measures problems: plans every candidate, checks it, times it, and writes records.

pub mod arguments;
pub mod run;
