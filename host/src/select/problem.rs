//! What the selection starts from, and what it ends with.

use gpu_kernels::{
    Block, DType, Family, KernelInfo, Major, Operand, OutputType, Schedule, TileGrid, TileOrder,
};

use super::{Packed, Packing, cost};
use crate::l2::Machine;
use crate::l2::gpu::l2_partitions;

/// A product as the selection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Address and strides of A.
    pub a: Operand,
    /// Address and strides of B.
    pub b: Operand,
    /// Address and strides of C.
    pub c: Operand,
}

impl Problem {
    /// Cᵀ = Bᵀ·Aᵀ: the same product with rows and columns exchanged.
    pub fn transposed(&self) -> Problem {
        let flip = |operand: Operand| Operand {
            address: operand.address,
            row_stride: operand.col_stride,
            col_stride: operand.row_stride,
        };
        Problem {
            m: self.n,
            n: self.m,
            a: flip(self.b),
            b: flip(self.a),
            c: flip(self.c),
            ..*self
        }
    }

    /// The direction in which A is contiguous, or more nearly so.
    pub fn a_major(&self) -> Major {
        major(self.a.col_stride, self.a.row_stride)
    }

    /// The direction in which B is contiguous, or more nearly so.
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
    /// (major, minor).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Most shared memory a CTA may have, bytes.
    pub shared_bytes_per_cta: u32,
    /// Capacity of L2, bytes.
    pub l2_bytes: u64,
}

impl Target {
    /// The GPU as the model of L2 sees it when `kernel` runs on it; a cluster is one CTA
    /// there.
    pub fn machine(&self, kernel: &KernelInfo) -> Machine {
        Machine {
            ctas: cost::at_once(kernel, self),
            l2_bytes: self.l2_bytes,
            l2_partitions: l2_partitions(self.compute_capability),
        }
    }
}

/// The kernels to select from.
#[derive(Clone, Copy)]
pub struct Catalog<'a> {
    /// All of them; equal candidates are taken in this order.
    pub kernels: &'a [KernelInfo],
    /// Whether the PTX of a kernel is at hand.
    pub is_built: fn(&str) -> bool,
}

impl Catalog<'static> {
    /// This library's kernels.
    pub fn embedded() -> Self {
        Catalog {
            kernels: gpu_kernels::entry::KERNELS,
            is_built: crate::embedded::is_built,
        }
    }
}

/// What the caller forces; `None` leaves it to the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// A kernel by name.
    pub kernel: Option<String>,
    /// A step of the ladder.
    pub family: Option<Family>,
    /// A CTA tile.
    pub block: Option<Block>,
    /// A tile order.
    pub order: Option<TileOrder>,
    /// A schedule.
    pub schedule: Option<Schedule>,
    /// Whether operands may be packed.
    pub packing: Packing,
}

/// What was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel.
    pub kernel: KernelInfo,
    /// Whether it runs the transposed problem.
    pub transposed: bool,
    /// Operands to pack first.
    pub packed: Packed,
    /// The kernel that packs them; `None` where there are none.
    pub pack: Option<KernelInfo>,
    /// C in tiles, or in the tiles of a whole cluster; of Cᵀ if transposed.
    pub grid: TileGrid,
    /// The order of those tiles.
    pub order: TileOrder,
    /// How CTAs get them.
    pub schedule: Schedule,
    /// Under [`Schedule::StreamK`], CTAs that share the tiles of the last wave;
    /// else 0.
    pub sharers: u32,
}
