//! A model of the L2 and DRAM traffic of a tile order. It needs no GPU and no standard
//! library, and computes the same figures on every machine and in a web page.
//!
//! It has three levels, from the roughest to the finest:
//!
//! 1. [`block_loads`] counts the blocks of A and B that one wave touches, as Triton's
//!    matmul tutorial does in "L2 Cache Optimizations".
//! 2. [`estimate`] computes the bytes from DRAM in closed form, in well under a
//!    microsecond; [`choose`] takes the order that needs the fewest.
//! 3. [`traffic`] simulates every CTA, every step along K, and an L2 of two partitions.
//!    `docs/tile-order.md` checks it against the GPU's counters.
//!
//! All three call [`Raster::tile`](gpu_kernels::Raster::tile), the function that the
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
