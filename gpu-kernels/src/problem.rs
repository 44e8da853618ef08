//! The parameters of a launch: `C = A · B`, with A M×K, B K×N and C M×N.
//!
//! [`GemmParams`] crosses from host to device by value, as the one parameter
//! of every entry point, so its layout is `repr(C)` and holds plain integers
//! only. The host builds it from checked views; a kernel trusts it.

use crate::order::TileOrder;
use crate::schedule::Schedule;

/// Element type of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OutputType {
    /// The stored type of A and B (f32 for TF32).
    Input = 0,
    /// f32, whatever the inputs are.
    F32 = 1,
}

/// One matrix in device memory: element `(row, col)` lies at
/// `address + (row · row_stride + col · col_stride) · size_of(element)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TensorRef {
    /// Device address of element (0, 0).
    pub address: u64,
    /// Elements between (r, c) and (r + 1, c). Zero repeats a row (inputs only).
    pub row_stride: u64,
    /// Elements between (r, c) and (r, c + 1). Zero repeats a column (inputs only).
    pub col_stride: u64,
}

/// The one parameter of every entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct GemmParams {
    /// A, M×K.
    pub a: TensorRef,
    /// B, K×N.
    pub b: TensorRef,
    /// C, M×N. No two elements share an address.
    pub c: TensorRef,
    /// Device address of three consecutive 128-byte tensor maps, for A, B and
    /// C in that order, aligned to 64 bytes; 0 for kernels that use no TMA.
    pub tensor_maps: u64,
    /// Device address of [`stream_k_bytes`](crate::KernelInfo::stream_k_bytes)
    /// for each of `stream_k_ctas` CTAs, aligned to 128 bytes and all zero before the
    /// first launch; 0 where no tile is shared.
    pub workspace: u64,
    /// Rows of A and C; at most [`GemmParams::MAX_DIM`].
    pub m: u32,
    /// Columns of B and C; at most [`GemmParams::MAX_DIM`].
    pub n: u32,
    /// Columns of A and rows of B; at most [`GemmParams::MAX_DIM`].
    pub k: u32,
    /// Element type of C.
    pub output: OutputType,
    /// The order of the tiles: which tile a linear id means.
    pub order: TileOrder,
    /// The assignment of tiles to CTAs: which ids one CTA runs.
    pub schedule: Schedule,
    /// Nonzero when C can be written through its tensor map: unit column
    /// stride; base, row pitch and row length multiples of 16 bytes. (A TMA store
    /// clips a row to 16 bytes, not to an element, so it would overwrite bytes after
    /// the row: seen on an H200.)
    pub store_by_tma: u32,
    /// Number of CTAs that share the tiles of the last wave under
    /// [`Schedule::StreamK`]: at least one, at most all.
    pub stream_k_ctas: u32,
}

impl GemmParams {
    /// Largest M, N or K. It leaves room for a tile index to round up past the
    /// edge without wrapping, in signed 32-bit TMA coordinates too.
    pub const MAX_DIM: u64 = (1 << 31) - 1 - 4096;

    /// Address of the tensor map of A (0), B (1) or C (2).
    #[inline(always)]
    pub const fn tensor_map(&self, operand: u64) -> u64 {
        self.tensor_maps + 128 * operand
    }
}
