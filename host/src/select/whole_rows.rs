//! Launches whose tiles are best walked in whole rows or columns, without groups.
//!
//! - **Writing takes longer than multiplying.** Where K is so short, operands stay in L2, and all orders
//!   read about the same bytes from DRAM. What differs is where the CTAs write at the same time: along
//!   the contiguous direction of C, a tile continues the lines of the tile before it, and otherwise each
//!   tile has short pieces of other lines. 11184×11800×128 tt takes 116 µs in rows of tiles and 152 in
//!   columns.
//! - **Ranges of k-blocks cross from tile to tile** under split-K. In whole rows, the ranges of one row
//!   begin at the same depths of the same columns as those of the next, where the rows divide the CTAs.
//!   So an operand that L2 cannot hold is read once for all rows: 95×7217×14095 nt takes 8 % less time.
//!
//! `docs/perf-log.md`, "Code that is there, and whole rows of tiles", has the times.

use gpu_kernels::{Family, Schedule, TileOrder, split_k};

use super::gpc::{Launch, MORE_BYTES};
use crate::l2::{self, Machine, Workload};

/// Bytes of a line of A along K for each byte of an element of C, up to which writing takes longer than
/// multiplying: an H200 writes 4 TB/s, and multiplies 700 TFLOP/s of f16 and half of that of TF32.
const K_BYTES_PER_BYTE_OF_C: u64 = 176;

/// The order of `launch` if it is one without groups; `fewest` is the order of the fewest bytes from DRAM.
pub(super) fn order(
    launch: &Launch,
    workload: &Workload,
    machine: Machine,
    fewest: TileOrder,
) -> Option<TileOrder> {
    match launch.schedule {
        _ if launch.kernel.family != Family::Hopper || launch.batches > 1 => None,
        Schedule::Persistent => along_c(launch, workload, machine, fewest),
        Schedule::SplitK => at_same_depths(launch, workload, machine),
        _ => None,
    }
}

/// Whether L2 cannot hold `bytes` beside what else passes it: three quarters of it. An H200 has 63 MB, and
/// rows gained in the mean of 19 products with a C of 47 MB and more, and lost in that of 15 below 43.
fn exceeds_l2(bytes: f64, machine: Machine) -> bool {
    bytes > 0.75 * machine.l2_bytes as f64
}

/// The order along the contiguous direction of C, if writing it takes longer than multiplying, in several
/// waves, and if it needs hardly more bytes than `fewest`. L2 writes back a C that it holds in an order of its
/// own.
fn along_c(
    launch: &Launch,
    workload: &Workload,
    machine: Machine,
    fewest: TileOrder,
) -> Option<TileOrder> {
    let order = match launch.kernel.c_along_m {
        true => TileOrder::ColumnMajor,
        false => TileOrder::RowMajor,
    };
    let bytes = |order| bytes_of_c(workload) + l2::estimate(workload, order, machine);
    let pays = is_written_past_l2(workload, machine)
        && launch.grid.tiles() > launch.at_once
        && bytes(order) <= MORE_BYTES * bytes(fewest);
    pays.then_some(order)
}

/// Whether writing C takes longer than multiplying, and L2 cannot hold it.
pub(super) fn is_written_past_l2(workload: &Workload, machine: Machine) -> bool {
    let [input, output] = [workload.input_bytes, workload.output_bytes].map(u64::from);
    u64::from(workload.k) * input <= K_BYTES_PER_BYTE_OF_C * output
        && exceeds_l2(bytes_of_c(workload), machine)
}

fn bytes_of_c(workload: &Workload) -> f64 {
    f64::from(workload.m) * f64::from(workload.n) * f64::from(workload.output_bytes)
}

/// Rows of tiles where ranges cross, and all rows read a B that L2 cannot hold; or columns, of A.
fn at_same_depths(launch: &Launch, workload: &Workload, machine: Machine) -> Option<TileOrder> {
    let (grid, ctas) = (launch.grid, launch.split_k_clusters);
    let bytes =
        |extent: u32| f64::from(extent) * f64::from(workload.k) * f64::from(workload.input_bytes);
    let shares = |lines: u32, extent: u32| {
        lines > 1 && ctas.is_multiple_of(lines) && exceeds_l2(bytes(extent), machine)
    };
    match split_k::crosses(grid.tiles(), ctas) {
        true if shares(grid.tiles_m, workload.n) => Some(TileOrder::RowMajor),
        true if shares(grid.tiles_n, workload.m) => Some(TileOrder::ColumnMajor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::OutputType;

    use super::*;
    use crate::select::gpc::tests::launched;

    /// The order on an H200 of the kernel of this name, under split-K by so many CTAs.
    fn order_of(
        name: &str,
        shape: [u32; 3],
        output: OutputType,
        split_k: Option<u32>,
    ) -> Option<TileOrder> {
        let (launch, workload, machine) = launched(name, shape, output, split_k);
        order(&launch, &workload, machine, l2::choose(&workload, machine))
    }

    #[test]
    fn shallow_products_are_written_along_their_lines() {
        let along = |name, shape| order_of(name, shape, OutputType::Input, None);
        let (row_major, column_major) = (TileOrder::RowMajor, TileOrder::ColumnMajor);
        let plain = "hopper_f16_am_bk_128x192x64";
        assert_eq!(along(plain, [11184, 11800, 128]), Some(row_major));
        let clusters = "hopper_f16_am_bn_128x192x64_cluster2x1";
        assert_eq!(along(clusters, [10128, 6712, 72]), Some(row_major));
        let along_m = "hopper_f16_ak_bk_cm_192x160x64_cluster1x2";
        assert_eq!(along(along_m, [15256, 8040, 168]), Some(column_major));
        // Deeper, a C that L2 holds, and one wave.
        assert_eq!(along(plain, [11184, 11800, 192]), None);
        assert_eq!(along(plain, [1984, 6072, 144]), None);
        assert_eq!(along(plain, [1280, 1920, 64]), None);
        // An f32 C takes twice as long to write.
        let wide = order_of(plain, [11184, 11800, 192], OutputType::F32, None);
        assert_eq!(wide, Some(row_major));
    }

    #[test]
    fn ranges_that_cross_begin_at_the_same_depths_in_whole_rows() {
        let of = |shape, ctas| {
            let name = "hopper_f16_ak_bk_64x128x64_unaligned_splitk";
            order_of(name, shape, OutputType::Input, Some(ctas))
        };
        assert_eq!(of([95, 7217, 14095], 132), Some(TileOrder::RowMajor));
        assert_eq!(of([7217, 195, 14095], 132), Some(TileOrder::ColumnMajor));
        // An odd number of CTAs, ranges that do not cross, and a B that stays in L2.
        assert_eq!(of([95, 7217, 14095], 131), None);
        assert_eq!(of([95, 7217, 14095], 114), None);
        assert_eq!(of([75, 2758, 5618], 132), None);
    }
}
