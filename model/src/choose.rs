//! Chooses the order that needs the fewest bytes from DRAM.

use gpu_kernels::TileOrder;

use crate::estimate::estimate;
use crate::workload::{Machine, Workload};

/// The group sizes that are compared, besides the whole side.
const GROUPS: [u32; 5] = [4, 8, 16, 32, 64];

/// The order for which [`estimate`] is lowest, among groups across the longer side of the
/// CTA tile. Ties go to the smallest group.
///
/// Groups have one direction only: CTAs that start after each other then share the larger
/// of their two blocks, and requests for it that meet on the way to L2 are merged. At equal
/// bytes from DRAM, this direction was measured to be faster (`docs/tile-order.md`).
///
/// ```
/// use gpu_kernels::{Block, TileOrder};
/// use tilewise_model::{Workload, choose, gpu::GPUS};
///
/// let product = |m, n, k| Workload {
///     m, n, k,
///     block: Block { m: 128, n: 256, k: 64 },
///     input_bytes: 2, output_bytes: 2,
/// };
/// let h200 = GPUS[0].machine(1);
/// assert_eq!(choose(&product(8192, 8192, 8192), h200), TileOrder::GroupedM { size: 16 });
/// // All of A stays in L2, so the columns of C run one after the other and B is read once.
/// assert_eq!(choose(&product(4096, 24576, 1536), h200), TileOrder::GroupedM { size: 32 });
/// ```
pub fn choose(workload: &Workload, machine: Machine) -> TileOrder {
    let grid = workload.grid();
    let is_wide = workload.block.n >= workload.block.m;
    let tiles = if is_wide { grid.tiles_m } else { grid.tiles_n };
    let order = |size: u32| match is_wide {
        true => TileOrder::GroupedM { size },
        false => TileOrder::GroupedN { size },
    };
    let sizes = GROUPS.into_iter().filter(|&size| size < tiles);
    let mut best = order(tiles.max(1));
    let mut fewest = estimate(workload, best, machine);
    for size in sizes.rev() {
        let bytes = estimate(workload, order(size), machine);
        if bytes <= fewest {
            (best, fewest) = (order(size), bytes);
        }
    }
    best
}
