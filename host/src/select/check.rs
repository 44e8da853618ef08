//! Checks whether a kernel can run a problem, and gives the reason if it cannot.

use gpu_kernels::epilogue::SourceUse;
use gpu_kernels::{DType, Family, KernelInfo, Major, Schedule};

use super::choice::Request;
use super::registers;
use crate::operand::Operand;
use crate::problem::{Catalog, Problem, Target, serves};
use crate::rejection::Rejection;
use crate::sum_order::SumOrder;
use crate::tma;

/// Checks that `kernel` can run `problem` on `target` without packing.
///
/// # Errors
/// The first [`Rejection`] found.
pub fn check(
    catalog: Catalog,
    kernel: &KernelInfo,
    problem: &Problem,
    target: &Target,
) -> Result<(), Rejection> {
    if !kernel.family.multiplies() {
        return Err(Rejection::NoProduct);
    }
    if !serves(kernel.input, problem.input) {
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
    if !(catalog.is_built)(kernel.entry) {
        return Err(Rejection::NotBuilt);
    }
    if kernel.shared_bytes > target.shared_bytes_per_cta {
        return Err(Rejection::SharedMemory {
            needs: kernel.shared_bytes,
            has: target.shared_bytes_per_cta,
        });
    }
    check_epilogue(kernel, problem)?;
    if kernel.family == Family::Hopper && problem.k == 0 {
        return Err(Rejection::ZeroK);
    }
    if kernel.loads_by_tma {
        check_tma(kernel, problem)?;
    }
    if registers::are_loaded_through(kernel) {
        check_lines_of_a(kernel, problem)?;
        check_lines_of_b(kernel, problem)?;
    }
    if kernel.input.parts() > 1 {
        return Err(Rejection::Unsplit);
    }
    Ok(())
}

/// Checks that `kernel` can compute the epilogue and the batch of `problem` in one launch.
fn check_epilogue(kernel: &KernelInfo, problem: &Problem) -> Result<(), Rejection> {
    let (epilogue, batches) = (problem.epilogue, problem.batches);
    let is_hopper = kernel.family == Family::Hopper;
    if epilogue.gated.is_some() && !(kernel.takes_gated() && batches <= 1) {
        return Err(Rejection::Gated);
    }
    // A hopper kernel reads a source of C's type only, and gates are f32.
    let reads_source =
        !is_hopper || epilogue.source != SourceUse::Gate || problem.output_dtype() == DType::F32;
    let has_code = epilogue.is_plain()
        || kernel.fused && reads_source
        || kernel.leaves_sums && epilogue.gated.is_none();
    if !has_code {
        return Err(Rejection::Epilogue { epilogue });
    }
    if batches > 1 && !kernel.fused {
        return Err(Rejection::Batches { batches });
    }
    Ok(())
}

/// Checks that TMA can read the operands of `problem`, and write C where `kernel` has no other way.
pub(super) fn check_tma(kernel: &KernelInfo, problem: &Problem) -> Result<(), Rejection> {
    if kernel.c_by_tma_only
        && (problem.output_dtype().bytes() != kernel.input.bytes()
            || tma::GlobalTensor::of_c(problem, kernel).is_none())
    {
        return Err(Rejection::Output {
            bytes: kernel.input.bytes(),
            along: if kernel.c_along_m { "M" } else { "N" },
        });
    }
    let tma = |operand, reason| Rejection::Tma { operand, reason };
    tma::GlobalTensor::of_a(problem, a_major(kernel, problem))
        .map_err(|reason| tma(Operand::A, reason))?;
    tma::GlobalTensor::of_b(problem, b_major(kernel, problem))
        .map_err(|reason| tma(Operand::B, reason))?;
    Ok(())
}

/// Checks that A has lines along the direction in which `kernel` reads it, for a kernel that loads
/// them through registers. They may begin anywhere.
pub(super) fn check_lines_of_a(kernel: &KernelInfo, problem: &Problem) -> Result<(), Rejection> {
    let along_m = (problem.m, problem.a.row_stride, "M");
    let along_k = (problem.k, problem.a.col_stride, "K");
    match a_major(kernel, problem) {
        Major::K => check_lines(Operand::A, along_k, along_m),
        Major::Mn => check_lines(Operand::A, along_m, along_k),
    }
}

/// [`check_lines_of_a`] for B.
pub(super) fn check_lines_of_b(kernel: &KernelInfo, problem: &Problem) -> Result<(), Rejection> {
    let along_n = (problem.n, problem.b.col_stride, "N");
    let along_k = (problem.k, problem.b.row_stride, "K");
    match b_major(kernel, problem) {
        Major::K => check_lines(Operand::B, along_k, along_n),
        Major::Mn => check_lines(Operand::B, along_n, along_k),
    }
}

/// Each direction is (extent, stride, name), first that of the lines.
fn check_lines(
    operand: Operand,
    (length, stride, along): (u32, u64, &'static str),
    (lines, pitch, _): (u32, u64, &'static str),
) -> Result<(), Rejection> {
    match length > 1 && stride != 1 || lines > 1 && pitch == 0 {
        true => Err(Rejection::NoLines { operand, along }),
        false => Ok(()),
    }
}

/// The direction along which `kernel` reads A of `problem`.
pub(crate) fn a_major(kernel: &KernelInfo, problem: &Problem) -> Major {
    kernel.a_major.unwrap_or(problem.a_major())
}

/// The direction along which `kernel` reads B of `problem`.
pub(crate) fn b_major(kernel: &KernelInfo, problem: &Problem) -> Major {
    kernel.b_major.unwrap_or(problem.b_major())
}

/// Checks that `request` allows `kernel`.
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

/// Checks that a launch can finish the tiles of `kernel` where split-K is forced, or all it can do.
pub(super) fn check_split_k(
    catalog: Catalog,
    kernel: &KernelInfo,
    problem: &Problem,
    request: &Request,
) -> Result<(), Rejection> {
    if request.schedule != Some(Schedule::SplitK) && !kernel.leaves_sums {
        return Ok(());
    }
    match catalog.reduce_for(kernel) {
        _ if problem.epilogue.gated.is_some() => Err(Rejection::Gated),
        None => Err(Rejection::NotBuilt),
        Some(_) => Ok(()),
    }
}

/// Checks that `kernel` adds products of depth `k` in the order that is `accepted`
/// ([`SumOrder::invariant`]). Where there is none, because no kernel with a single sum runs, the
/// other kernels are refused all the same.
pub(super) fn check_sum_order(
    kernel: &KernelInfo,
    k: u32,
    accepted: Option<SumOrder>,
) -> Result<(), Rejection> {
    let order = SumOrder::of(kernel, k);
    let is_accepted = match accepted {
        Some(_) => order == accepted,
        None => order.is_some_and(|order| order.parts == 1),
    };
    match is_accepted {
        true => Ok(()),
        false => Err(Rejection::SumOrder { order, accepted }),
    }
}
