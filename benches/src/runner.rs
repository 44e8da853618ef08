//! Measures problems: plans every candidate, checks it, times it, and writes records.

pub mod bench_arguments;
pub mod run;
