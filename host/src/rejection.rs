//! [`Rejection`]: the reasons why a kernel cannot run a problem.

use gpu_kernels::{Arch, Block, DType, Family, Schedule};

use crate::epilogue_form::EpilogueForm;
use crate::operand::Operand;
use crate::sum_order::SumOrder;
use crate::tma;

/// Why a kernel cannot run a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The kernel packs operands and computes no product.
    #[error("it packs operands and multiplies none")]
    NoProduct,
    /// The kernel reads another element type.
    #[error("it multiplies {reads:?}, the problem is {problem:?}")]
    Input {
        /// The element type that the kernel reads.
        reads: DType,
        /// The element type of the problem.
        problem: DType,
    },
    /// The library was built without the kernel's PTX.
    #[error("this build has no PTX for it (no device toolchain was found)")]
    NotBuilt,
    /// The device cannot run the kernel's PTX.
    #[error("{} does not run on compute capability {}.{}", needs.name(), has.0, has.1)]
    Device {
        /// The kernel's target.
        needs: Arch,
        /// The device's compute capability.
        has: (u32, u32),
    },
    /// The kernel needs more shared memory than a CTA may have.
    #[error("it needs {needs} bytes of shared memory a CTA, the device has {has}")]
    SharedMemory {
        /// Bytes the kernel uses.
        needs: u32,
        /// Bytes a CTA may have.
        has: u32,
    },
    /// The kernel does not belong to the forced family.
    #[error("its family is {}", family.name())]
    Family {
        /// The kernel's family.
        family: Family,
    },
    /// The kernel does not compute the forced tile.
    #[error("its block is {}×{}×{}", block.m, block.n, block.k)]
    Block {
        /// The kernel's tile.
        block: Block,
    },
    /// Grid2d was forced on a kernel with clusters.
    #[error("its clusters of {cluster_ctas} CTAs need Grid1d or Persistent")]
    Clusters {
        /// CTAs per cluster.
        cluster_ctas: u32,
    },
    /// The kernel does not run under the forced schedule.
    #[error("it does not run under {schedule:?}")]
    Schedule {
        /// The forced schedule.
        schedule: Schedule,
    },
    /// The kernel does not add in the order of batch-invariant products.
    #[error(
        "it adds {}, and batch_invariant accepts {}",
        order.map_or("in an order that M and N decide".to_owned(), |order| order.to_string()),
        accepted.map_or("one sum".to_owned(), |accepted| accepted.to_string())
    )]
    SumOrder {
        /// The kernel's order; `None` where it depends on M and N.
        order: Option<SumOrder>,
        /// The order of batch-invariant products; `None` where no kernel with one runs.
        accepted: Option<SumOrder>,
    },
    /// TMA cannot read an operand.
    #[error("TMA cannot read {operand}: {reason}")]
    Tma {
        /// A or B.
        operand: Operand,
        /// Why.
        reason: tma::Unreadable,
    },
    /// The kernel multiplies parts of f32 elements, which no operand has before it is split.
    #[error(
        "it multiplies parts of f32 elements, accepted: packed copies, whose elements are split"
    )]
    Unsplit,
    /// The kernel cannot write C in its layout or type.
    #[error(
        "it writes C in types of {bytes} bytes only, through TMA: lines of elements side by side \
         along {along}, their bytes, the bytes between them and the address multiples of 16"
    )]
    Output {
        /// Bytes of an element.
        bytes: u32,
        /// `M` or `N`.
        along: &'static str,
    },
    /// The lines of its operand cannot be divided into so many classes.
    #[error("its lines cannot be divided into {classes} classes: {reason}")]
    LineClasses {
        /// The forced number.
        classes: u32,
        /// Why.
        reason: &'static str,
    },
    /// The kernel has no code for the epilogue.
    #[error("it computes no epilogue such as {epilogue}")]
    Epilogue {
        /// The epilogue.
        epilogue: EpilogueForm,
    },
    /// The kernel cannot compute gated pairs in one launch.
    #[error(
        "gated pairs in one launch need a hopper kernel with epilogues whose block has a \
         multiple of 128 columns, a C that is not transposed, and no split-K"
    )]
    Gated,
    /// The kernel computes one product only.
    #[error("it computes one product, the problem has {batches}")]
    Batches {
        /// Number of products.
        batches: u32,
    },
    /// A hopper kernel computes at least one k-block, so it cannot run K = 0.
    #[error("K = 0, hopper kernels need K ≥ 1")]
    ZeroK,
    /// The kernel loads lines through registers, and another one is estimated to be faster.
    #[error("it loads operands through registers, which is slower here; accepted by name")]
    ThroughRegisters,
    /// The kernel loads lines through registers, and an operand has none.
    #[error(
        "it loads {operand} in lines along {along}, whose elements must be contiguous, and which \
         must not share an address"
    )]
    NoLines {
        /// A or B.
        operand: Operand,
        /// `M`, `N` or `K`.
        along: &'static str,
    },
}

/// A kernel that cannot run the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its name.
    pub kernel: &'static str,
    /// Its family.
    pub family: Family,
    /// Why.
    pub reason: Rejection,
}

impl Rejection {
    /// How near the kernel came to running; greater is nearer. A wrong element type is the
    /// farthest, followed by a forced choice that the kernel does not meet, then the device
    /// and the build. Operands that the kernel cannot read are the nearest.
    fn nearness(&self) -> u32 {
        match self {
            Rejection::NoProduct | Rejection::Input { .. } => 0,
            Rejection::Family { .. } => 1,
            Rejection::Block { .. } => 2,
            Rejection::Clusters { .. } | Rejection::Schedule { .. } => 3,
            Rejection::SumOrder { .. } | Rejection::Device { .. } => 4,
            Rejection::NotBuilt => 5,
            Rejection::SharedMemory { .. } => 6,
            Rejection::Epilogue { .. } | Rejection::Gated | Rejection::Batches { .. } => 7,
            Rejection::ZeroK
            | Rejection::ThroughRegisters
            | Rejection::NoLines { .. }
            | Rejection::LineClasses { .. }
            | Rejection::Tma { .. }
            | Rejection::Unsplit
            | Rejection::Output { .. } => 8,
        }
    }
}

/// The kernel of each family that came nearest to running, in the order of `rejected`.
/// Families other than the forced one are left out, unless all are others.
pub(crate) fn nearest_misses(rejected: &[Rejected]) -> Vec<Rejected> {
    let mut nearest: Vec<Rejected> = Vec::new();
    for miss in rejected {
        match nearest.iter_mut().find(|other| other.family == miss.family) {
            None => nearest.push(*miss),
            Some(other) if miss.reason.nearness() > other.reason.nearness() => {
                *other = *miss;
            }
            Some(_) => {}
        }
    }
    let is_other = |miss: &Rejected| matches!(miss.reason, Rejection::Family { .. });
    if !nearest.iter().all(is_other) {
        nearest.retain(|miss| !is_other(miss));
    }
    nearest
}
