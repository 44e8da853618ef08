//! What a kernel is expected to take, in cycles of an SM.
//!
//! ```text
//! waves   = clusters that have a tile / clusters that run at once, rounded up
//! asked   = cycles that one CTA takes to request its bytes
//! loads   = bytes that one CTA takes from L2, without the bytes that a neighbour requests too
//! k_block = max(arithmetic, asked, loads) + waits + power     BLOCK_K of one tile
//! cycles  = start + waves · (k_blocks · k_block + store)
//! ```
//!
//! Under the ping-pong schedule one consumer stores while the other multiplies: the longer
//! of the two counts, and of the stores only that of the last tile shows. An order barrier
//! stands between the consumers' main loops:
//!
//! ```text
//! cycles = start + waves · (max(k_blocks · k_block, store) + order_barrier) + store
//! ```
//!
//! Under stream-K the number of waves is rounded down, and the tiles that are left are cut
//! along K among some of the CTAs. The CTA that finishes a tile adds up the accumulators of
//! all its parts, which the other CTAs leave in a workspace (the paper's *fix-up*):
//!
//! ```text
//! last wave = tiles · k_blocks / ctas · k_block + write
//!             + latency + (ctas / tiles − 1) · read + store
//! ```
//!
//! With more CTAs each computes less, and the finishing CTA reads more; the number with the
//! fewest cycles is taken. (The paper's "grid size selection", section 5.1, weighs the
//! same.)
//!
//! The number of waves decides between tiles: a large tile computes more for
//! each byte it loads, but leaves SMs idle in the last wave. The rates below
//! are those of an SM of an H100 or H200. Other devices have other rates, but
//! similar ratios between their units, and a comparison needs only the ratios.

use gpu_kernels::{DType, Family, KernelInfo, TileGrid};

use super::check;
use super::choice::{Choice, Packed};
use crate::problem::{CACHE_LINE, Problem, Target};
use crate::tma::{GlobalTensor, Unreadable};

/// Which operands have lines that begin in the middle of a cache line, so that each
/// 128 bytes of them take two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MidLine {
    /// A.
    pub a: bool,
    /// B.
    pub b: bool,
}

impl MidLine {
    /// As `kernel` reads the operands of `problem`, where it reads them through TMA.
    /// Those that are packed first begin on cache lines.
    pub(super) fn of(kernel: &KernelInfo, problem: &Problem, packed: Packed) -> Self {
        if kernel.family != Family::Hopper {
            return MidLine::default();
        }
        let is = |tensor: Result<GlobalTensor, Unreadable>, alignment: u64| {
            tensor.is_ok_and(|tensor| !(alignment | tensor.pitch_bytes).is_multiple_of(CACHE_LINE))
        };
        let a = GlobalTensor::of_a(problem, check::a_major(kernel, problem));
        let b = GlobalTensor::of_b(problem, check::b_major(kernel, problem));
        MidLine {
            a: !packed.a && is(a, problem.a.alignment),
            b: !packed.b && is(b, problem.b.alignment),
        }
    }
}

/// FLOP a cycle that an SM sustains in the main loop of a kernel: for hopper
/// the peak of `wgmma` (4096 for 16-bit types), for the others the share of
/// their unit's peak seen at 4096³ on an H200.
fn flop_per_cycle(kernel: &KernelInfo) -> u64 {
    match (kernel.family, kernel.input) {
        (Family::Hopper, DType::Tf32) => 2048,
        (Family::Hopper, _) => 4096,
        (Family::TensorCore, DType::Tf32) => 900,
        (Family::TensorCore, _) => 2300,
        (Family::Tiled, _) => 160,
        (Family::Naive | Family::Pack, _) => 20,
    }
}

/// Tenths of a cycle that the SM needs to ask for 128 bytes: a cache line, and the
/// ends of two. On an H200 the first is what limits 64×64 and 64×128 tiles at 2048³,
/// the second that of ten kernels at 3000³ and 4104³.
const ASKING: (u64, u64) = (17, 38);

/// What L2 is asked for, of the lines that CTAs next to each other in the order
/// ask for. Such CTAs run on the same GPC, whose requests for a line are made once
/// if they meet (`docs/tile-order.md`): counted on an H200, 0.4 to 0.65 of the bytes
/// get through, 0.66 to 0.88 with one tile a CTA. Those of clusters hardly meet, for
/// the clusters are dealt out over all GPCs: 0.86 to 1.0.
const MADE_ONCE: (u64, u64) = (2, 3);

/// Bytes a cycle that L2 delivers to one SM, counting the requests that reach L2. From the
/// same tiles; with the requests that meet before L2 it is 75.
const LOADED_PER_CYCLE: u64 = 50;

/// Loads that cost a cycle although arithmetic hides them: a large product runs
/// at the power limit, where bytes moved are taken from the clock. From 128×128
/// against 128×256 tiles at 4096³ on an H200: in as many cycles 1 % slower cold,
/// 3 % sustained, with 4/3 of the bytes.
const LOADED_PER_CYCLE_OF_POWER: u64 = 530;

/// Cycles a k-block that the tensor cores wait where a CTA has one consumer: they are idle
/// while it waits for a stage and releases one. From 64×128 against
/// 128×64 tiles at 1024³ on an H200, 4 % slower cold, 10 % sustained.
const ALONE: u64 = 40;

/// Cycles a k-block that CTAs which share loads wait for each other. From 128×64 tiles at
/// 256×4096×4096 on an H200: in clusters of 1×2 10 % slower, with a third fewer bytes.
const COUPLED: u64 = 100;

/// Cycles that the first tiles wait longer for their operands, which come from DRAM, the
/// smaller the pipeline is: none where it fills shared memory, and all of these where it
/// has no stage.
/// From 128×256 tiles at 2048³ on an H200: with four stages for three 2 % faster
/// cold.
const FILL: u64 = 4000;

/// Bytes of a pipeline that fills shared memory.
const FULL_PIPELINE: u64 = 192 << 10;

/// Cycles that a tile's store takes longer where the m64 tiles of a consumer are staged in
/// parts. From the same two kernels: alike at two waves of tiles, 0.5 % slower at
/// four and more.
const STAGED_IN_PARTS: u64 = 600;

/// Bytes a cycle that leave an SM for C.
const STORED_PER_CYCLE: u64 = 64;

/// Cycles between the multiplies of one tile and the multiplies of the next, without
/// the cycles that C takes to leave. By the SM's clock on an H200: 1,640 in all for
/// 128×256 tiles of f16.
const BETWEEN_TILES: u64 = 600;

/// Cycles at the order barrier of the ping-pong schedule: from the last multiply of one
/// consumer to the first of the other. From 128×192 tiles at 8192×8192×1024 on an H200,
/// where ping-pong is 7 % faster than the cooperative schedule.
const ORDER_BARRIER: u64 = 450;

/// Cycles to start clusters and stop them together. On an H200, at 2048³.
const CLUSTER_LATENCY: u64 = 1200;

/// Cycles for the CTAs of a cluster that split K to exchange their accumulators, however
/// many CTAs there are: all send at once, before one barrier.
const EXCHANGE_LATENCY: u64 = 1500;

/// Cycles from the stores of a CTA's accumulators, past the fence in L2, to another CTA's
/// loads of them: two to three microseconds.
const FIX_UP_LATENCY: u64 = 4000;

/// By how much stream-K has to be better, in percent: its gain depends on rates that do
/// not enter the other estimates.
const STREAM_K_MARGIN: u64 = 5;

/// An estimate to compare kernels by: smaller is better, cycles first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Cycles from first to last.
    pub cycles: u64,
    /// Bytes that one k-block of one CTA takes from L2.
    pub loads: u64,
}

/// What `choice` takes for `problem`.
pub(crate) fn of_choice(choice: &Choice, problem: &Problem, target: &Target) -> Cost {
    let (kernel, packed) = (&choice.kernel, choice.packed);
    let mid_line = match choice.transposed {
        true => MidLine::of(kernel, &problem.transposed(), packed),
        false => MidLine::of(kernel, problem, packed),
    };
    estimate(kernel, choice.grid, problem.k, mid_line, target)
}

/// What `kernel` takes for `grid` tiles (of its clusters) and a depth of `k`. The estimate
/// of a kernel for stream-K includes the margin by which it has to be better.
pub fn estimate(
    kernel: &KernelInfo,
    grid: TileGrid,
    k: u32,
    mid_line: MidLine,
    target: &Target,
) -> Cost {
    let work = Work::of(kernel, grid, k, mid_line, target);
    let cycles = if kernel.stream_k_bytes > 0 {
        let (cycles, _) = work.stream_k();
        cycles * 100 / (100 - STREAM_K_MARGIN)
    } else {
        work.tiles.div_ceil(work.at_once) * work.wave() + work.last_store()
    };
    let cluster = match kernel.cluster.ctas() {
        1 => 0,
        _ => CLUSTER_LATENCY,
    };
    Cost {
        cycles: fill(kernel) + cluster + cycles,
        loads: work.loads,
    }
}

/// How many CTAs compute the tiles that fill no wave of `grid`, by a kernel for stream-K.
///
/// At least one for each of those tiles, and two where a tile has two k-blocks and there
/// are CTAs; at most the CTAs that run at once; 1 where no tile is left over. The operands
/// are taken to begin on cache lines, whether they do or not: the place at which a tile is
/// cut decides the order in which its products are added up, and the result must not
/// depend on an address.
pub fn stream_k_ctas(kernel: &KernelInfo, grid: TileGrid, k: u32, target: &Target) -> u32 {
    let (_, ctas) = Work::of(kernel, grid, k, MidLine::default(), target).stream_k();
    ctas as u32
}

/// Whether `kernel` may be worth measuring: a kernel for stream-K only where there is more
/// than one wave of tiles and the last one is not full.
pub(super) fn can_gain(kernel: &KernelInfo, grid: TileGrid, target: &Target) -> bool {
    let (tiles, at_once) = (grid.tiles(), target.clusters_at_once(kernel));
    kernel.stream_k_bytes == 0 || tiles > at_once && !tiles.is_multiple_of(at_once)
}

/// Cycles that the first tiles of a hopper kernel wait longer than behind the largest
/// pipeline.
fn fill(kernel: &KernelInfo) -> u64 {
    match kernel.family {
        Family::Hopper => {
            FILL * FULL_PIPELINE.saturating_sub(kernel.pipeline_bytes.into()) / FULL_PIPELINE
        }
        _ => 0,
    }
}

/// Whether a consumer of a hopper kernel has no room to stage 64 rows of a 16-bit
/// tile at once.
fn stages_in_parts(kernel: &KernelInfo) -> bool {
    kernel.staging_bytes < kernel.consumers * 64 * kernel.block.n * 2
}

/// What an estimate is made from; all times in cycles.
struct Work {
    /// Tiles of a cluster.
    tiles: u64,
    /// Those that run at once.
    at_once: u64,
    /// K-blocks of one CTA for one tile.
    k_blocks: u64,
    /// One k-block.
    k_block: u64,
    /// Bytes that one k-block takes from L2.
    loads: u64,
    /// From a tile's last k-block to its last byte of C.
    store: u64,
    /// Whether it is hidden behind the main loop of the next tile.
    ping_pong: bool,
    /// Bytes of a tile's accumulators.
    accumulators: u64,
}

impl Work {
    fn of(kernel: &KernelInfo, grid: TileGrid, k: u32, mid_line: MidLine, target: &Target) -> Work {
        let (block, cluster) = (kernel.block, kernel.cluster);
        let [m, n, depth] = [block.m, block.n, block.k].map(u64::from);
        let arithmetic = 2 * m * n * depth / flop_per_cycle(kernel);
        // One CTA's share of what its cluster loads together.
        let (rows, columns) = (m / u64::from(cluster.n), n / u64::from(cluster.m));
        let bytes = depth * u64::from(kernel.input.bytes());
        let asking = |mid_line| if mid_line { ASKING.1 } else { ASKING.0 };
        let asked = rows * asking(mid_line.a) + columns * asking(mid_line.b);
        let taken = |lines, neighbours: u32| match (cluster.ctas(), neighbours) {
            (1, 2..) => lines * MADE_ONCE.0 / MADE_ONCE.1,
            _ => lines,
        };
        let loads = (taken(rows, grid.tiles_n) + taken(columns, grid.tiles_m)) * bytes;
        let alone = u64::from(kernel.consumers == 1);
        let coupled = u64::from(cluster.sharing() > 1);
        let waits = alone * ALONE + coupled * COUPLED;
        let arrived = (asked * bytes / (10 * CACHE_LINE)).max(loads / LOADED_PER_CYCLE);
        let k_block = arithmetic.max(arrived) + waits + loads / LOADED_PER_CYCLE_OF_POWER;

        // Each CTA stores one part of the tile, and sends the others away as f32.
        let parts = u64::from(cluster.k);
        let part = m * n / parts;
        let exchange = if parts > 1 {
            EXCHANGE_LATENCY + (parts - 1) * 4 * part / STORED_PER_CYCLE
        } else {
            0
        };
        Work {
            tiles: u64::from(grid.tiles_m) * u64::from(grid.tiles_n),
            at_once: target.clusters_at_once(kernel).into(),
            k_blocks: u64::from(k).div_ceil(depth).div_ceil(parts),
            k_block: k_block * u64::from(kernel.ctas_per_sm),
            loads,
            store: BETWEEN_TILES
                + part * u64::from(kernel.input.bytes()) / STORED_PER_CYCLE
                + u64::from(stages_in_parts(kernel)) * STAGED_IN_PARTS
                + exchange,
            ping_pong: kernel.ping_pong,
            accumulators: 4 * m * n,
        }
    }

    /// A wave of whole tiles.
    fn wave(&self) -> u64 {
        let multiply = self.k_blocks * self.k_block;
        if self.ping_pong {
            multiply.max(self.store) + ORDER_BARRIER
        } else {
            multiply + self.store
        }
    }

    /// What of the last wave's store is not in [`Work::wave`].
    fn last_store(&self) -> u64 {
        if self.ping_pong { self.store } else { 0 }
    }

    /// Under stream-K: cycles, and the number of CTAs in the last wave that makes them
    /// fewest.
    fn stream_k(&self) -> (u64, u64) {
        let (waves, left) = (self.tiles / self.at_once, self.tiles % self.at_once);
        let whole = waves * self.wave();
        if left == 0 {
            return (whole, 1);
        }
        // The same number of CTAs for every tile, two or more; or all CTAs, some of which
        // then have parts of two tiles.
        let most = self.k_blocks.min(self.at_once / left);
        let all = self.at_once.min(left * self.k_blocks);
        let counts = (2..=most).map(|each| each * left).chain([all]);
        let last = |ctas: u64| {
            // CTAs whose accumulators the one that finishes a tile reads.
            let peers = match ctas % left {
                0 => ctas / left - 1,
                // A CTA's k-blocks do not end with a tile: one CTA more has some of it.
                _ => ctas.div_ceil(left),
            };
            if peers == 0 {
                self.wave()
            } else {
                let multiply = (left * self.k_blocks).div_ceil(ctas) * self.k_block;
                let write = self.accumulators / STORED_PER_CYCLE;
                let read = peers * self.accumulators / LOADED_PER_CYCLE;
                multiply + write + FIX_UP_LATENCY + read + self.store
            }
        };
        let best = counts.map(|ctas| (whole + last(ctas), ctas)).min();
        best.expect("all is a count")
    }
}

#[cfg(test)]
mod tests;
