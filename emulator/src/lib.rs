//! The emulator: runs kernels, TMA and wgmma included, on the CPU, and checks every
//! memory access and every wait.
//!
//! A kernel is an ordinary Rust function that reaches the GPU only through the functions of
//! `gpu_kernels::isa`. Compiled for the host, each of those acts on a machine made of plain
//! data, so the tests run the very source that a GPU runs.
//!
//! | module | contents |
//! |---|---|
//! | [`launch`](launch()) | a grid: clusters over slots, slots over host threads |
//! | `fiber` | a thread: a coroutine that runs until it must wait |
//! | `machine` | a cluster: its state, and the effect of each instruction on it |
//! | [`semantics`] | the results of instructions, as plain functions |
//! | [`Memory`] | global memory and its shadow |
//! | `shadow`, `clock`, `agent` | which agent accessed which memory, and which accesses happened before which |
//! | [`Report`], [`Check`] | the rules that a kernel broke |
//! | [`Counts`] | the instructions and bytes of a launch |
//! | [`Options`], [`Fault`] | the order of events, the checks, and the fault to inject |
//!
//! The emulator finds the faults that Compute Sanitizer finds (memcheck, racecheck,
//! synccheck), and explores orders of events as loom does. `docs/emulator.md` says how far
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
