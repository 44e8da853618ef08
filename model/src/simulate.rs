//! Simulates a product, CTA by CTA and step by step, with an L2 of several partitions.
//!
//! The simulation models these effects, which the counters of a GPU show
//! (`docs/tile-order.md`):
//!
//! - **Drift.** CTAs do not run in lock-step. Every tile takes a little longer or shorter
//!   than the previous tile ([`DRIFT_PERCENT`]), and the next tile goes to the first CTA
//!   that is free. In a long product, the CTAs that share a block therefore drift apart,
//!   and L2 may evict the block between two requests.
//! - **Partitions.** On GPUs whose L2 has two partitions, each partition holds the lines of
//!   half the memory, and copies of lines of the other half that its own SMs read. Data that
//!   SMs of both sides read take twice the room.
//! - **C.** Results pass through L2 and take room in it.
//! - **Sets.** The cache is set-associative ([`Cache`]).
//!
//! The simulation ignores the time that a miss costs. It also ignores that requests of
//! neighbouring SMs for the same line are merged on the way to L2, so
//! [`Traffic::l2_to_sm_bytes`] counts the requests of the SMs, and counters of L2 show less.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use gpu_kernels::{Raster, Tile, TileOrder};

use crate::cache::{Cache, hash};
use crate::workload::{Machine, Traffic, Workload};

/// Standard deviation of a tile's time, in percent of that time. It is the only fitted
/// number of the simulation.
pub(crate) const DRIFT_PERCENT: i64 = 2;

/// The approximate number of requests for units above which several k-blocks are joined
/// into one step.
const MOST_TOUCHES: u64 = 4 << 20;

/// The largest number of units into which the longer side of a tile is cut.
const MOST_UNITS: u32 = 8;

/// Number of ticks that a step of one block along K takes.
const STEP: i64 = 1 << 20;

/// Runs a product through the L2 of `machine`.
///
/// The time grows with tiles · k-blocks up to some four million steps, beyond which k-blocks
/// are joined: 16384³ with 128×256×64 tiles takes about half a second. Memory grows with the
/// blocks of A, B and C.
///
/// Blocks at the edge count the bytes they hold inside the matrix, so a cache that holds
/// everything reads exactly `(m·k + k·n) · input_bytes`.
///
/// ```
/// use gpu_kernels::{Block, TileOrder};
/// use tilewise_model::{Machine, Workload, traffic};
///
/// let product = Workload {
///     m: 4096, n: 16384, k: 512,
///     block: Block { m: 128, n: 256, k: 64 },
///     input_bytes: 2, output_bytes: 2,
/// };
/// let small_l2 = Machine { ctas: 132, l2_bytes: 4 << 20, l2_partitions: 2 };
/// let row_major = traffic(&product, TileOrder::RowMajor, small_l2);
/// let grouped = traffic(&product, TileOrder::GroupedM { size: 16 }, small_l2);
/// assert!(grouped.dram_read_bytes < row_major.dram_read_bytes);
/// ```
pub fn traffic(workload: &Workload, order: TileOrder, machine: Machine) -> Traffic {
    let Workload { m, n, k, .. } = *workload;
    let grid = workload.grid();
    let (rows, cols) = (u64::from(grid.tiles_m), u64::from(grid.tiles_n));
    let lines = u64::from(m) * cols + u64::from(n) * rows;
    let mut total = Traffic {
        requests: 2 * rows * cols * u64::from(workload.tiles_k()),
        l2_to_sm_bytes: lines * u64::from(k) * u64::from(workload.input_bytes),
        c_write_bytes: u64::from(m) * u64::from(n) * u64::from(workload.output_bytes),
        ..Traffic::default()
    };
    if total.l2_to_sm_bytes == 0 {
        return total;
    }

    let units = Units::of(workload);
    let mut l2 = L2::new(machine, &units);
    let tiles = grid.tiles();
    let raster = Raster::new(order, grid);
    let at_once = machine.ctas.clamp(1, tiles);
    let mut ctas: Vec<Cta> = (0..at_once)
        .map(|id| Cta::start(id, raster.tile(id)))
        .collect();
    let mut next = at_once;
    // The earliest CTA comes first; ties go to the lower place.
    let mut queue: BinaryHeap<_> = (0..at_once).map(|place| Reverse((0_i64, place))).collect();
    while let Some(Reverse((now, place))) = queue.pop() {
        let cta = &mut ctas[place as usize];
        let near = (place % l2.partitions) as usize;
        units.of_step(cta.tile, cta.step, |unit, bytes| l2.read(near, unit, bytes));
        cta.step += 1;
        if cta.step == units.steps {
            units.of_result(cta.id, |unit| l2.write(unit));
            if next == tiles {
                continue;
            }
            *cta = Cta::start(next, raster.tile(next));
            next += 1;
        }
        queue.push(Reverse((now + cta.ticks, place)));
    }
    total.dram_read_bytes = l2.missed_bytes;
    total.between_partitions_bytes = l2.crossed_bytes;
    total
}

/// A place on an SM, and the tile that it computes.
struct Cta {
    id: u32,
    tile: Tile,
    step: u32,
    /// The time that each step takes.
    ticks: i64,
}

impl Cta {
    fn start(id: u32, tile: Tile) -> Cta {
        // The sum of four 16-bit numbers is nearly normal; its mean is 131,070 and its
        // standard deviation 65536/√3 = 37,837.
        let bits = hash(u64::from(id) + 1);
        let sum: i64 = (0..4).map(|at| (bits >> (16 * at) & 0xffff) as i64).sum();
        let deviation = (sum - 131_070) * (STEP * DRIFT_PERCENT / 100) / 37_837;
        Cta {
            id,
            tile,
            step: 0,
            ticks: STEP + deviation,
        }
    }
}

/// How A, B and C are cut into units, which have equal bytes except at the edges.
struct Units {
    workload: Workload,
    /// Number of rows of A, or columns of B, of a unit.
    lines: u32,
    /// Number of columns of A, or rows of B, of a unit.
    depth: u32,
    /// Number of units along K.
    steps: u32,
    /// Bytes of a whole unit.
    bytes: u64,
    /// Number of units of A, and of units of B, that a tile needs in one step.
    of_a: u32,
    of_b: u32,
    /// Number of units of a tile of C.
    of_c: u32,
    /// Number of the first unit of B, and of C.
    first_b: u32,
    first_c: u32,
}

impl Units {
    fn of(workload: &Workload) -> Units {
        let Workload { k, block, .. } = *workload;
        let grid = workload.grid();
        let (short, long) = (block.m.min(block.n), block.m.max(block.n));
        let lines = short.max(long.div_ceil(MOST_UNITS)).max(1);
        let (of_a, of_b) = (block.m.div_ceil(lines), block.n.div_ceil(lines));
        let touches = u64::from(grid.tiles_m)
            * u64::from(grid.tiles_n)
            * u64::from(of_a + of_b)
            * u64::from(workload.tiles_k());
        let joined = touches.div_ceil(MOST_TOUCHES);
        let depth = u64::from(block.k.max(1))
            .saturating_mul(joined)
            .min(k.into()) as u32;
        let steps = k.div_ceil(depth);
        let bytes = u64::from(lines) * u64::from(depth) * u64::from(workload.input_bytes);
        let c_bytes = u64::from(block.m) * u64::from(block.n) * u64::from(workload.output_bytes);
        // Numbers wrap past 2³². Two units with the same number only cause a hit too many.
        let first_b = grid.tiles_m.wrapping_mul(of_a).wrapping_mul(steps);
        let first_c = grid.tiles_n.wrapping_mul(of_b).wrapping_mul(steps);
        Units {
            workload: *workload,
            lines,
            depth,
            steps,
            bytes,
            of_a,
            of_b,
            of_c: c_bytes.div_ceil(bytes.max(1)) as u32,
            first_b,
            first_c: first_b.wrapping_add(first_c),
        }
    }

    /// The largest possible number of units of A, B and C.
    fn in_all(&self) -> u64 {
        let grid = self.workload.grid();
        let (rows, cols) = (u64::from(grid.tiles_m), u64::from(grid.tiles_n));
        let inputs = rows * u64::from(self.of_a) + cols * u64::from(self.of_b);
        inputs * u64::from(self.steps) + rows * cols * u64::from(self.of_c)
    }

    /// The units of A and B that `tile` needs in `step`, with their bytes.
    fn of_step(&self, tile: Tile, step: u32, mut read: impl FnMut(u32, u64)) {
        let Workload { m, n, k, block, .. } = self.workload;
        let depth = u64::from(self.depth.min(k - step * self.depth));
        let mut operand = |first: u32, place: u32, units: u32, block: u32, extent: u32| {
            for unit in 0..units {
                let inside = unit * self.lines;
                let start = u64::from(place) * u64::from(block) + u64::from(inside);
                let lines = u64::from(extent)
                    .saturating_sub(start)
                    .min(self.lines.min(block - inside).into());
                if lines == 0 {
                    break;
                }
                let number = (place.wrapping_mul(units).wrapping_add(unit))
                    .wrapping_mul(self.steps)
                    .wrapping_add(step);
                let bytes = lines * depth * u64::from(self.workload.input_bytes);
                read(first.wrapping_add(number), bytes);
            }
        };
        operand(0, tile.m, self.of_a, block.m, m);
        operand(self.first_b, tile.n, self.of_b, block.n, n);
    }

    /// The units of the tile of C that CTA `id` computes.
    fn of_result(&self, id: u32, mut write: impl FnMut(u32)) {
        let first = self.first_c.wrapping_add(id.wrapping_mul(self.of_c));
        for unit in 0..self.of_c {
            write(first.wrapping_add(unit));
        }
    }
}

/// All partitions of L2. Every partition is the home of an equal part of each unit.
struct L2 {
    caches: Vec<Cache>,
    partitions: u32,
    missed_bytes: u64,
    crossed_bytes: u64,
}

impl L2 {
    fn new(machine: Machine, units: &Units) -> L2 {
        let partitions = machine.l2_partitions.max(1);
        // A partition has a share of the bytes, and holds the same share of each unit.
        // With eight times the existing units, no set is ever full; more room is useless.
        let room = (machine.l2_bytes / units.bytes.max(1)).min(8 * units.in_all());
        L2 {
            caches: (0..partitions).map(|_| Cache::new(room as usize)).collect(),
            partitions,
            missed_bytes: 0,
            crossed_bytes: 0,
        }
    }

    /// Reads a unit for an SM at the partition `near`.
    fn read(&mut self, near: usize, unit: u32, bytes: u64) {
        let parts = u64::from(self.partitions);
        for home in 0..self.caches.len() {
            let index = home as u64;
            let part_bytes = bytes * (index + 1) / parts - bytes * index / parts;
            let part = self.part(unit, home);
            if self.caches[near].touch(part) {
                continue;
            }
            if home != near {
                self.crossed_bytes += part_bytes;
                if self.caches[home].touch(part) {
                    continue;
                }
            }
            self.missed_bytes += part_bytes;
        }
    }

    /// Writes a unit, each part at its home.
    fn write(&mut self, unit: u32) {
        for home in 0..self.caches.len() {
            let part = self.part(unit, home);
            self.caches[home].touch(part);
        }
    }

    fn part(&self, unit: u32, home: usize) -> u32 {
        unit.wrapping_mul(self.partitions).wrapping_add(home as u32)
    }
}

#[cfg(test)]
mod tests;
