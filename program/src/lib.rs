//! GEMM over several GPUs, as data: which rank copies and multiplies which rows, in which order,
//! and how long that takes by an estimate. It needs no GPU and no standard library, and says the
//! same on every machine and in a web page.
//!
//! | module | question it answers |
//! |---|---|
//! | [`program`] | which step waits for which, and do no two meet in memory? |
//! | [`estimate`] | when does each step run, and how many chunks are best? |
//! | [`predict`] | what runs when for a layer of a model, before anything is planned? |
//!
//! `tilewise-parallel` runs these programs, and its plans choose by this estimate.

#![no_std]
#![warn(missing_docs)]

extern crate alloc;

pub mod estimate;
pub mod predict;
pub mod program;
