//! Which CTAs of a launch share a GPC, and the orders that let them load the same lines.
//!
//! Requests of one GPC for the same line that meet on their way to L2 are made once, unless they are
//! multicast. So CTAs that need the same lines at the same time should run in one GPC
//! (`docs/tile-order.md`, "Clusters of one GPC"):
//!
//! - Without clusters, a launch fills one GPC after the other. In a single wave, the CTAs of a GPC have
//!   consecutive tiles, and the order is the one whose runs of 16 tiles need the fewest lines.
//! - Clusters are dealt to the GPCs in turn. Where it pays they are [numbered by GPC](ByGpc), so that
//!   those of a GPC have consecutive tiles (`gpu/placement.rs`), or under split-K the same part of them.
//! - All other clusters that share one operand stand eight apart in the order, or a multiple of eight, if
//!   they need the same lines of the other one.

use gpu_kernels::order::Raster;
use gpu_kernels::{Family, KernelInfo, Schedule, TileGrid, TileOrder, split_k};

use super::choice::Choice;
use crate::l2::{self, Machine, Workload};

/// CTAs that most GPCs run at once: an H200 has seven GPCs of 16 SMs, and less than two more of others.
const CTAS_OF_GPC: u32 = 16;

/// The fewest k-blocks of whole tiles whose clusters are numbered by GPC. An id takes 0.1 µs to look up,
/// and shallow products lose more by it than they gain.
const FEWEST_K_BLOCKS: u32 = 32;

/// Sizes of groups that are compared for the lines that each GPC needs.
const GROUPS_OF_GPC: [u32; 8] = [1, 2, 3, 4, 5, 6, 8, 16];

/// Those that are compared for clusters that are dealt in turn: multiples of the number of GPCs.
const GROUPS_IN_TURN: [u32; 4] = [8, 16, 32, 64];

/// An order that gains otherwise may need so many times the bytes from and to DRAM of the one of the fewest.
pub(super) const MORE_BYTES: f64 = 1.02;

/// The operands whose requests can meet, because they are not multicast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    A,
    B,
    Both,
    Neither,
}

impl Meets {
    /// CTAs along N share A, and CTAs along M share B.
    fn of(kernel: &KernelInfo) -> Self {
        match (kernel.cluster.m, kernel.cluster.n) {
            (1, 1) => Meets::Both,
            (_, 1) => Meets::A,
            (1, _) => Meets::B,
            _ => Meets::Neither,
        }
    }
}

/// A launch, as far as that decides which of its CTAs share a GPC.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a KernelInfo,
    pub(crate) schedule: Schedule,
    /// The product divided into CTA tiles, or into cluster tiles.
    pub(crate) grid: TileGrid,
    pub(crate) batches: u32,
    /// K-blocks of a tile.
    pub(crate) k_blocks: u32,
    /// Under split-K, the number of clusters of the launch.
    pub(crate) split_k_clusters: u32,
    /// Clusters that a GPU runs at once; without clusters, CTAs.
    pub(crate) at_once: u32,
}

impl<'a> Launch<'a> {
    /// The launch of `choice`, whose tiles have `k_blocks` k-blocks.
    pub(crate) fn of_choice(choice: &'a Choice, k_blocks: u32, at_once: u32) -> Self {
        Launch {
            kernel: &choice.kernel,
            schedule: choice.schedule,
            grid: choice.grid,
            batches: choice.batches,
            k_blocks,
            split_k_clusters: choice.stream_k_ctas,
            at_once,
        }
    }

    /// Clusters that have work at once: of a single wave, or under split-K.
    pub(crate) fn clusters(&self) -> u32 {
        match self.schedule {
            Schedule::SplitK => self.split_k_clusters,
            _ => self.grid.tiles(),
        }
    }

    /// Whether all tiles are computed at once, one by each cluster.
    fn is_one_wave(&self) -> bool {
        self.schedule == Schedule::Persistent
            && self.batches == 1
            && self.grid.tiles() <= self.at_once
    }
}

/// How the clusters of a launch are numbered, where those of a GPC have consecutive places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByGpc {
    /// A cluster computes the tile of its place.
    Tiles,
    /// Under split-K, the clusters of consecutive places compute the same part of the K of consecutive
    /// tiles: they load the same lines at the same time. The parts of one tile share none.
    Parts { tiles: u32, of_tile: u32 },
}

impl ByGpc {
    /// Whether and how the clusters of `launch` are numbered by GPC: where two clusters or more need the
    /// same lines of the operand that is not multicast.
    ///
    /// Under split-K, tiles have to divide the clusters: in ranges that cross from one tile to the next,
    /// no two clusters begin at the same k-block.
    pub(crate) fn of(launch: &Launch) -> Option<Self> {
        let (kernel, tiles) = (launch.kernel, launch.grid.tiles());
        let readers = match Meets::of(kernel) {
            Meets::A => launch.grid.tiles_n,
            Meets::B => launch.grid.tiles_m,
            Meets::Both | Meets::Neither => 0,
        };
        match (launch.schedule, kernel.cluster.ctas()) {
            _ if readers < 2 || tiles == 0 || kernel.cluster.k > 1 || launch.batches > 1 => None,
            (Schedule::Persistent, 2) => {
                let pays = launch.is_one_wave() && launch.k_blocks >= FEWEST_K_BLOCKS;
                pays.then_some(ByGpc::Tiles)
            }
            (Schedule::SplitK, 2 | 4) => {
                let clusters = launch.split_k_clusters;
                let fits = !split_k::crosses(tiles, clusters) && clusters <= launch.at_once;
                fits.then_some(ByGpc::Parts {
                    tiles,
                    of_tile: clusters / tiles,
                })
            }
            _ => None,
        }
    }

    /// The id of the cluster at `place`: the index of its tile in the order, or of its part.
    pub(crate) fn id(self, place: u32) -> u32 {
        match self {
            ByGpc::Tiles => place,
            ByGpc::Parts { tiles, of_tile } => place % tiles * of_tile + place / tiles,
        }
    }
}

/// The order for `launch`, where the fewest bytes from DRAM are needed by `chosen`.
pub(super) fn order(
    launch: &Launch,
    workload: &Workload,
    machine: Machine,
    chosen: TileOrder,
) -> TileOrder {
    let kernel = launch.kernel;
    let ctas = kernel.cluster.ctas();
    let is_in_line = ctas == 1 && kernel.family == Family::Hopper && launch.is_one_wave();
    match is_in_line || ByGpc::of(launch).is_some() {
        true => nearest(kernel, launch.grid, chosen),
        false if kernel.cluster.k == 1 => in_turn(Meets::of(kernel), workload, machine, chosen),
        false => chosen,
    }
}

/// The order in which the CTAs of a GPC need the fewest lines, if they have consecutive tiles. All orders
/// of a single wave need the same bytes from DRAM.
fn nearest(kernel: &KernelInfo, grid: TileGrid, chosen: TileOrder) -> TileOrder {
    let of_gpc = CTAS_OF_GPC / kernel.cluster.ctas();
    let (height, width) = kernel.cluster_tile();
    let (of_a, of_b) = match Meets::of(kernel) {
        Meets::A => (height, 0),
        Meets::B => (0, width),
        Meets::Both => (height, width),
        Meets::Neither => return chosen,
    };
    let lines = |order: &TileOrder| {
        let raster = Raster::new(*order, grid);
        // The last GPC that needed a row or a column of tiles: ids, and so GPCs, ascend.
        let mut rows = vec![None; grid.tiles_m as usize];
        let mut columns = vec![None; grid.tiles_n as usize];
        let mut lines = 0;
        for id in 0..grid.tiles() {
            let (tile, gpc) = (raster.tile(id), Some(id / of_gpc));
            if rows[tile.m as usize] != gpc {
                rows[tile.m as usize] = gpc;
                lines += of_a;
            }
            if columns[tile.n as usize] != gpc {
                columns[tile.n as usize] = gpc;
                lines += of_b;
            }
        }
        lines
    };
    let groups = GROUPS_OF_GPC
        .into_iter()
        .flat_map(|size| [TileOrder::GroupedM { size }, TileOrder::GroupedN { size }]);
    // Of equal ones, the first.
    let orders = [chosen].into_iter().chain(groups);
    orders.min_by_key(lines).unwrap_or(chosen)
}

/// The order in groups of a multiple of eight that needs the fewest bytes from DRAM, if these are hardly
/// more than with `chosen`; otherwise `chosen`.
fn in_turn(operand: Meets, workload: &Workload, machine: Machine, chosen: TileOrder) -> TileOrder {
    let grid = workload.grid();
    let bytes = |order| l2::estimate(workload, order, machine);
    let orders = GROUPS_IN_TURN.into_iter().filter_map(|size| match operand {
        Meets::A if size < grid.tiles_m => Some(TileOrder::GroupedM { size }),
        Meets::B if size < grid.tiles_n => Some(TileOrder::GroupedN { size }),
        _ => None,
    });
    orders
        .min_by(|&a, &b| bytes(a).total_cmp(&bytes(b)))
        .filter(|&order| bytes(order) <= MORE_BYTES * bytes(chosen))
        .unwrap_or(chosen)
}

#[cfg(test)]
pub(super) mod tests {
    use gpu_kernels::entry::KERNELS;
    use gpu_kernels::{DType, OutputType};

    use super::*;
    use crate::select::place::workload;

    const L2_BYTES: u64 = 60 << 20;

    /// The launch on an H200 of the f16 kernel of this name, under split-K by so many clusters, as the
    /// choice of an order sees it.
    pub(in crate::select) fn launched(
        name: &str,
        shape: [u32; 3],
        output: OutputType,
        split_k: Option<u32>,
    ) -> (Launch<'static>, Workload, Machine) {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
        let workload = workload(kernel, shape, DType::F16, output);
        let machine = Machine {
            ctas: 132 / kernel.cluster.ctas(),
            l2_bytes: L2_BYTES,
            l2_partitions: 2,
        };
        let launch = Launch {
            kernel,
            schedule: split_k.map_or(Schedule::Persistent, |_| Schedule::SplitK),
            grid: workload.grid(),
            batches: 1,
            k_blocks: workload.tiles_k(),
            split_k_clusters: split_k.unwrap_or(0),
            at_once: machine.ctas,
        };
        (launch, workload, machine)
    }

    /// The order of such a launch, and the one that it replaces.
    fn orders(name: &str, shape: [u32; 3], split_k: Option<u32>) -> (TileOrder, TileOrder) {
        let (launch, workload, machine) = launched(name, shape, OutputType::Input, split_k);
        let chosen = l2::choose(&workload, machine);
        (order(&launch, &workload, machine, chosen), chosen)
    }

    #[test]
    fn clusters_that_need_the_same_lines_follow_each_other_in_one_wave() {
        // B is multicast, and three columns of tiles need each row of A; then A is multicast, and
        // three rows need each column of B.
        let down = "hopper_f16_ak_bk_128x208x64_cluster2x1";
        let (found, _) = orders(down, [4096, 600, 8192], None);
        assert!(
            matches!(found, TileOrder::GroupedN { size: 3.. }),
            "{found:?}"
        );
        let across = "hopper_f16_ak_bn_128x224x64_cluster1x2";
        let (found, _) = orders(across, [384, 7168, 3584], None);
        assert!(
            matches!(found, TileOrder::GroupedM { size: 3.. }),
            "{found:?}"
        );
    }

    #[test]
    fn clusters_that_need_the_same_lines_stand_eight_apart_in_several_waves() {
        let down = "hopper_f16_ak_bk_128x208x64_cluster2x1";
        let grouped = TileOrder::GroupedM { size: 8 };
        assert_eq!(orders(down, [8264, 792, 11496], None).0, grouped);
        let across = "hopper_f16_ak_bn_128x224x64_cluster1x2";
        let grouped = TileOrder::GroupedN { size: 8 };
        assert_eq!(orders(across, [384, 38912, 3584], None).0, grouped);
        // In one wave, if K is short.
        assert_eq!(
            orders(down, [4096, 600, 512], None).0,
            TileOrder::GroupedM { size: 8 }
        );
    }

    #[test]
    fn runs_of_16_tiles_are_compact_without_clusters() {
        // 5×24 tiles of 64×128: 16 tiles in groups of four rows of the five would be scattered.
        let kernel = "hopper_f16_am_bk_64x128x64";
        let (found, chosen) = orders(kernel, [320, 3072, 5536], None);
        assert_eq!(chosen, TileOrder::GroupedM { size: 4 });
        assert_eq!(found, TileOrder::GroupedN { size: 1 });
        // Several waves.
        let (found, chosen) = orders(kernel, [3200, 3072, 5536], None);
        assert_eq!(found, chosen);
    }

    #[test]
    fn clusters_of_a_gpc_have_the_same_part_of_neighbouring_tiles_under_split_k() {
        let kernel = "hopper_f16_ak_bn_128x128x64_splitk_cluster2x1";
        // 2×11 tiles in three parts: both columns of a row need the same lines of A.
        let (found, _) = orders(kernel, [408, 1296, 13968], Some(66));
        assert_eq!(found, TileOrder::GroupedM { size: 1 });
        let parts = ByGpc::Parts {
            tiles: 22,
            of_tile: 3,
        };
        let ids: Vec<u32> = (0..66).map(|place| parts.id(place)).collect();
        assert_eq!(ids[..4], [0, 3, 6, 9]);
        assert_eq!(ids[21..24], [63, 1, 4]);
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..66));
        assert_eq!(ByGpc::Tiles.id(5), 5);
    }

    #[test]
    fn other_launches_keep_their_order() {
        let keeps = |name, shape, split_k| {
            let (found, chosen) = orders(name, shape, split_k);
            assert_eq!(found, chosen, "{name}");
        };
        // Clusters that share both operands, and fewer than nine rows of clusters.
        keeps(
            "hopper_f16_ak_bk_128x128x64_cluster2x4",
            [4096, 1536, 4096],
            None,
        );
        keeps(
            "hopper_f16_ak_bk_128x136x64_cluster2x1",
            [2048, 408, 1024],
            None,
        );
        // Clusters that split K themselves, and stream-K.
        keeps("hopper_f16_ak_bk_64x64x64_split2", [512, 320, 4096], None);
        keeps(
            "hopper_f16_ak_bk_128x128x64_streamk",
            [640, 640, 4096],
            Some(100),
        );
        // Ranges that cross from one tile to the next.
        keeps(
            "hopper_f16_ak_bn_128x128x64_splitk_cluster2x1",
            [408, 1296, 13968],
            Some(60),
        );
    }
}
