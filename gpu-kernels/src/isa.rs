//! PTX instructions as Rust functions, one family a file.
//!
//! Each wrapper is a line or two of `asm!` and names its section of the PTX
//! ISA. They carry no policy: a kernel that reads well is built from them.

pub mod arithmetic;
pub mod cluster;
pub mod convert;
pub mod cp_async;
pub mod dependency;
pub mod flag;
pub mod global;
pub mod hint;
pub mod mbarrier;
pub mod mma;
pub mod shared;
pub mod thread;
pub mod tma;
pub mod warpgroup;
pub mod wgmma;
