//! Which kernel, tile, order and schedule run a problem, when the caller does
//! not say.
//!
//! The rule, in order:
//!
//! 1. **What can run.** A kernel that reads the element type, whose PTX is in
//!    this build and runs on the device, and that fits the device's shared memory. TMA
//!    has to be able to read the operands of a hopper kernel ([`tma`](mod@crate::tma)),
//!    or they have to be packed.
//! 2. **Family.** The highest step of the ladder that can run: hopper, else
//!    tensor_core, else tiled, else naive. f32 has kernels on the CUDA cores
//!    only. [`Precision::Tf32`](crate::Precision) asks for TF32 kernels; where no such
//!    kernel can run, the result is an error.
//! 3. **Packing, transposition and layout.** The fewest elements packed. A hopper
//!    kernel writes C along its rows, so a column-major C is computed as
//!    Cᵀ = Bᵀ·Aᵀ. Then the kernel whose layouts match the contiguous direction
//!    of most operands; a packed operand is best read along K.
//! 4. **Tile, cluster, split.** The fewest cycles by the estimate of [`cost`]:
//!    waves of tiles, times the cycles of a tile. Larger tiles read less and reuse
//!    more, but an SM without a tile computes nothing. Of kernels with equal cycles, the
//!    one that loads the fewest bytes, then the first in the list.
//! 5. **Order.** Groups of as many tiles as need the fewest bytes from DRAM, by the
//!    closed form of [`l2::estimate`](crate::l2::estimate) ([`l2::choose`](crate::l2::choose)).
//!    With W tiles in flight, a group of G rows makes the wave G·BLOCK_M rows by
//!    (W/G)·BLOCK_N columns; that is square, and so touches least of A and B, at
//!    G = √(W·BLOCK_N/BLOCK_M). The estimate adds what L2 holds from wave to wave.
//! 6. **Schedule.** Persistent for hopper, whose CTAs carry their pipeline from
//!    tile to tile; one tile a CTA otherwise. Some hopper kernels run under stream-K
//!    alone: they take part in step 4 where there is more than one wave and the last is
//!    not full, and have to win by 5 %.
//!
//! What the caller forces is taken or refused, never replaced. A
//! [`Tuner`](crate::Tuner) measures what the rule ranks: [`choices`] lists it.
//!
//! No address enters the rule, only what [`Strides::alignment`] says of it: a plan holds
//! for all operands of its layouts.
//!
//! **Packing.** An operand that TMA can read as the kernel wants it is read
//! where it is. Any other is copied first, into memory that the plan owns. Operands are
//! packed for hopper kernels only, where K ≥ 64 and the other side of C (N for A, M for B)
//! is long enough to repay the copy. That is 256 where
//! tensor_core would read an operand element by element, because its lines are
//! not multiples of 16 bytes apart or its elements not adjacent, and 2048
//! where the operands only lie along another direction than the kernel's. (The
//! source of `select/pack.rs` has the arithmetic.) Where the caller forces the
//! family or the kernel, operands are packed whether it pays or not, and with
//! [`Packing::Never`] not at all.

pub(crate) mod check;
pub(crate) mod choice;
pub mod cost;
pub(crate) mod grid;
pub(crate) mod pack;
mod place;
mod rank;

use gpu_kernels::{KernelInfo, Schedule, TileOrder};

pub use check::check;
pub use choice::{Choice, Packed, Packing, Request};
pub use grid::{ctas, tile_grid};
pub use place::workload;

use crate::error::Error;
pub use crate::problem::{Catalog, Problem, Strides, Target};
pub use crate::rejection::{Rejected, Rejection};

/// The kernels that can run `problem` on `target`, as it is: nothing packed.
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

/// The kernel, order and schedule for `problem` on `target`: what `request`
/// forces, and the module's rule for the rest. The first of [`choices`].
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

/// Every configuration for `problem` on `target` that is worth measuring, the
/// best by the module's rule first. All of one kernel stand together.
///
/// - Kernels: all that can run and that `request` allows. A kernel that packs more than the
///   best of its family, or reads fewer operands along their contiguous direction, is left
///   out.
/// - The problem and its transpose, for hopper kernels, where C is so narrow that the
///   direction of its writes matters little.
/// - Orders and schedules: the rule's, and others near it, where there is more than one
///   wave.
///
/// The iterator computes them one by one.
///
/// # Errors
/// [`Error::UnknownKernel`], [`Error::KernelCannotRun`], [`Error::NoKernel`],
/// [`Error::OrderIgnored`], [`Error::TooManyTiles`].
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
    let mut ranked = rank::ranked(catalog, problem, target, request)?.into_iter();
    let place = move |(kernel, fit)| place::choices(catalog, kernel, fit, problem, target, request);
    let best = ranked.next().map_or(Ok(Vec::new()), place)?;
    let others = ranked.flat_map(move |ranked| place(ranked).unwrap_or_default());
    Ok(best.into_iter().chain(others))
}

#[cfg(test)]
mod tests;
