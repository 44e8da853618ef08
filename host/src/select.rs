//! Which kernel, tile, order and schedule run a problem, when the caller does
//! not say.
//!
//! The rule, in order:
//!
//! 1. **What can run.** A kernel that reads the element type, whose PTX is in
//!    this build and runs on the device, that fits its shared memory, and, for
//!    kernels through TMA, whose operands TMA can read ([`tma`](mod@crate::tma))
//!    or that can be packed.
//! 2. **Family.** The highest step of the ladder that can run: hopper, else
//!    tensor_core, else tiled, else naive. f32 has kernels on the CUDA cores
//!    only; [`Precision::Tf32`](crate::Precision) asks for TF32 kernels, and
//!    there is an error where none can run.
//! 3. **Packing, orientation and layout.** The fewest elements packed. A hopper
//!    kernel writes C along its rows, so a column-major C is computed as
//!    Cᵀ = Bᵀ·Aᵀ. Then the kernel whose layouts match the contiguous direction
//!    of most operands; what is packed is best read along K.
//! 4. **Tile, cluster, split.** The fewest cycles by the estimate of [`cost`]:
//!    waves of tiles, times what a tile takes. Larger tiles read less and reuse
//!    more, but an SM without a tile computes nothing. Equal cycles: the fewest
//!    bytes loaded, then the first in the list.
//! 5. **Order.** Groups of as many tiles as need the fewest bytes from DRAM, by the
//!    closed form of [`l2::estimate`](crate::l2::estimate) ([`l2::choose`](crate::l2::choose)).
//!    With W tiles in flight, a group of G rows makes the wave G·BLOCK_M rows by
//!    (W/G)·BLOCK_N columns; that is square, and so touches least of A and B, at
//!    G = √(W·BLOCK_N/BLOCK_M). The estimate adds what L2 holds from wave to wave.
//! 6. **Schedule.** Persistent for hopper, whose CTAs carry their pipeline from
//!    tile to tile; one tile a CTA otherwise. Some hopper kernels are for stream-K
//!    and nothing else: they are among the kernels of step 4 where there is more
//!    than one wave and the last is not full, and have to win by 5 %.
//!
//! What the caller forces is taken or refused, never replaced. A
//! [`Tuner`](crate::Tuner) measures what the rule ranks: [`choices`] lists it.
//!
//! **Packing.** An operand that TMA can read as the kernel wants it is read
//! where it is. Any other is copied first, into memory that the plan owns. That
//! is done for hopper kernels only, where K ≥ 64 and the other side of C is long
//! enough to repay the copy: N for A, M for B. Long enough is 256 where
//! tensor_core would read an operand element by element, because its lines are
//! not multiples of 16 bytes apart or its elements not adjacent; it is 2048
//! where the operands only lie along another direction than the kernel's. (The
//! source of `select/pack.rs` has the arithmetic.) Where the caller forces the
//! family or the kernel, it is done always, and with [`Packing::Never`] not at
//! all.

mod check;
pub mod cost;
mod pack;
mod place;
mod problem;
mod rank;

use gpu_kernels::{KernelInfo, Schedule, TileGrid, TileOrder};

pub use check::{Rejected, Rejection, check};
pub(crate) use check::{a_major, b_major, nearest_misses};
pub(crate) use pack::PackedMatrix;
pub use pack::{Packed, Packing};
pub use place::workload;
pub use problem::{Catalog, Choice, Problem, Request, Target};

use crate::error::Error;

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
/// - Kernels: all that can run and that `request` allows. Of one family, those
///   only that pack as little, and read along the contiguous direction of as
///   many operands, as its best.
/// - The transposed problem as well as the straight one, for hopper kernels,
///   where C is so narrow that its writes matter little.
/// - Orders and schedules: the rule's, and some steps from it, where there is
///   more than one wave.
///
/// They are worked out as they are asked for.
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

/// An M×N matrix in tiles of `kernel`: of a CTA, or of a whole cluster, whose
/// CTAs stand one above the other.
pub fn tile_grid(kernel: &KernelInfo, m: u32, n: u32) -> TileGrid {
    let (height, width) = kernel.cluster_tile();
    TileGrid::cover(m, n, height, width)
}

/// CTAs to launch along x and y, where `resident` CTAs run at once.
pub fn ctas(choice: &Choice, resident: u32) -> (u32, u32) {
    let TileGrid { tiles_m, tiles_n } = choice.grid;
    let cluster = choice.kernel.cluster.ctas();
    match choice.schedule {
        Schedule::Grid2d => (tiles_n, tiles_m),
        Schedule::Grid1d => (cluster * choice.grid.tiles(), 1),
        Schedule::Persistent => {
            let clusters = (resident / cluster).max(1).min(choice.grid.tiles());
            (cluster * clusters, 1)
        }
        Schedule::StreamK => match choice.grid.tiles() {
            0 => (0, 1),
            tiles => (tiles.min(resident).max(choice.sharers), 1),
        },
    }
}

/// Tiles that several of `ctas` CTAs share: those that fill no wave.
pub(crate) fn shared_tiles(choice: &Choice, ctas: (u32, u32)) -> u32 {
    match choice.schedule {
        Schedule::StreamK => choice.grid.tiles().checked_rem(ctas.0).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
