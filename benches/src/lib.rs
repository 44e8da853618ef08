//! Measures tilewise against cuBLASLt and Triton, and tile orders against each other.
//!
//! - All candidates run in one process, in turns and on the same data. Triton runs in a process
//!   of its own.
//! - A wrong result is reported and not timed.
//! - A time comes with the clock and the power that it was taken at.
//! - Times are medians with quartiles. Ratios are taken within a round, and their median is
//!   reported.
//!
//! The methods are those of Triton's `do_bench` (cold) and of CUTLASS's profiler (sustained).
//!
//! Each folder uses only those above it:
//!
//! | module | question it answers |
//! |---|---|
//! | [`error`], [`atomic_file`], [`text_table`], [`npy`] | what does everything need? |
//! | [`problem`] | what is computed, and how is it written on the command line? |
//! | [`measure`] | on which data, how, and on which machine is it timed, and is the result right? |
//! | [`modelled`] | what does the library choose, and what does the model of L2 say of it? |
//! | [`candidates`] | what is compared: tilewise's plans, cuBLASLt, Triton? |
//! | [`records`] | what is written down? |
//! | [`tables`] | how does a terminal show it? |
//! | [`runner`] | in which order is everything measured? |
//! | [`study`] | which tile order is fastest, and does the model know it? |
//! | [`sweep`] | which kernel is fastest, and what does the rule lose that does not know it? |
//! | [`rounding`] | how exact are products in f32? |
//! | [`page`] | how does that become a page for a browser? |
//! | [`tile_order`] | what does one tile order look like? |
//! | [`commands`], [`cli`] | what does the program do? |

pub mod atomic_file;
pub mod candidates;
pub mod cli;
pub mod commands;
pub mod error;
pub mod measure;
pub mod modelled;
pub mod npy;
pub mod page;
pub mod problem;
pub mod records;
pub mod rounding;
pub mod runner;
pub mod study;
pub mod sweep;
pub mod tables;
pub mod text_table;
pub mod tile_order;
