//! What a tile order asks of L2, and what L2 then asks of DRAM: a first model.
//!
//! Two questions, both answered by arithmetic alone (no GPU):
//!
//! 1. [`block_loads`]: how many blocks of A and B does one wave touch? This is
//!    the count in Triton's matmul tutorial, "L2 Cache Optimizations".
//! 2. [`traffic`]: with an L2 of a given size, how many of the requests hit,
//!    and how many bytes come from DRAM?
//!
//! A *wave* is the set of consecutive tile ids that run at once; a *block* is
//! one step along K of one operand: BLOCK_M×BLOCK_K of A or BLOCK_K×BLOCK_N of
//! B. Both functions call [`TileOrder::tile`], the function the kernels call.
//!
//! The model leaves out: drift between CTAs (a wave runs in lock-step), the two
//! partitions of Hopper's L2, associativity (the cache is one LRU list), and
//! the room that C takes on its way out. It gives the size of an effect, not
//! the third digit.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod gpu;
mod lru;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use gpu_kernels::{Block, TileGrid, TileOrder};

use lru::Lru;

/// The blocks that one wave of tiles needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLoads {
    /// Tiles in the wave; the last wave may be short.
    pub tiles: u32,
    /// Loads if nothing were shared: each tile brings its own A and B.
    pub uncached: u64,
    /// Distinct blocks of A.
    pub a: u64,
    /// Distinct blocks of B.
    pub b: u64,
}

impl WaveLoads {
    /// Loads if the wave shares every block: [`Self::a`] + [`Self::b`].
    pub fn shared(&self) -> u64 {
        self.a + self.b
    }
}

/// Block loads of each wave of `wave` consecutive tiles, for a product whose
/// K is `tiles_k` blocks deep. A `wave` of 0 means 1.
///
/// The example of Triton's tutorial: 9×9 tiles, 9 blocks deep, on 9 SMs.
///
/// ```
/// use gpu_kernels::{TileGrid, TileOrder};
/// use tilewise_model::block_loads;
///
/// let grid = TileGrid { tiles_m: 9, tiles_n: 9 };
/// let first = |order| block_loads(order, grid, 9, 9).next().unwrap();
///
/// // One row of tiles: 9 blocks of A, and all 81 of B.
/// let row_major = first(TileOrder::RowMajor);
/// assert_eq!(row_major.uncached, 162);
/// assert_eq!((row_major.a, row_major.b, row_major.shared()), (9, 81, 90));
///
/// // A 3×3 square of tiles: 27 blocks of each.
/// let grouped = first(TileOrder::GroupedM { size: 3 });
/// assert_eq!(grouped.uncached, 162);
/// assert_eq!((grouped.a, grouped.b, grouped.shared()), (27, 27, 54));
/// ```
pub fn block_loads(
    order: TileOrder,
    grid: TileGrid,
    tiles_k: u32,
    wave: u32,
) -> impl Iterator<Item = WaveLoads> {
    waves(order, grid, wave).map(move |panels| WaveLoads {
        tiles: panels.tiles,
        uncached: 2 * u64::from(panels.tiles) * u64::from(tiles_k),
        a: panels.rows.len() as u64 * u64::from(tiles_k),
        b: panels.cols.len() as u64 * u64::from(tiles_k),
    })
}

/// One product, as the cache sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// CTA tile.
    pub block: Block,
    /// Bytes of one element of A and B.
    pub input_bytes: u32,
    /// Bytes of one element of C.
    pub output_bytes: u32,
}

impl Workload {
    /// The tile grid of C.
    pub fn grid(&self) -> TileGrid {
        TileGrid::cover(self.m, self.n, self.block.m, self.block.n)
    }

    /// Steps along K.
    pub fn tiles_k(&self) -> u32 {
        self.k.div_ceil(self.block.k.max(1))
    }
}

/// The part of a GPU that the model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CTAs that run at once: SMs × CTAs an SM holds. 0 means 1.
    pub ctas: u32,
    /// Capacity of L2, bytes.
    pub l2_bytes: u64,
}

/// What [`traffic`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Blocks that CTAs ask L2 for: two for each tile and step along K.
    pub requests: u64,
    /// Requests that L2 answers itself.
    pub hits: u64,
    /// Requests that go to DRAM.
    pub misses: u64,
    /// Bytes of all requests, which travel from L2 to the SMs.
    pub l2_to_sm_bytes: u64,
    /// Bytes of the misses.
    pub dram_read_bytes: u64,
    /// Bytes of C, written once.
    pub c_write_bytes: u64,
}

impl Traffic {
    /// Hits over requests, 0 to 1; 1 when nothing was requested.
    pub fn hit_rate(&self) -> f64 {
        if self.requests == 0 {
            1.0
        } else {
            self.hits as f64 / self.requests as f64
        }
    }
}

/// Runs a product through an L2 of `machine.l2_bytes`, least recently used
/// block out first.
///
/// The CTAs of a wave move along K in lock-step. In one step they ask for
/// the same few blocks many times, so the simulation touches each distinct
/// block once: it hits or misses, and the other requests for it hit. That keeps
/// the cost at Σ over waves of (rows + columns) · steps: about a million touches
/// for 16384³ with 128×256×64 tiles.
///
/// Blocks at the edge count the bytes they hold inside the matrix, so a cache
/// that holds everything reads exactly `(m·k + k·n) · input_bytes`.
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
/// let small_l2 = Machine { ctas: 132, l2_bytes: 4 << 20 };
/// let row_major = traffic(&product, TileOrder::RowMajor, small_l2);
/// let grouped = traffic(&product, TileOrder::GroupedM { size: 16 }, small_l2);
/// assert!(grouped.dram_read_bytes < row_major.dram_read_bytes);
/// ```
pub fn traffic(workload: &Workload, order: TileOrder, machine: Machine) -> Traffic {
    let grid = workload.grid();
    let tiles_k = workload.tiles_k();
    let blocks_a = grid.tiles_m as usize * tiles_k as usize;
    let blocks_b = grid.tiles_n as usize * tiles_k as usize;
    let mut cache = Lru::new(blocks_a + blocks_b, machine.l2_bytes);
    let mut total = Traffic {
        c_write_bytes: u64::from(workload.m)
            * u64::from(workload.n)
            * u64::from(workload.output_bytes),
        ..Traffic::default()
    };

    let rows_of = |tile: u32| extent(workload.m, workload.block.m, tile);
    let cols_of = |tile: u32| extent(workload.n, workload.block.n, tile);
    for wave in waves(order, grid, machine.ctas) {
        for step in 0..tiles_k {
            let depth =
                extent(workload.k, workload.block.k, step) * u64::from(workload.input_bytes);
            for &(row, ctas) in &wave.rows {
                let block = row as usize * tiles_k as usize + step as usize;
                total.count(&mut cache, block, rows_of(row) * depth, ctas);
            }
            for &(col, ctas) in &wave.cols {
                let block = blocks_a + col as usize * tiles_k as usize + step as usize;
                total.count(&mut cache, block, cols_of(col) * depth, ctas);
            }
        }
    }
    total
}

/// Runs requests through an L2 of `l2_bytes`, in their order: pairs of what is asked
/// for, by any number, and its bytes. [`traffic`] makes up such requests from a tile
/// order; an emulated kernel makes its own.
///
/// ```
/// use tilewise_model::replay;
///
/// // Room for two blocks: the third drives out the first.
/// let traffic = replay([(1, 64), (2, 64), (1, 64), (2, 64), (3, 64), (1, 64)], 128);
/// assert_eq!((traffic.requests, traffic.hits, traffic.misses), (6, 2, 4));
/// assert_eq!(traffic.dram_read_bytes, 4 * 64);
/// ```
pub fn replay(requests: impl IntoIterator<Item = (u64, u64)>, l2_bytes: u64) -> Traffic {
    let requests: Vec<_> = requests.into_iter().collect();
    let mut blocks = BTreeMap::new();
    for (block, _) in &requests {
        let next = blocks.len();
        blocks.entry(*block).or_insert(next);
    }
    let mut cache = Lru::new(blocks.len(), l2_bytes);
    let mut total = Traffic::default();
    for (block, bytes) in requests {
        total.count(&mut cache, blocks[&block], bytes, 1);
    }
    total
}

impl Traffic {
    /// `ctas` requests for one block in one step.
    fn count(&mut self, cache: &mut Lru, block: usize, bytes: u64, ctas: u32) {
        let ctas = u64::from(ctas);
        self.requests += ctas;
        self.l2_to_sm_bytes += ctas * bytes;
        if cache.touch(block, bytes) {
            self.hits += ctas;
        } else {
            self.hits += ctas - 1;
            self.misses += 1;
            self.dram_read_bytes += bytes;
        }
    }
}

/// Elements of `total` in block `index`.
fn extent(total: u32, block: u32, index: u32) -> u64 {
    let start = u64::from(block) * u64::from(index);
    (u64::from(total) - start).min(u64::from(block))
}

/// The panels of A (rows of tiles) and of B (columns of tiles) of one wave,
/// each with the number of CTAs that read it.
struct Panels {
    tiles: u32,
    rows: Vec<(u32, u32)>,
    cols: Vec<(u32, u32)>,
}

/// Cuts the ids `0..grid.tiles()` into waves.
fn waves(order: TileOrder, grid: TileGrid, wave: u32) -> impl Iterator<Item = Panels> {
    let tiles = grid.tiles();
    let wave = wave.max(1);
    (0..tiles.div_ceil(wave)).map(move |index| {
        let ids = index * wave..(index * wave).saturating_add(wave).min(tiles);
        let in_wave = ids.len() as u32;
        let (rows, cols) = ids
            .map(|id| order.tile(grid, id))
            .map(|tile| (tile.m, tile.n))
            .unzip();
        Panels {
            tiles: in_wave,
            rows: with_counts(rows),
            cols: with_counts(cols),
        }
    })
}

/// The distinct values, ascending, each with how often it occurs.
fn with_counts(mut values: Vec<u32>) -> Vec<(u32, u32)> {
    values.sort_unstable();
    values
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], run.len() as u32))
        .collect()
}

#[cfg(test)]
mod tests;
