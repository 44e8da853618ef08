//! The input of the selection: a product, a GPU, and a catalog of kernels.

use gpu_kernels::{DType, Form, KernelInfo, Major, OutputType, TensorRef};

use crate::epilogue_form::{EpilogueForm, Gated};
use crate::l2::Machine;
use crate::l2::gpu::l2_partitions;

/// Bytes of a cache line of L2. A larger alignment brings no further gain.
pub(crate) const CACHE_LINE: u64 = 128;

/// Bytes of a sector, the least part of a cache line that is read or written.
pub(crate) const SECTOR: u64 = 32;

/// The strides and the alignment of an operand in device memory, without its address.
///
/// ```
/// use tilewise::select::Strides;
///
/// // Row-major matrices of 64 columns, each 4096 elements after the one before.
/// let strides = Strides { batch_stride: 4096, ..Strides::new(64, 1) };
/// assert_eq!(strides.alignment, 128);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    /// Elements between (r, c) and (r + 1, c). Zero repeats a row (inputs only).
    pub row_stride: u64,
    /// Elements between (r, c) and (r, c + 1). Zero repeats a column (inputs only).
    pub col_stride: u64,
    /// Elements from one matrix of a batch to the next. Zero repeats the matrix (inputs
    /// only), and is the stride of a single matrix.
    pub batch_stride: u64,
    /// A power of two, in bytes, of which the address of element (0, 0) of each matrix is a
    /// multiple.
    pub alignment: u64,
}

impl Strides {
    /// The strides of one matrix that begins at the start of an allocation. Allocations are
    /// aligned at least to a cache line.
    pub const fn new(row_stride: u64, col_stride: u64) -> Strides {
        Strides {
            row_stride,
            col_stride,
            batch_stride: 0,
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
    pub(crate) const fn transposed(self) -> Strides {
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
            batch_stride: self.batch_stride,
        }
    }
}

/// A product, or a batch of products, as the selection sees it: shape, types, layouts and
/// epilogue, and no addresses and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and, unless the epilogue is gated, of C; a gated epilogue makes one
    /// column of C of two columns of B.
    pub n: u32,
    /// Columns of A and rows of B.
    pub k: u32,
    /// Number of products.
    pub batches: u32,
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
    /// What is done to the product before it becomes C.
    pub epilogue: EpilogueForm,
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
            epilogue: self.epilogue.transposed(),
            ..*self
        }
    }

    /// One of the two products that a gated product consists of, if this is one: the product
    /// with the columns that are not gates, times the activation of the gates. The alignment
    /// of B is that of both.
    pub(crate) fn half(&self) -> Option<Problem> {
        let gated = self.epilogue.gated?;
        let offset = self
            .up_offset(gated)
            .wrapping_mul(self.input.bytes().into());
        Some(Problem {
            n: self.n / 2,
            b: Strides {
                col_stride: match gated {
                    Gated::Interleaved => self.b.col_stride.saturating_mul(2),
                    Gated::Halves => self.b.col_stride,
                },
                alignment: self.b.alignment.min(Strides::alignment_of(offset)),
                ..self.b
            },
            epilogue: self.epilogue.of_ups(),
            ..*self
        })
    }

    /// Elements of B from the first gate column to the first other column.
    pub(crate) fn up_offset(&self, gated: Gated) -> u64 {
        match gated {
            Gated::Interleaved => self.b.col_stride,
            Gated::Halves => u64::from(self.n / 2).wrapping_mul(self.b.col_stride),
        }
    }

    /// Whether there is nothing to compute.
    pub(crate) fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.batches == 0
    }

    /// The element type of C. Operands are rounded to TF32; their product is stored as f32.
    pub fn output_dtype(&self) -> DType {
        self.output.dtype(self.input)
    }

    /// Columns of C.
    pub fn c_cols(&self) -> u32 {
        self.epilogue.c_cols(self.n)
    }

    /// The form of a launch that computes this problem.
    pub(crate) fn form(&self) -> Form {
        self.epilogue.of_launch(self.output_dtype(), self.batches)
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

/// Whether a kernel of type `kernel` computes products of type `problem`. f32 kernels are exact
/// enough for f16x3.
pub(crate) fn serves(kernel: DType, problem: DType) -> bool {
    kernel == problem || (kernel, problem) == (DType::F32, DType::F16x3)
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
    ///
    /// Clusters of four and more do not fit into all SMs of a GPC: an H200 runs 30 clusters of
    /// four and 15 of eight (`cuOccupancyMaxActiveClusters`), which is 10/11 of its 132 SMs.
    pub(crate) fn clusters_at_once(&self, kernel: &KernelInfo) -> u32 {
        let ctas = self.sms * kernel.ctas_per_sm;
        let clusters = match kernel.cluster.ctas() {
            few @ 1..4 => ctas / few,
            many => ctas * 10 / 11 / many,
        };
        clusters.max(1)
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

impl<'a> Catalog<'a> {
    /// The kernel that finishes the tiles of `kernel` under split-K, if this build has it.
    pub(crate) fn reduce_for(&self, kernel: &KernelInfo) -> Option<&'a KernelInfo> {
        // They stand last in the library's list, and a choice asks for many of them.
        self.kernels
            .iter()
            .rev()
            .find(|reduce| reduce.adds_sums_of(kernel) && (self.is_built)(reduce.entry))
    }
}
