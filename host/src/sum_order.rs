//! [`SumOrder`]: the order in which a kernel adds up the products of one element of C.
//!
//! A kernel adds along K by one instruction over and over, each time to the same accumulator:
//! `wgmma` and `mma.sync` take 32 bytes of K, a fused multiply-add takes one element. Kernels of
//! f16x3 do so in each k-block, and all have k-blocks of the same depth. The last k-block is
//! filled with zeros. The tile, the cluster along M and N, the tile order, the
//! schedule and the layouts decide which thread computes an element and when, and not how.
//! Two things change the sum itself: a cluster that splits K adds up several sums, and
//! stream-K cuts tiles along K at places that depend on M, N and the number of CTAs.
//!
//! The zeros count too. They leave every sum as it is but one: −0, which an underflow can
//! leave behind, becomes +0. So kernels agree only if their k-blocks end at the same depth.

use std::fmt;

use gpu_kernels::{Arch, DType, Family, KernelInfo};

use crate::problem::{Catalog, Target, serves};

/// How one element of A·B is summed. Kernels of the same order compute the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumOrder {
    /// The family and the target, which together have one multiply instruction for each element
    /// type.
    pub family: Family,
    /// See `family`.
    pub arch: Arch,
    /// Number of sums along K, each of a part of K, that are added up.
    pub parts: u32,
    /// Products of all these sums: K, rounded up to whole k-blocks of each part.
    pub depth: u64,
}

impl SumOrder {
    /// The order of `kernel` in products of depth `k`; `None` where it depends on M, N or the
    /// GPU's size.
    pub fn of(kernel: &KernelInfo, k: u32) -> Option<SumOrder> {
        let parts = kernel.cluster.k;
        let k_blocks = u64::from(k.div_ceil(kernel.block.k));
        (kernel.stream_k_bytes == 0).then(|| SumOrder {
            family: kernel.family,
            arch: kernel.arch,
            parts,
            depth: k_blocks.next_multiple_of(parts.into()) * u64::from(kernel.block.k),
        })
    }

    /// The order of batch-invariant products of `input` elements and depth `k` on `target`:
    /// a single sum by the fastest family, for its newest target, in the smallest k-blocks that it
    /// has. It depends on
    /// nothing else. `None` where no kernel multiplies these elements.
    pub fn invariant(catalog: Catalog, input: DType, k: u32, target: &Target) -> Option<SumOrder> {
        let (major, minor) = target.compute_capability;
        let runs = |kernel: &&KernelInfo| {
            serves(kernel.input, input)
                && kernel.family.multiplies()
                // A hopper kernel computes at least one k-block.
                && (kernel.family != Family::Hopper || k > 0)
                && kernel.arch.runs_on(major, minor)
                && kernel.shared_bytes <= target.shared_bytes_per_cta
                && (catalog.is_built)(kernel.entry)
        };
        let orders = catalog.kernels.iter().filter(runs);
        orders
            .filter_map(|kernel| SumOrder::of(kernel, k))
            .filter(|order| order.parts == 1)
            .max_by_key(|order| (order.family, order.arch, std::cmp::Reverse(order.depth)))
    }
}

/// Such as `one sum of 4096 products by hopper kernels for sm_90a`.
impl fmt::Display for SumOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SumOrder {
            family,
            arch,
            parts,
            depth,
        } = self;
        match parts {
            1 => write!(f, "one sum of {depth} products")?,
            _ => write!(f, "{parts} sums of {} products", depth / u64::from(*parts))?,
        }
        write!(f, " by {} kernels for {}", family.name(), arch.name())
    }
}
