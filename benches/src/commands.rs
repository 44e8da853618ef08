//! What the program does, a file a command.

pub mod bench;
pub mod host_cost;
pub mod matmul;
pub mod order;
pub mod page;
pub mod rounding;
pub mod rows;
pub mod study;
pub mod sweep;
