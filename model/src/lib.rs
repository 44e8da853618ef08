//! What a tile order asks of L2, and what L2 then asks of DRAM, by arithmetic alone: no
//! GPU, no standard library, the same figures on every machine and in a web page.
//!
//! Three answers, from the roughest to the finest:
//!
//! 1. [`block_loads`]: how many blocks of A and B does one wave touch? The count in
//!    Triton's matmul tutorial, "L2 Cache Optimizations".
//! 2. [`estimate`]: bytes from DRAM in closed form, in well under a microsecond; with
//!    [`choose`], which takes the order that needs the fewest.
//! 3. [`traffic`]: the same bytes by simulation of every CTA, every step along K, and an
//!    L2 of two partitions; checked against the GPU's counters in `docs/tile-order.md`.
//!
//! All call [`TileOrder::tile`](gpu_kernels::TileOrder::tile), the function that the
//! kernels call. A *wave* is the set of consecutive tile ids that run at once; a *block* is
//! one step along K of one operand: BLOCK_M×BLOCK_K of A or BLOCK_K×BLOCK_N of B.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bound;
mod cache;
mod choose;
mod estimate;
pub mod gpu;
mod replay;
mod simulate;
mod wave;
mod workload;

pub use bound::{Bound, Limit, bound};
pub use choose::choose;
pub use estimate::estimate;
pub use replay::{Replayed, replay};
pub use simulate::traffic;
pub use wave::{WaveLoads, block_loads};
pub use workload::{Machine, Traffic, Workload};
