//! The input of the selection: a product, a GPU, and a catalog of kernels.

use gpu_kernels::{DType, KernelInfo, Major, OutputType, TensorRef};

use crate::l2::Machine;
use crate::l2::gpu::l2_partitions;

/// Bytes of a cache line of L2. A larger alignment brings no further gain.
pub(crate) const CACHE_LINE: u64 = 128;

/// The strides and the alignment of an operand in device memory, without its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    /// Elements between (r, c) and (r + 1, c). Zero repeats a row (inputs only).
    pub row_stride: u64,
    /// Elements between (r, c) and (r, c + 1). Zero repeats a column (inputs only).
    pub col_stride: u64,
    /// A power of two, in bytes, of which the address of element (0, 0) is a multiple.
    pub alignment: u64,
}

impl Strides {
    /// The strides of a matrix that begins at the start of an allocation. Allocations are
    /// aligned at least to a cache line.
    pub const fn new(row_stride: u64, col_stride: u64) -> Strides {
        Strides {
            row_stride,
            col_stride,
            alignment: CACHE_LINE,
        }
    }

    /// The largest alignment of `address`, up to a cache line. `address` may also be the
    /// offset of an element in its allocation, in bytes.
    pub const fn alignment_of(address: u64) -> u64 {
        // The lowest bit that is set in `address` or in `CACHE_LINE`.
        let bits = address | CACHE_LINE;
        bits & bits.wrapping_neg()
    }

    /// The same matrix with rows and columns exchanged.
    const fn transposed(self) -> Strides {
        Strides {
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The launch parameter for a matrix with these strides at `address`.
    pub(crate) const fn at(self, address: u64) -> TensorRef {
        TensorRef {
            address,
            row_stride: self.row_stride,
            col_stride: self.col_stride,
            batch_stride: 0,
        }
    }
}

/// A product as the selection sees it: shape, types and layouts, and no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A and rows of B.
    pub k: u32,
    /// Element type of A and B, and how it is multiplied.
    pub input: DType,
    /// Element type of C.
    pub output: OutputType,
    /// Strides and alignment of A.
    pub a: Strides,
    /// Strides and alignment of B.
    pub b: Strides,
    /// Strides and alignment of C.
    pub c: Strides,
}

impl Problem {
    /// Cᵀ = Bᵀ·Aᵀ: the same product with rows and columns exchanged.
    pub fn transposed(&self) -> Problem {
        Problem {
            m: self.n,
            n: self.m,
            a: self.b.transposed(),
            b: self.a.transposed(),
            c: self.c.transposed(),
            ..*self
        }
    }

    /// The direction along which A has the smaller stride.
    pub fn a_major(&self) -> Major {
        major(self.a.col_stride, self.a.row_stride)
    }

    /// The direction along which B has the smaller stride.
    pub fn b_major(&self) -> Major {
        major(self.b.row_stride, self.b.col_stride)
    }
}

fn major(along_k: u64, along_mn: u64) -> Major {
    if along_k <= along_mn {
        Major::K
    } else {
        Major::Mn
    }
}

/// A GPU as the selection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Compute capability, (major, minor).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Most shared memory a CTA may have, bytes.
    pub shared_bytes_per_cta: u32,
    /// Capacity of L2, bytes.
    pub l2_bytes: u64,
}

impl Target {
    /// The GPU as the model of L2 sees it when `kernel` runs on it. The model treats a
    /// cluster as one CTA.
    pub fn machine(&self, kernel: &KernelInfo) -> Machine {
        Machine {
            ctas: self.clusters_at_once(kernel),
            l2_bytes: self.l2_bytes,
            l2_partitions: l2_partitions(self.compute_capability),
        }
    }

    /// Number of clusters of `kernel` that run at once; for a kernel without clusters, the
    /// number of CTAs.
    pub(crate) fn clusters_at_once(&self, kernel: &KernelInfo) -> u32 {
        (self.sms * kernel.ctas_per_sm / kernel.cluster.ctas()).max(1)
    }
}

/// The kernels to select from.
#[derive(Clone, Copy)]
pub struct Catalog<'a> {
    /// All kernels. Ties between candidates go to the first in this order.
    pub kernels: &'a [KernelInfo],
    /// Whether this build has the PTX of the kernel with this name.
    pub is_built: fn(&str) -> bool,
}
