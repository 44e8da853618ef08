//! Orders of clusters that share loads of one operand only.
//!
//! Requests of one GPC for the same line that meet on their way to L2 are made once, unless they are
//! multicast. So clusters that need the same lines of the operand that is not multicast should run in
//! one GPC. There are two ways to it (`docs/tile-order.md`, "Clusters of one GPC"):
//!
//! - Clusters of two CTAs of deep products in a single wave are [numbered by GPC](numbers_by_gpc):
//!   those of a GPC have consecutive ids (`gpu/placement.rs`), and those that need the same lines follow
//!   each other.
//! - For all others, the ids are the indices in the launch, which are dealt to the eight GPCs in turn.
//!   Clusters that need the same lines stand eight apart in the order, or a multiple of eight.

use gpu_kernels::order::Raster;
use gpu_kernels::{Cluster, KernelInfo, TileGrid, TileOrder};

use crate::l2::{self, Machine, Workload};

/// Clusters of two CTAs that most GPCs run at once: an H200 has seven GPCs of 16 SMs, and less than
/// two more of others.
const CLUSTERS_OF_GPC: u32 = 8;

/// The fewest k-blocks of products that are numbered by GPC. An id takes 0.1 µs to look up, and
/// shallow products lose more by it than they gain.
const FEWEST_K_BLOCKS: u32 = 32;

/// Sizes of groups that are compared where clusters are numbered by GPC.
const GROUPS_OF_GPC: [u32; 4] = [2, 4, 8, 16];

/// Those that are compared elsewhere: multiples of the number of GPCs.
const GROUPS_IN_TURN: [u32; 4] = [8, 16, 32, 64];

/// An order in turn may need so many times the bytes from DRAM of another for the requests that meet.
const MORE_BYTES: f64 = 1.02;

/// The operand whose loads CTAs of a cluster do not share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NotMulticast {
    A,
    B,
}

impl NotMulticast {
    /// `None` where they share both, or neither.
    fn of(cluster: Cluster) -> Option<Self> {
        // CTAs along N share A, and CTAs along M share B.
        match cluster {
            Cluster { m: 2.., n: 1, k: 1 } => Some(NotMulticast::A),
            Cluster { m: 1, n: 2.., k: 1 } => Some(NotMulticast::B),
            _ => None,
        }
    }
}

/// Whether the clusters of a launch of one product are numbered by GPC: of a `grid` of cluster tiles
/// with `k_blocks` k-blocks, of which a GPU computes `at_once`.
pub(crate) fn numbers_by_gpc(
    kernel: &KernelInfo,
    grid: TileGrid,
    k_blocks: u32,
    at_once: u32,
) -> bool {
    let is_one_wave = grid.tiles() <= at_once;
    let are_pairs = kernel.cluster.ctas() == 2 && NotMulticast::of(kernel.cluster).is_some();
    are_pairs && is_one_wave && k_blocks >= FEWEST_K_BLOCKS
}

/// The order for `kernel`, where the fewest bytes from DRAM are needed by `chosen`.
pub(super) fn order(
    kernel: &KernelInfo,
    workload: &Workload,
    machine: Machine,
    chosen: TileOrder,
) -> TileOrder {
    let Some(operand) = NotMulticast::of(kernel.cluster) else {
        return chosen;
    };
    let grid = workload.grid();
    match numbers_by_gpc(kernel, grid, workload.tiles_k(), machine.ctas) {
        true => by_gpc(operand, grid, chosen),
        false => in_turn(operand, workload, machine, chosen),
    }
}

/// The order in which the clusters of a GPC need the fewest lines of tiles of `operand`, for a single
/// wave, in which all orders need the same bytes from DRAM.
fn by_gpc(operand: NotMulticast, grid: TileGrid, chosen: TileOrder) -> TileOrder {
    let reads = |order: &TileOrder| {
        let raster = Raster::new(*order, grid);
        let mut lines: Vec<(u32, u32)> = (0..grid.tiles())
            .map(|id| {
                let tile = raster.tile(id);
                let line = match operand {
                    NotMulticast::A => tile.m,
                    NotMulticast::B => tile.n,
                };
                (id / CLUSTERS_OF_GPC, line)
            })
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    };
    let groups = GROUPS_OF_GPC.map(|size| match operand {
        NotMulticast::A => TileOrder::GroupedN { size },
        NotMulticast::B => TileOrder::GroupedM { size },
    });
    // Of equal ones, the first.
    let orders = [chosen].into_iter().chain(groups);
    orders.min_by_key(reads).unwrap_or(chosen)
}

/// The order in groups of a multiple of eight that needs the fewest bytes from DRAM, if these are hardly
/// more than with `chosen`; otherwise `chosen`.
fn in_turn(
    operand: NotMulticast,
    workload: &Workload,
    machine: Machine,
    chosen: TileOrder,
) -> TileOrder {
    let grid = workload.grid();
    let bytes = |order| l2::estimate(workload, order, machine);
    let orders = GROUPS_IN_TURN.into_iter().filter_map(|size| match operand {
        NotMulticast::A if size < grid.tiles_m => Some(TileOrder::GroupedM { size }),
        NotMulticast::B if size < grid.tiles_n => Some(TileOrder::GroupedN { size }),
        _ => None,
    });
    orders
        .min_by(|&a, &b| bytes(a).total_cmp(&bytes(b)))
        .filter(|&order| bytes(order) <= MORE_BYTES * bytes(chosen))
        .unwrap_or(chosen)
}

#[cfg(test)]
mod tests {
    use gpu_kernels::entry::KERNELS;
    use gpu_kernels::{DType, OutputType};

    use super::*;
    use crate::select::place::workload;

    const H200: Machine = Machine {
        ctas: 66,
        l2_bytes: 60 << 20,
        l2_partitions: 2,
    };

    /// The order of the kernel of this name, and the one that it replaces.
    fn orders(name: &str, shape: [u32; 3]) -> (TileOrder, TileOrder) {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
        let workload = workload(kernel, shape, DType::F16, OutputType::Input);
        let chosen = l2::choose(&workload, H200);
        (order(kernel, &workload, H200, chosen), chosen)
    }

    #[test]
    fn clusters_that_need_the_same_lines_follow_each_other_in_one_wave() {
        // B is multicast, and three columns of tiles need each row of A; then A is multicast, and
        // three rows need each column of B.
        let down = "hopper_f16_ak_bk_128x208x64_cluster2x1";
        let (found, _) = orders(down, [4096, 600, 8192]);
        assert!(
            matches!(found, TileOrder::GroupedN { size: 3.. }),
            "{found:?}"
        );
        let across = "hopper_f16_ak_bn_128x224x64_cluster1x2";
        let (found, _) = orders(across, [384, 7168, 3584]);
        assert!(
            matches!(found, TileOrder::GroupedM { size: 3.. }),
            "{found:?}"
        );
    }

    #[test]
    fn clusters_that_need_the_same_lines_stand_eight_apart_in_several_waves() {
        let down = "hopper_f16_ak_bk_128x208x64_cluster2x1";
        let grouped = TileOrder::GroupedM { size: 8 };
        assert_eq!(orders(down, [8264, 792, 11496]).0, grouped);
        let across = "hopper_f16_ak_bn_128x224x64_cluster1x2";
        let grouped = TileOrder::GroupedN { size: 8 };
        assert_eq!(orders(across, [384, 38912, 3584]).0, grouped);
        // In one wave, if K is short.
        assert_eq!(
            orders(down, [4096, 600, 512]).0,
            TileOrder::GroupedM { size: 8 }
        );
    }

    #[test]
    fn other_launches_keep_their_order() {
        // No clusters, clusters that share both operands, and fewer than nine rows of clusters.
        for (name, shape) in [
            ("hopper_f16_ak_bk_128x128x64", [4096, 384, 4096]),
            ("hopper_f16_ak_bk_128x128x64_cluster2x4", [4096, 1536, 4096]),
            ("hopper_f16_ak_bk_128x136x64_cluster2x1", [2048, 408, 1024]),
        ] {
            let (found, chosen) = orders(name, shape);
            assert_eq!(found, chosen, "{name}");
        }
    }
}
