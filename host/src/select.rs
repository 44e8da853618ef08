//! The rule that chooses kernel, tile, order and schedule for a problem where the
//! caller does not force them.
//!
//! The rule, in order:
//!
//! 1. **Kernels that can run.** A kernel can run if it reads the element type, its PTX
//!    is in this build and runs on the device, and it fits the device's shared memory.
//!    For a hopper kernel, TMA also has to be able to read the operands
//!    ([`tma`](mod@crate::tma)), or the operands have to be packed.
//! 2. **Family.** The rule takes the fastest family with a kernel that can run: hopper,
//!    else tensor_core, else tiled, else naive. Of a family with kernels for several targets
//!    it takes those for the newest that the device runs: tensor_core has kernels for sm_80,
//!    and others, of f16, for sm_75. f32 has kernels on the CUDA cores only. [`Precision::Tf32`](crate::Precision) asks for TF32 kernels; where no such
//!    kernel can run, the result is an error.
//! 3. **Packing, transposition and layout.** The rule packs the fewest elements. A
//!    hopper kernel writes C along its rows, so a column-major C is computed as
//!    Cᵀ = Bᵀ·Aᵀ; some write C along its columns ([`KernelInfo::c_along_m`]), and compute a
//!    row-major C so. Then the rule prefers kernels whose layouts match the contiguous
//!    direction of most operands; for a packed operand, it prefers kernels that read
//!    along K.
//! 4. **Tile, cluster, split.** The rule takes the kernel with the fewest cycles by the
//!    estimate of [`cost`]: waves of tiles, times the cycles of a tile. Larger tiles read
//!    less and reuse more, but an SM without a tile computes nothing. The arithmetic of an
//!    epilogue adds to every tile, except in ping-pong kernels, which hide it. Ties go to
//!    the kernel that loads the fewest bytes, then to the first in the list. Where the estimate is
//!    known to be wrong by some percent, another kernel goes first (`select/preferred.rs`).
//! 5. **Order.** The rule groups tiles so that the fewest bytes come from DRAM, by the
//!    closed form of [`l2::estimate`](crate::l2::estimate) ([`l2::choose`](crate::l2::choose)).
//!    With W tiles in flight, a group of G rows makes the wave G·BLOCK_M rows by
//!    (W/G)·BLOCK_N columns. At G = √(W·BLOCK_N/BLOCK_M) the wave is square, and so
//!    touches least of A and B. The estimate also counts hits on data that L2 still
//!    holds from earlier waves. In a single wave, where all orders read the same bytes, CTAs of one
//!    GPC have tiles that need the same lines; other clusters that share one operand stand in groups
//!    of a multiple of eight where that costs no bytes (`select/gpc.rs`). Launches that write C for
//!    longer than they multiply walk whole rows of tiles (`select/whole_rows.rs`).
//! 6. **Schedule.** Hopper kernels are persistent: their CTAs keep the pipeline running
//!    from tile to tile. Other kernels compute one tile per CTA. Some hopper kernels cut tiles
//!    along K, under stream-K or split-K, whichever has the better estimate: step 4 considers
//!    them where the last wave is not full. They have to win by 1 %.
//! 7. **Overlap.** Short launches, and those of CTAs that fill the GPU, may start while the
//!    kernel before them in the stream still runs (`select/overlap.rs`).
//! 8. **Eviction.** L2 evicts most lines of a large operand first that the launch reads once, as the
//!    weights of a layer by few rows (`select/eviction.rs`).
//!
//! **Epilogues.** Kernels of all families compute all epilogues, except that only some hopper
//! kernels make one column of C of two columns of the product. Where none of these can run,
//! gated pairs take two launches: the gates are computed into memory that the plan owns, in
//! f32, and then the other columns, times the activation of the gates.
//!
//! **Batch-invariant results.** Where the request asks for them, step 1 takes kernels of one
//! [`SumOrder`] only, which the element type, K and the GPU decide. Operands that these kernels
//! cannot read are then packed even where that does not pay, because another family would add
//! in another order, and a product with scales of rows and of columns is not transposed,
//! because the two scales would be applied in the other order.
//!
//! A forced choice is accepted or refused, never replaced. A [`Tuner`](crate::Tuner)
//! measures the configurations that the rule ranks; [`choices`] lists them.
//!
//! The rule uses no address, only its [`Strides::alignment`], so a plan is valid for all
//! operands of its layouts.
//!
//! **Packing.** If TMA can read an operand in the layout that the kernel needs, the
//! kernel reads it in place. Other operands are copied first, into memory that the plan
//! owns. Operands are packed for hopper kernels only, where that repays the copy. Where tensor_core would read an
//! operand element by element, because its lines are not multiples of 16 bytes apart or its
//! elements are not adjacent, two closed forms of the time decide. Where the operands are only
//! contiguous along another direction than the kernel reads, two others do. (The source of
//! `select/when_to_pack.rs` has the formulas and the figures.)
//! Where the caller forces the family or the kernel, operands are packed even if packing does
//! not pay. With [`Packing::Never`], operands are never packed.

pub(crate) mod check;
pub(crate) mod choice;
pub mod cost;
pub(crate) mod eviction;
pub(crate) mod gpc;
pub(crate) mod grid;
pub(crate) mod line_classes;
pub(crate) mod overlap;
pub(crate) mod pack;
mod place;
mod preferred;
mod rank;
mod registers;
mod when_to_pack;
mod whole_rows;

use gpu_kernels::{KernelInfo, Schedule, TileOrder};

pub use check::check;
pub use choice::{Choice, Packed, Packing, Request};
pub use grid::{ctas, tile_grid};
pub use place::workload;

pub use crate::epilogue_form::EpilogueForm;
use crate::error::Error;
pub use crate::problem::{Catalog, Problem, Strides, Target};
pub use crate::rejection::{Rejected, Rejection};
pub use crate::sum_order::SumOrder;

/// The kernels that can run `problem` on `target` without packing.
pub fn candidates<'a>(
    catalog: Catalog<'a>,
    problem: &'a Problem,
    target: &'a Target,
) -> impl Iterator<Item = &'a KernelInfo> {
    catalog
        .kernels
        .iter()
        .filter(move |kernel| check(catalog, kernel, problem, target).is_ok())
}

/// The kernel, order and schedule for `problem` on `target`: the choices that `request`
/// forces, and the module's rule for the rest. This is the first of [`choices`].
///
/// # Errors
/// Those of [`choices`].
pub fn choose(
    catalog: Catalog,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Choice, Error> {
    let mut choices = choices(catalog, problem, target, request)?;
    Ok(choices.next().expect("there is a best one"))
}

/// Every configuration for `problem` on `target` that is worth measuring, the best by
/// the module's rule first. The configurations of one kernel are adjacent.
///
/// - Kernels: all kernels that can run and that `request` allows, except kernels that
///   pack more than the best of their family, or that read fewer operands along their
///   contiguous direction.
/// - Transposition: hopper kernels compute both the problem and its transpose where C is
///   so narrow that the direction of its writes matters little.
/// - Orders and schedules: the rule's choice, and similar ones where there is more than
///   one wave.
///
/// The iterator computes them one by one.
///
/// # Errors
/// [`Error::UnknownKernel`], [`Error::KernelCannotRun`], [`Error::NoKernel`],
/// [`Error::OrderIgnored`], [`Error::BatchedGrid2d`], [`Error::TooManyTiles`].
pub fn choices<'a>(
    catalog: Catalog<'a>,
    problem: &'a Problem,
    target: &'a Target,
    request: &'a Request,
) -> Result<impl Iterator<Item = Choice> + 'a, Error> {
    if let (Some(Schedule::Grid2d), Some(order)) = (request.schedule, request.order)
        && order != TileOrder::RowMajor
    {
        return Err(Error::OrderIgnored { order });
    }
    if request.schedule == Some(Schedule::Grid2d) && problem.batches > 1 {
        let batches = problem.batches;
        return Err(Error::BatchedGrid2d { batches });
    }
    let in_one_launch = rank::ranked(catalog, problem, target, request);
    let (ranked, problem) = match (in_one_launch, problem.half()) {
        (Err(_), Some(half)) => (rank::ranked(catalog, &half, target, request)?, half),
        (ranked, _) => (ranked?, *problem),
    };
    let mut ranked = ranked.into_iter();
    let place =
        move |(kernel, fit)| place::choices(catalog, kernel, fit, &problem, target, request);
    let best = ranked.next().map_or(Ok(Vec::new()), place)?;
    let others = ranked.flat_map(move |ranked| place(ranked).unwrap_or_default());
    Ok(best.into_iter().chain(others))
}

#[cfg(test)]
mod tests;
