//! Tensor maps: the descriptions of matrices that TMA needs to copy boxes of them.
//!
//! A map consists of 128 opaque bytes that the backend encodes from the matrix's base,
//! shape and pitch (CUDA driver API, "Tensor Map Object Management"). Elements outside the
//! matrix read as zeros and are not written.

use gpu_kernels::DType;

use crate::tma::Planes;

/// An encoded map. The driver requires 64-byte alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct EncodedMap(pub(super) [u64; 16]);

impl EncodedMap {
    /// The encoded words, as [`TensorMaps`](gpu_kernels::TensorMaps) holds them.
    pub(crate) fn words(&self) -> [u64; 16] {
        self.0
    }
}

/// A matrix, or a number of them, as TMA sees it, without its address. Index 0 is the direction in which
/// elements are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorMapSpec {
    /// Element type.
    pub(crate) dtype: DType,
    /// Elements in each direction.
    pub(crate) dims: [u64; 2],
    /// Bytes from one line of contiguous elements to the next: a multiple of
    /// 16, below 2⁴⁰.
    pub(crate) pitch_bytes: u64,
    /// The third dimension, if there is one.
    pub(crate) planes: Option<Planes>,
    /// Elements that one copy moves in each direction, at most 256. Along the first
    /// direction, they have at most as many bytes as the swizzle spans.
    pub(crate) box_dims: [u32; 2],
    /// Bytes within which the swizzle permutes 16-byte chunks: 32, 64 or 128;
    /// 16 for none.
    pub(crate) swizzle_bytes: u32,
}
