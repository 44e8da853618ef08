//! The measuring side of tilewise: what is compared, how, and how it is
//! reported.
//!
//! Principles: everything compared runs in one process, in turns, on the same
//! data; a wrong result is reported and not timed; a number comes with the
//! clock and power it was taken at; medians with quartiles; ratios within a
//! round, then their median.
//! Its nearest relatives are Triton's `do_bench` (cold) and CUTLASS's
//! profiling methodology (sustained).
//!
//! | module | question it answers |
//! |---|---|
//! | [`cli`], [`choice`], [`shape`] | what was asked for? |
//! | [`mod@bench`] | what does `bench` do with and without a GPU? |
//! | [`suite`] | which lists of problems have a name? |
//! | [`runner`] | in which order is everything measured? |
//! | [`workload`], [`inputs`], [`check`] | on which data, and is the result right? |
//! | [`candidate`], [`peers`] | what is compared? |
//! | [`regime`], [`batch`], [`graph`], [`turns`], [`timing`], [`memory`] | how is it timed? |
//! | [`watch`] | how long may it take? |
//! | [`power`], [`peak`] | at which clock, and how far from the limit? |
//! | [`stats`], [`record`], [`report`], [`table`], [`summary`], [`regret`], [`date`], [`file`](mod@file) | what is written down? |
//! | [`comparison`] | what is the order of tiles worth? |
//! | [`study`] | which tile order is best, and does the model know it? |
//! | [`page`] | how does that become a page for a browser? |
//! | [`model`], [`order`] | what can be said, and drawn, without a GPU? |
//! | [`host_cost`] | what does a launch cost on the host? |
//! | [`matmul`], [`npy`] | how are two files multiplied? |

pub mod batch;
pub mod bench;
pub mod candidate;
pub mod check;
pub mod choice;
pub mod cli;
pub mod comparison;
pub mod date;
pub mod device;
pub mod error;
pub mod file;
pub mod graph;
pub mod host_cost;
pub mod inputs;
pub mod matmul;
pub mod memory;
pub mod model;
pub mod npy;
pub mod order;
pub mod page;
pub mod peak;
pub mod peers;
pub mod power;
pub mod record;
pub mod regime;
pub mod regret;
pub mod report;
pub mod runner;
pub mod shape;
pub mod stats;
pub mod study;
pub mod suite;
pub mod summary;
pub mod table;
pub mod timing;
pub mod turns;
pub mod watch;
pub mod workload;
