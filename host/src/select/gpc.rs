//! Orders of clusters that share loads of one operand only.
//!
//! Requests of one GPC for the same line that meet on their way to L2 are made once, unless they are
//! multicast. Clusters are dealt to the eight GPCs of a GPU in turn (`docs/tile-order.md`, "Clusters,
//! eight apart"). So clusters that need the same lines of the operand that is not multicast should be
//! eight apart in the order, or a multiple of eight.

use gpu_kernels::{Cluster, KernelInfo, TileOrder};

use crate::l2::{self, Machine, Workload};

/// Group sizes that are compared: multiples of the number of GPCs.
const GROUPS: [u32; 4] = [8, 16, 32, 64];

/// How many times the bytes from DRAM requests that meet are worth.
const MORE_BYTES: f64 = 1.02;

/// The order in groups of a multiple of eight that needs the fewest bytes from DRAM, if these are hardly
/// more than with `chosen`; otherwise `chosen`.
pub(super) fn order(
    kernel: &KernelInfo,
    workload: &Workload,
    machine: Machine,
    chosen: TileOrder,
) -> TileOrder {
    let grid = workload.grid();
    // CTAs along N share A, and CTAs along M share B.
    let (is_along_m, tiles) = match kernel.cluster {
        Cluster { m: 2.., n: 1, k: 1 } => (true, grid.tiles_m),
        Cluster { m: 1, n: 2.., k: 1 } => (false, grid.tiles_n),
        _ => return chosen,
    };
    let bytes = |order| l2::estimate(workload, order, machine);
    let orders = GROUPS
        .into_iter()
        .filter(|&size| size < tiles)
        .map(|size| match is_along_m {
            true => TileOrder::GroupedM { size },
            false => TileOrder::GroupedN { size },
        });
    orders
        .min_by(|&a, &b| bytes(a).total_cmp(&bytes(b)))
        .filter(|&order| bytes(order) <= MORE_BYTES * bytes(chosen))
        .unwrap_or(chosen)
}
