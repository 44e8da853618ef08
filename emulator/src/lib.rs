//! The emulator: runs kernels, TMA and wgmma included, on the CPU, and checks every
//! memory access and every wait.
//!
//! A kernel is an ordinary Rust function that reaches the GPU only through the functions of
//! `gpu_kernels::isa`. Compiled for the host, each of those acts on a machine made of plain
//! data, so the tests run the very source that a GPU runs.
//!
//! | module | what |
//! |---|---|
//! | [`launch`](launch()) | a grid: clusters over slots, slots over host threads |
//! | `fiber` | a thread: a coroutine that runs until it must wait |
//! | `machine` | a cluster: its state, and what each instruction does to it |
//! | [`semantics`] | what instructions compute, as plain functions |
//! | [`Memory`] | global memory and its shadow |
//! | `shadow`, `clock`, `agent` | which agent has accessed what, and what happened before what |
//! | [`Report`], [`Check`] | what a kernel did wrong |
//! | [`Counts`] | what it did |
//! | [`Options`], [`Fault`] | which order of events, what to check, which fault to inject |
//!
//! It resembles Compute Sanitizer (memcheck, racecheck, synccheck) in what it finds,
//! and loom in how it explores orders of events. `docs/emulator.md` says how far
//! its answers go.

mod agent;
mod clock;
mod counts;
mod fiber;
mod instruction;
mod launch;
pub mod machine;
mod memory;
mod options;
mod random;
mod report;
pub mod semantics;
mod shadow;
mod source;

pub use counts::{Counts, Request};
pub use instruction::Instruction;
pub use launch::{Error, Grid, launch, launch_watched};
pub use memory::{Memory, NoSuchMemory};
pub use options::{Fault, Options, Site};
pub use report::{Address, Check, Report};
