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
//! 5. **Order.** Grouped along M. With W tiles in flight, a group of G rows
//!    makes the wave G·BLOCK_M rows by (W/G)·BLOCK_N columns; that is square,
//!    and so touches least of A and B, at G = √(W·BLOCK_N/BLOCK_M).
//! 6. **Schedule.** Persistent for hopper, whose CTAs carry their pipeline from
//!    tile to tile; one tile a CTA otherwise.
//!
//! What the caller forces is taken or refused, never replaced.
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
mod problem;

use std::cmp::Reverse;

use gpu_kernels::{Family, KernelInfo, Major, Schedule, TileGrid, TileOrder};

pub use check::{Rejected, Rejection, check};
pub(crate) use check::{a_major, b_major, nearest_misses};
pub(crate) use pack::PackedMatrix;
pub use pack::{Packed, Packing};
pub use problem::{Catalog, Choice, Problem, Request, Target};

use crate::error::Error;
use cost::Cost;

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
/// forces, and the module's rule for the rest.
///
/// # Errors
/// [`Error::UnknownKernel`], [`Error::KernelCannotRun`], [`Error::NoKernel`],
/// [`Error::OrderIgnored`], [`Error::TooManyTiles`].
pub fn choose(
    catalog: Catalog,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Choice, Error> {
    if let (Some(Schedule::Grid2d), Some(order)) = (request.schedule, request.order)
        && order != TileOrder::RowMajor
    {
        return Err(Error::OrderIgnored { order });
    }
    let (kernel, Fit { transposed, packed }) = choose_kernel(catalog, problem, target, request)?;
    let (m, n) = if transposed {
        (problem.n, problem.m)
    } else {
        (problem.m, problem.n)
    };
    let schedule = request.schedule.unwrap_or(match kernel.family {
        Family::Hopper => Schedule::Persistent,
        _ => Schedule::Grid1d,
    });
    let grid = tile_grid(&kernel, m, n);
    let (tiles_m, tiles_n) = (u64::from(grid.tiles_m), u64::from(grid.tiles_n));
    let fits = match schedule {
        Schedule::Grid2d => tiles_m <= MAX_GRID_Y,
        _ => true,
    };
    if !fits || tiles_m * tiles_n * u64::from(kernel.cluster.ctas()) > MAX_GRID_X {
        return Err(Error::TooManyTiles {
            tiles_m,
            tiles_n,
            schedule,
        });
    }
    let order = match schedule {
        Schedule::Grid2d => TileOrder::RowMajor,
        _ => request
            .order
            .unwrap_or_else(|| grouped(&kernel, grid, target)),
    };
    Ok(Choice {
        kernel,
        transposed,
        packed,
        pack: pack::kernel_for(catalog, problem.input, target)
            .filter(|_| packed.any())
            .copied(),
        grid,
        order,
        schedule,
    })
}

/// Most CTAs along x of a grid, and most tiles: ids are 32-bit (CUDA C++
/// programming guide, "Technical specifications per compute capability").
const MAX_GRID_X: u64 = (1 << 31) - 1;

/// Most CTAs along y of a grid.
const MAX_GRID_Y: u64 = 65_535;

/// An M×N matrix in tiles of `kernel`: of a CTA, or of a whole cluster, whose
/// CTAs stand one above the other.
pub fn tile_grid(kernel: &KernelInfo, m: u32, n: u32) -> TileGrid {
    let (height, width) = kernel.cluster_tile();
    TileGrid::cover(m, n, height, width)
}

/// Step 5 of the rule.
fn grouped(kernel: &KernelInfo, grid: TileGrid, target: &Target) -> TileOrder {
    let in_flight = f64::from(target.sms * kernel.ctas_per_sm / kernel.cluster.ctas());
    let (height, width) = kernel.cluster_tile();
    let size = (in_flight * f64::from(width) / f64::from(height)).sqrt();
    TileOrder::GroupedM {
        size: (size.round() as u32).clamp(1, grid.tiles_m.max(1)),
    }
}

/// What it takes for a kernel to run a problem.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// It runs the transposed problem.
    transposed: bool,
    /// What is packed first.
    packed: Packed,
}

/// Steps 1 to 4: the kernel, and what it takes.
fn choose_kernel(
    catalog: Catalog,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<(KernelInfo, Fit), Error> {
    let flipped = problem.transposed();
    let fit = |kernel: &KernelInfo| -> Result<Fit, Rejection> {
        check::check_request(kernel, request)?;
        let seen = |transposed| {
            let problem = if transposed { &flipped } else { problem };
            let packed = pack::needed(catalog, kernel, problem, target, request)?;
            Ok(Fit { transposed, packed })
        };
        let as_it_is = seen(false);
        let flips = kernel.family == Family::Hopper
            && problem.c.col_stride != 1
            && flipped.c.col_stride == 1;
        if !flips {
            return as_it_is;
        }
        match (seen(true), as_it_is) {
            (Ok(turned), Ok(straight)) => {
                let more = turned.packed.elements(&flipped) > straight.packed.elements(problem);
                Ok(if more { straight } else { turned })
            }
            (turned, straight) => turned.or(straight),
        }
    };

    if let Some(name) = &request.kernel {
        let kernel = catalog
            .kernels
            .iter()
            .find(|kernel| kernel.name == name)
            .ok_or_else(|| Error::UnknownKernel {
                name: name.clone(),
                known: catalog.kernels.iter().map(|kernel| kernel.name).collect(),
            })?;
        return match fit(kernel) {
            Ok(fit) => Ok((*kernel, fit)),
            Err(reason) => Err(Error::KernelCannotRun {
                kernel: kernel.name,
                reason,
            }),
        };
    }

    let mut best: Option<(Rank, KernelInfo, Fit)> = None;
    for kernel in catalog.kernels {
        let Ok(fit) = fit(kernel) else {
            continue;
        };
        let seen = if fit.transposed { &flipped } else { problem };
        let rank = Rank::of(kernel, seen, fit.packed, target);
        if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
            best = Some((rank, *kernel, fit));
        }
    }
    let (_, kernel, fit) = best.ok_or_else(|| Error::NoKernel {
        asked: asked(problem, request),
        rejected: catalog
            .kernels
            .iter()
            .filter(|kernel| kernel.input == problem.input && kernel.family != Family::Pack)
            .filter_map(|kernel| {
                Some(Rejected {
                    kernel: kernel.name,
                    family: kernel.family,
                    reason: fit(kernel).err()?,
                })
            })
            .collect(),
    })?;
    Ok((kernel, fit))
}

/// The request in words, for the error.
fn asked(problem: &Problem, request: &Request) -> String {
    let mut asked = format!("{} elements", problem.input.name());
    if let Some(family) = request.family {
        asked += &format!(", family {}", family.name());
    }
    if let Some(block) = request.block {
        asked += &format!(", block {}×{}×{}", block.m, block.n, block.k);
    }
    if let Some(schedule) = request.schedule {
        asked += &format!(", schedule {schedule:?}");
    }
    asked
}

/// How much the rule likes a kernel that can run; greater is better. The
/// fields are compared from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    family: Family,
    /// Elements packed.
    packed: Reverse<u64>,
    /// Hopper writes C fastest along rows.
    writes_along_rows: bool,
    /// Operands whose contiguous direction is the kernel's.
    layouts: u32,
    cost: Reverse<Cost>,
}

impl Rank {
    fn of(kernel: &KernelInfo, problem: &Problem, packed: Packed, target: &Target) -> Rank {
        let grid = tile_grid(kernel, problem.m, problem.n);
        let matches = |reads: Option<Major>, is: Major, packed| {
            let best = if packed { Major::K } else { is };
            u32::from(reads == Some(best))
        };
        Rank {
            family: kernel.family,
            packed: Reverse(packed.elements(problem)),
            writes_along_rows: kernel.family != Family::Hopper || problem.c.col_stride == 1,
            layouts: matches(kernel.a_major, problem.a_major(), packed.a)
                + matches(kernel.b_major, problem.b_major(), packed.b),
            cost: Reverse(cost::estimate(kernel, grid, problem.k, target)),
        }
    }
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
    }
}

#[cfg(test)]
mod tests;
