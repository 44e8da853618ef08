//! Whether a kernel can run a problem, and if not, why.

use gpu_kernels::{Arch, Block, DType, Family, KernelInfo, Major, OutputType, Schedule};

use super::{Catalog, Problem, Request, Target};
use crate::tma;

/// Why a kernel cannot run a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// It copies operands for other kernels.
    #[error("it packs operands and multiplies none")]
    NoProduct,
    /// It reads another element type.
    #[error("it multiplies {reads:?}, the problem is {problem:?}")]
    Input {
        /// What the kernel reads.
        reads: DType,
        /// What the problem has.
        problem: DType,
    },
    /// The library was built without its PTX.
    #[error("this build has no PTX for it (no device toolchain was found)")]
    NotBuilt,
    /// The device cannot run its PTX.
    #[error("{} does not run on compute capability {}.{}", needs.name(), has.0, has.1)]
    Device {
        /// The kernel's target.
        needs: Arch,
        /// The device's compute capability.
        has: (u32, u32),
    },
    /// Its shared memory does not fit.
    #[error("it needs {needs} bytes of shared memory a CTA, the device has {has}")]
    SharedMemory {
        /// Bytes the kernel uses.
        needs: u32,
        /// Bytes a CTA may have.
        has: u32,
    },
    /// It belongs to another family than the one forced.
    #[error("its family is {}", family.name())]
    Family {
        /// The kernel's family.
        family: Family,
    },
    /// It computes another tile than the one forced.
    #[error("its block is {}×{}×{}", block.m, block.n, block.k)]
    Block {
        /// The kernel's tile.
        block: Block,
    },
    /// Grid2d was forced on a kernel with clusters.
    #[error("its clusters of {cluster_ctas} CTAs need Grid1d or Persistent")]
    Clusters {
        /// CTAs a cluster.
        cluster_ctas: u32,
    },
    /// Another schedule was forced than it is made for.
    #[error("it does not run under {schedule:?}")]
    Schedule {
        /// The schedule forced.
        schedule: Schedule,
    },
    /// TMA cannot read an operand.
    #[error("TMA cannot read {operand}: {reason}")]
    Tma {
        /// `A` or `B`.
        operand: &'static str,
        /// Why.
        reason: tma::Unreadable,
    },
    /// It cannot write C as it is.
    #[error(
        "it writes C in the type of A and B only, through TMA: rows of elements side by side, \
         their bytes, the bytes between them and the address multiples of 16"
    )]
    Output,
    /// A kernel through TMA has no step to make.
    #[error("K = 0, TMA kernels need K ≥ 1")]
    ZeroK,
}

/// A kernel that cannot run what was asked for.
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
    /// How far the kernel got, of things that speak against it: those that the
    /// caller asked for otherwise, then the device and the build, last the
    /// operands.
    fn distance_made(&self) -> u32 {
        match self {
            Rejection::NoProduct | Rejection::Input { .. } => 0,
            Rejection::Family { .. } => 1,
            Rejection::Block { .. } => 2,
            Rejection::Clusters { .. } | Rejection::Schedule { .. } => 3,
            Rejection::Device { .. } => 4,
            Rejection::NotBuilt => 5,
            Rejection::SharedMemory { .. } => 6,
            Rejection::ZeroK | Rejection::Tma { .. } | Rejection::Output => 7,
        }
    }
}

/// The nearest miss of each family, in the order of `rejected`. Families other
/// than the one forced are left out, unless there is nothing else to say.
pub(crate) fn nearest_misses(rejected: &[Rejected]) -> Vec<Rejected> {
    let mut nearest: Vec<Rejected> = Vec::new();
    for miss in rejected {
        match nearest.iter_mut().find(|other| other.family == miss.family) {
            None => nearest.push(*miss),
            Some(other) if miss.reason.distance_made() > other.reason.distance_made() => {
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

/// Why `kernel` cannot run `problem` on `target`, as it is, if it cannot.
///
/// # Errors
/// The first [`Rejection`] found.
pub fn check(
    catalog: Catalog,
    kernel: &KernelInfo,
    problem: &Problem,
    target: &Target,
) -> Result<(), Rejection> {
    if kernel.family == Family::Pack {
        return Err(Rejection::NoProduct);
    }
    if kernel.input != problem.input {
        return Err(Rejection::Input {
            reads: kernel.input,
            problem: problem.input,
        });
    }
    let (major, minor) = target.compute_capability;
    if !kernel.arch.runs_on(major, minor) {
        return Err(Rejection::Device {
            needs: kernel.arch,
            has: target.compute_capability,
        });
    }
    if !(catalog.is_built)(kernel.name) {
        return Err(Rejection::NotBuilt);
    }
    if kernel.shared_bytes > target.shared_bytes_per_cta {
        return Err(Rejection::SharedMemory {
            needs: kernel.shared_bytes,
            has: target.shared_bytes_per_cta,
        });
    }
    if kernel.family == Family::Hopper {
        check_tma(kernel, problem)?;
    }
    Ok(())
}

fn check_tma(kernel: &KernelInfo, problem: &Problem) -> Result<(), Rejection> {
    if problem.k == 0 {
        return Err(Rejection::ZeroK);
    }
    if kernel.c_by_tma_only
        && (problem.output != OutputType::Input || tma::Lines::of_c(problem).is_none())
    {
        return Err(Rejection::Output);
    }
    let tma = |operand, reason| Rejection::Tma { operand, reason };
    if kernel.input == DType::Tf32 {
        return Err(tma("A", tma::Unreadable::Unrounded));
    }
    tma::Lines::of_a(problem, a_major(kernel, problem)).map_err(|reason| tma("A", reason))?;
    tma::Lines::of_b(problem, b_major(kernel, problem)).map_err(|reason| tma("B", reason))?;
    Ok(())
}

/// The direction along which `kernel` reads A of `problem`.
pub(crate) fn a_major(kernel: &KernelInfo, problem: &Problem) -> Major {
    kernel.a_major.unwrap_or(problem.a_major())
}

/// The direction along which `kernel` reads B of `problem`.
pub(crate) fn b_major(kernel: &KernelInfo, problem: &Problem) -> Major {
    kernel.b_major.unwrap_or(problem.b_major())
}

/// Why `kernel` is not among those that `request` allows, if it is not.
pub(super) fn check_request(kernel: &KernelInfo, request: &Request) -> Result<(), Rejection> {
    if request.family.is_some_and(|family| family != kernel.family) {
        return Err(Rejection::Family {
            family: kernel.family,
        });
    }
    if request.block.is_some_and(|block| block != kernel.block) {
        return Err(Rejection::Block {
            block: kernel.block,
        });
    }
    if request.schedule == Some(Schedule::Grid2d) && kernel.cluster.ctas() > 1 {
        return Err(Rejection::Clusters {
            cluster_ctas: kernel.cluster.ctas(),
        });
    }
    if let Some(schedule) = request.schedule
        && !kernel.runs_under(schedule)
    {
        return Err(Rejection::Schedule { schedule });
    }
    Ok(())
}
