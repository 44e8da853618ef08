//! Bytes from DRAM in closed form. This approximates the result of
//! [`traffic`](crate::traffic()) for the selection, which has no time for a simulation.
//!
//! A wave covers R rows and C columns of tiles, so that R·C = W tiles are in flight. The
//! next waves of its group need the same rows of A again, and the next group needs all of
//! B again. Whether they hit in L2 depends on the bytes touched in between. Hence, with s
//! bytes per element, and h(d) the probability that data survive in L2 while d other bytes
//! are touched:
//!
//! ```text
//! A: M·K·s · (1 + (waves of a group − 1) · (1 − h(a wave)))
//! B: N·K·s · (1 + (groups − 1) · (1 − h(a group)))
//! ```
//!
//! The bytes of A are multiplied by a factor for drift: readers of one block may drift so
//! far apart that L2 evicts the block between them. B has no such factor, because the
//! readers of a block of B start right after each other and stay close together.
//! `docs/tile-order.md` gives the errors of this estimate.

use gpu_kernels::TileOrder;

use crate::simulate::DRIFT_PERCENT;
use crate::workload::{Machine, Workload};

/// Standard deviation of a tile's time, as a share of that time, as in the simulation.
const DRIFT: f64 = DRIFT_PERCENT as f64 / 100.0;

/// Scales the gap between two readers at which L2 loses a block. Of the values 0.5, 1 and
/// 1.5, this one makes the choice lose the least time on the products of `docs/study`.
const SPACING: f64 = 0.5;

/// The approximate number of bytes read from DRAM. Grouped orders count with their group
/// size, and curves count as squares.
///
/// ```
/// use gpu_kernels::{Block, TileOrder};
/// use tilewise_model::{Workload, estimate, gpu::GPUS};
///
/// let product = Workload {
///     m: 8192, n: 28672, k: 8192,
///     block: Block { m: 128, n: 256, k: 64 },
///     input_bytes: 2, output_bytes: 2,
/// };
/// let h200 = GPUS[0].machine(1);
/// let gigabytes = |order| estimate(&product, order, h200) / 1e9;
/// // An H200 counted 30.0 and 4.7.
/// assert!(gigabytes(TileOrder::RowMajor) > 20.0);
/// assert!(gigabytes(TileOrder::GroupedM { size: 16 }) < 5.0);
/// ```
pub fn estimate(workload: &Workload, order: TileOrder, machine: Machine) -> f64 {
    let grid = workload.grid();
    if grid.tiles() == 0 || workload.k == 0 {
        return 0.0;
    }
    let along_m = Side {
        extent: workload.m.into(),
        tiles: grid.tiles_m.into(),
        block: workload.block.m.into(),
    };
    let along_n = Side {
        extent: workload.n.into(),
        tiles: grid.tiles_n.into(),
        block: workload.block.n.into(),
    };
    let whole = f64::from(u32::MAX);
    match order {
        TileOrder::RowMajor => grouped(workload, machine, [along_m, along_n], 1.0),
        TileOrder::ColumnMajor => grouped(workload, machine, [along_m, along_n], whole),
        TileOrder::GroupedM { size } | TileOrder::SerpentineM { size } => {
            grouped(workload, machine, [along_m, along_n], size.into())
        }
        TileOrder::GroupedN { size } | TileOrder::SerpentineN { size } => {
            grouped(workload, machine, [along_n, along_m], size.into())
        }
        TileOrder::Morton | TileOrder::Hilbert => {
            let side = square_root(f64::from(machine.ctas.clamp(1, grid.tiles())));
            grouped(workload, machine, [along_m, along_n], side)
        }
    }
}

/// One direction of C.
#[derive(Clone, Copy)]
struct Side {
    /// Number of elements.
    extent: f64,
    /// Number of tiles.
    tiles: f64,
    /// Number of elements of a tile.
    block: f64,
}

/// Groups of `size` tiles along the first side, walked along the second.
fn grouped(workload: &Workload, machine: Machine, sides: [Side; 2], size: f64) -> f64 {
    let [across, along] = sides;
    let tiles = across.tiles * along.tiles;
    let in_flight = f64::from(machine.ctas.max(1)).min(tiles);
    let depth = f64::from(workload.k);
    let bytes = f64::from(workload.input_bytes);
    let output_bytes = f64::from(workload.output_bytes);
    let l2 = machine.l2_bytes as f64;
    // Each partition of L2 holds a copy of the data that its SMs read.
    let copies = f64::from(machine.l2_partitions.max(1));
    let survives = |distance: f64| {
        let square = (distance / l2.max(1.0)) * (distance / l2.max(1.0));
        1.0 / (1.0 + square * square * square)
    };

    let group = size.clamp(1.0, across.tiles);
    // A wave is either a part of a group, or consists of whole groups.
    let is_part = group * along.tiles >= in_flight;
    let (high, wide) = match is_part {
        true => (group, (in_flight / group).max(1.0)),
        false => ((in_flight / along.tiles).min(across.tiles), along.tiles),
    };
    let lines = high * across.block + wide * along.block;
    let results = output_bytes * across.block * along.block;
    let again = survives(copies * lines * depth * bytes + in_flight * results);
    let next_group = survives(
        copies * (high * across.block + along.extent) * depth * bytes
            + high * along.tiles * results,
    );
    // Two waves load the line of tiles in which one wave ends and the next begins.
    let cut = match is_part {
        true => 1.0 + (1.0 - again) * (group - 1.0) / in_flight,
        false => 1.0 + (1.0 - next_group) * (wide - 1.0) / in_flight,
    };
    let first = across.extent * (1.0 + (along.tiles / wide - 1.0).max(0.0) * (1.0 - again));
    let second = along.extent * (1.0 + (across.tiles / high - 1.0).max(0.0) * (1.0 - next_group));
    let (first, second) = match is_part {
        true => (first, second * cut),
        false => (first * cut, second),
    };

    // Readers of a block are spread over this many elements along K, at most all of K.
    let waves = tiles / in_flight;
    let deviation = DRIFT * depth * square_root(waves) * 2.0 / 3.0;
    let window = (3.5 * deviation).min(depth);
    // L2 holds this many elements along K.
    let held = l2 / (copies * lines * bytes);
    let lost = falling(SPACING * held * wide / window.max(1e-9));
    let drifted = 1.0 + (wide - 1.0).max(0.0) * lost;
    depth * bytes * (first * drifted + second)
}

/// An approximation of e⁻ˣ for x ≥ 0, because `core` has no exponential.
fn falling(x: f64) -> f64 {
    // The reciprocal of the series of eˣ.
    1.0 / (1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0)))))
}

/// √x by Newton's iteration, because `core` has no square root.
fn square_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    for _ in 0..40 {
        let next = 0.5 * (root + x / root);
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use gpu_kernels::Block;

    use super::*;
    use crate::gpu::GPUS;

    #[test]
    fn roots_and_exponentials_are_close() {
        for x in [1e-6, 0.3, 1.0, 2.0, 62.1, 132.0, 1e9] {
            assert!((square_root(x) / x.sqrt() - 1.0).abs() < 1e-9, "{x}");
        }
        assert_eq!(square_root(0.0), 0.0);
        for x in [0.0, 0.1, 0.5, 1.0, 2.0, 3.0] {
            assert!((falling(x) / (-x).exp() - 1.0).abs() < 0.1, "{x}");
        }
        assert!(falling(20.0) < 1e-3);
    }

    #[test]
    fn nothing_is_read_less_than_once_and_nothing_to_do_reads_nothing() {
        let mut product = Workload {
            m: 1000,
            n: 3000,
            k: 500,
            block: Block {
                m: 128,
                n: 256,
                k: 64,
            },
            input_bytes: 2,
            output_bytes: 2,
        };
        for gpu in &GPUS {
            for order in TileOrder::all(5) {
                let bytes = estimate(&product, order, gpu.machine(1));
                assert!(bytes >= (1000.0 + 3000.0) * 500.0 * 2.0 - 1.0, "{order}");
            }
        }
        product.k = 0;
        assert_eq!(
            estimate(&product, TileOrder::Hilbert, GPUS[0].machine(1)),
            0.0
        );
    }
}
