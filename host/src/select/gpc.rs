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

/// An order may need so many times the bytes from DRAM of another for the requests that meet.
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
    fn clusters_that_share_one_operand_stand_eight_apart() {
        // Of the launches that were measured (`docs/perf-log.md`): B is multicast, then A.
        let down = "hopper_f16_ak_bk_128x208x64_cluster2x1";
        let grouped = TileOrder::GroupedM { size: 8 };
        assert_eq!(orders(down, [8264, 792, 11496]).0, grouped);
        let across = "hopper_f16_ak_bn_128x224x64_cluster1x2";
        let grouped = TileOrder::GroupedN { size: 8 };
        assert_eq!(orders(across, [384, 18944, 3584]).0, grouped);
    }

    #[test]
    fn other_launches_keep_their_order() {
        // No clusters, clusters that share both operands, and fewer than nine rows of clusters.
        for (name, shape) in [
            ("hopper_f16_ak_bk_128x128x64", [4096, 384, 4096]),
            ("hopper_f16_ak_bk_128x128x64_cluster2x4", [4096, 1536, 4096]),
            ("hopper_f16_ak_bk_128x136x64_cluster2x1", [2048, 408, 4096]),
        ] {
            let (found, chosen) = orders(name, shape);
            assert_eq!(found, chosen, "{name}");
        }
    }
}
