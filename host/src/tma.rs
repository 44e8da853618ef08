//! How TMA sees the operands of a hopper kernel. This module alone decides which
//! matrices TMA can read, and the shape of every box that it copies.
//!
//! TMA copies boxes of a matrix whose elements are contiguous in one direction
//! and whose lines follow each other at a constant pitch in the other direction (PTX ISA,
//! "Tensors in the `cp.async.bulk.tensor` instructions"; CUDA driver API,
//! `cuTensorMapEncodeTiled`). All operands are stored with the 128-byte swizzle,
//! so a box is W = 128 bytes wide: 64 elements of 2 bytes, or 32 elements of 4 bytes:
//!
//! | operand | contiguous along | dims | box |
//! |---|---|---|---|
//! | A | K | K, M | W, BLOCK_M / cluster.n |
//! | A | M | M, K | W, [`box_depth`] |
//! | B | K | K, N | W, BLOCK_N / cluster.m |
//! | B | N | N, K | W, [`box_depth`] |
//! | C | N | N, M | W, 64 (16 where a cluster splits K) |
//! | C | M | M, N | W, W |
//!
//! Where BLOCK_N is no multiple of 64, C has a second map, whose box has the columns past the last
//! multiple of 64 ([`last_c_box`]). In shared memory the rows of a C along N are 128 bytes apart all
//! the same.
//!
//! `wgmma` reads 4-byte elements from shared memory only if they are contiguous along K (PTX ISA,
//! "`wgmma`", "Matrix major-ness"), so no kernel reads TF32 of B along N, and kernels that read A
//! along M load it to registers. The maps of TF32 operands have the type TFLOAT32, with which the
//! copy engine rounds f32 to nearest even on the way.
//! Operands that TMA cannot read are packed: [`select`](crate::select).
//!
//! The CTAs of a cluster that need the same rows of A, or columns of B, each fetch a
//! part and multicast it, hence the divisions in the table. Short operands take shorter
//! boxes ([`box_rows`]).
//!
//! [`box_depth`]: gpu_kernels::kernels::hopper::box_depth
//! [`box_rows`]: gpu_kernels::kernels::hopper::box_rows

mod boxes;
mod global_tensor;
#[cfg(test)]
mod tests;

pub use boxes::{a_box, b_box, c_box, last_a_box, last_b_box, last_c_box};
pub use global_tensor::{GlobalTensor, Planes, Unreadable};

/// Addresses and pitches must be multiples of this many bytes.
pub const ALIGNMENT: u64 = 16;

/// Bytes across a box: the span of the 128-byte swizzle.
pub(crate) const BOX_BYTES: u32 = 128;
