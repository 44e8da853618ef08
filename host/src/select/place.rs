//! Steps 5 and 6 of the rule: tile orders and schedules for one kernel.
//!
//! A stream-K kernel runs under stream-K or split-K, as the estimate says, and
//! [`cost::shared_ctas`] gives the number of CTAs that share tiles.

use gpu_kernels::epilogue::SourceUse;
use gpu_kernels::{Block, DType, Family, KernelInfo, OutputType, Schedule, TileGrid, TileOrder};

use super::choice::{Choice, Fit, Request};
use super::gpc::{self, Launch};
use super::grid::leaves_sums;
use super::line_classes;
use super::{cost, pack, whole_rows};
use crate::error::Error;
use crate::l2::{self, Workload};
use crate::problem::{Catalog, Problem, Target};

/// Most CTAs along x of a grid, and most tiles: ids are 32-bit (CUDA C++
/// programming guide, "Technical specifications per compute capability").
const MAX_GRID_X: u64 = (1 << 31) - 1;

/// Most CTAs along y of a grid.
const MAX_GRID_Y: u64 = 65_535;

/// The configurations of `kernel` for `problem`: first the rule's order and schedule,
/// then other orders, then the other schedule.
///
/// # Errors
/// [`Error::TooManyTiles`].
pub(super) fn choices(
    catalog: Catalog,
    kernel: KernelInfo,
    fit: Fit,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Vec<Choice>, Error> {
    let Fit {
        transposed,
        packed,
        classes,
    } = fit;
    let turned = problem.transposed();
    let seen = if transposed { &turned } else { problem };
    let (m, n) = (seen.m, seen.n);
    let (schedule, other) = match kernel.family {
        _ if kernel.runs_under(Schedule::StreamK) => {
            shared_schedules(catalog, &kernel, fit, problem, target)
        }
        _ if kernel.leaves_sums => (Schedule::SplitK, Schedule::SplitK),
        Family::Hopper => (Schedule::Persistent, Schedule::Grid1d),
        _ => (Schedule::Grid1d, Schedule::Persistent),
    };
    let schedule = request.schedule.unwrap_or(schedule);
    let grid = line_classes::grid(&kernel, seen, classes);
    let depth = line_classes::depth(&kernel, seen, classes);
    check_launch(&kernel, grid, problem.batches, schedule)?;
    check_k_blocks(&kernel, grid, problem, depth, target)?;
    let shared_ctas = |schedule| match schedule {
        Schedule::StreamK | Schedule::SplitK => {
            cost::shared_ctas(&kernel, grid, problem.batches, depth, target, schedule)
        }
        _ => 0,
    };
    let choice = |order, schedule| {
        let stream_k_ctas = shared_ctas(schedule);
        let tiles = grid.tiles() * problem.batches;
        let is_split = leaves_sums(&kernel, schedule, tiles, stream_k_ctas);
        Choice {
            kernel,
            transposed,
            two_launches: problem.epilogue.source == SourceUse::Gate,
            packed,
            line_classes: classes,
            pack: pack::kernel_for(catalog, problem.input, target)
                .filter(|_| packed.any())
                .copied(),
            grid,
            batches: problem.batches,
            order,
            schedule,
            stream_k_ctas,
            reduce: catalog.reduce_for(&kernel).filter(|_| is_split).copied(),
        }
    };
    let orders = match (schedule, request.order) {
        (Schedule::Grid2d, _) => vec![TileOrder::RowMajor],
        (_, Some(order)) => vec![order],
        (_, None) => {
            let shape = [m, n, problem.k];
            let workload = workload(&kernel, shape, problem.input, problem.output);
            let launch = Launch {
                kernel: &kernel,
                schedule,
                grid,
                batches: problem.batches,
                k_blocks: workload.tiles_k(),
                split_k_clusters: shared_ctas(schedule),
                at_once: target.clusters_at_once(&kernel),
            };
            orders(&launch, &workload, target)
        }
    };
    let mut choices: Vec<_> = orders
        .iter()
        .map(|order| choice(*order, schedule))
        .collect();
    let is_open = request.schedule.is_none() && other != schedule;
    if is_open
        && (kernel.stream_k_bytes > 0 || choices[0].tiles() > target.clusters_at_once(&kernel))
    {
        choices.push(choice(orders[0], other));
    }
    Ok(choices)
}

/// The schedules of a stream-K kernel, the faster by the estimate first. They are the same where
/// split-K is none: few k-blocks, many tiles, or gated pairs, which need whole tiles.
fn shared_schedules(
    catalog: Catalog,
    kernel: &KernelInfo,
    fit: Fit,
    problem: &Problem,
    target: &Target,
) -> (Schedule, Schedule) {
    let turned = problem.transposed();
    let problem = if fit.transposed { &turned } else { problem };
    let task = cost::Task::of(kernel, problem, fit.packed, fit.classes);
    match cost::prefers_split_k(kernel, &task, target) {
        _ if fit.classes > 1 => (Schedule::StreamK, Schedule::StreamK),
        _ if catalog.reduce_for(kernel).is_none() => (Schedule::StreamK, Schedule::StreamK),
        None => (Schedule::StreamK, Schedule::StreamK),
        Some(true) => (Schedule::SplitK, Schedule::StreamK),
        Some(false) => (Schedule::StreamK, Schedule::SplitK),
    }
}

/// An M×N×K product by `kernel` (of Cᵀ if the kernel computes Cᵀ), as the model of L2
/// sees it. A cluster loads the data that its CTAs share only once (TMA multicast), so it
/// counts as one CTA with the tile of the whole cluster.
pub fn workload(
    kernel: &KernelInfo,
    [m, n, k]: [u32; 3],
    input: DType,
    output: OutputType,
) -> Workload {
    let (block_m, block_n) = kernel.cluster_tile();
    Workload {
        m,
        n,
        k,
        block: Block {
            m: block_m,
            n: block_n,
            k: kernel.block.k,
        },
        input_bytes: input.bytes(),
        output_bytes: output.dtype(input).bytes(),
    }
}

fn check_launch(
    kernel: &KernelInfo,
    grid: TileGrid,
    batches: u32,
    schedule: Schedule,
) -> Result<(), Error> {
    let (tiles_m, tiles_n) = (u64::from(grid.tiles_m), u64::from(grid.tiles_n));
    let batches = u64::from(batches);
    let ctas = (tiles_m * tiles_n)
        .saturating_mul(batches)
        .saturating_mul(kernel.cluster.ctas().into());
    let fits = match schedule {
        Schedule::Grid2d => tiles_m <= MAX_GRID_Y,
        _ => true,
    };
    if !fits || ctas > MAX_GRID_X {
        return Err(Error::TooManyTiles {
            tiles_m,
            tiles_n,
            batches,
            schedule,
        });
    }
    Ok(())
}

/// Checks the limit of stream-K, which counts the k-blocks of a wave in 32 bits.
fn check_k_blocks(
    kernel: &KernelInfo,
    grid: TileGrid,
    problem: &Problem,
    depth: u32,
    target: &Target,
) -> Result<(), Error> {
    let k_blocks =
        u64::from(depth.div_ceil(kernel.block.k)) * u64::from(target.clusters_at_once(kernel));
    if kernel.runs_under(Schedule::StreamK) && k_blocks > u64::from(u32::MAX) {
        return Err(Error::TooManyTiles {
            tiles_m: grid.tiles_m.into(),
            tiles_n: grid.tiles_n.into(),
            batches: problem.batches.into(),
            schedule: Schedule::StreamK,
        });
    }
    Ok(())
}

/// The order of step 5, and its neighbours: half and double the group size, groups
/// along the other direction, no groups; of an order without groups, those with small ones. Orders
/// that walk the tiles the same way appear once. A grid of a single wave, row or column has only the order of step 5.
fn orders(launch: &Launch, workload: &Workload, target: &Target) -> Vec<TileOrder> {
    let machine = target.machine(launch.kernel);
    let grid = workload.grid();
    let fewest = l2::choose(workload, machine);
    let chosen = whole_rows::order(launch, workload, machine, fewest)
        .unwrap_or_else(|| gpc::order(launch, workload, machine, fewest));
    let mut orders = vec![chosen];
    if grid.tiles_m <= 1 || grid.tiles_n <= 1 || grid.tiles() <= machine.ctas {
        return orders;
    }
    // A group along the other direction covers about as many elements.
    let Block { m, n, .. } = workload.block;
    let neighbours = match chosen {
        TileOrder::GroupedN { size } => [
            TileOrder::GroupedN { size: size / 2 },
            TileOrder::GroupedN { size: 2 * size },
            TileOrder::GroupedM { size: size * n / m },
            TileOrder::RowMajor,
        ],
        TileOrder::GroupedM { size } => [
            TileOrder::GroupedM { size: size / 2 },
            TileOrder::GroupedM { size: 2 * size },
            TileOrder::GroupedN { size: size * m / n },
            TileOrder::RowMajor,
        ],
        // Whole rows or columns (`whole_rows`).
        _ => [
            fewest,
            TileOrder::GroupedM { size: 4 },
            TileOrder::GroupedN { size: 4 },
            TileOrder::RowMajor,
        ],
    };
    for other in neighbours {
        let same = |order: &TileOrder| ungrouped(*order, grid) == ungrouped(other, grid);
        if !orders.iter().any(same) {
            orders.push(other);
        }
    }
    orders
}

/// The order without groups that is equal to `order`, if its groups have one tile or
/// cover the whole grid; otherwise `order`.
fn ungrouped(order: TileOrder, grid: TileGrid) -> TileOrder {
    match order {
        TileOrder::GroupedM { size: 0 | 1 } => TileOrder::RowMajor,
        TileOrder::GroupedM { size } if size >= grid.tiles_m => TileOrder::ColumnMajor,
        TileOrder::GroupedN { size: 0 | 1 } => TileOrder::ColumnMajor,
        TileOrder::GroupedN { size } if size >= grid.tiles_n => TileOrder::RowMajor,
        other => other,
    }
}
