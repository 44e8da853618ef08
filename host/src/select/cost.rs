//! The estimated time of a kernel, in cycles of an SM.
//!
//! ```text
//! waves   = clusters that have a tile / clusters that run at once, rounded up
//! asked   = cycles that one CTA takes to request its bytes
//! loads   = bytes that one CTA takes from L2, without the bytes that a neighbour requests too
//! k_block = max(arithmetic, asked, loads) + waits + power     BLOCK_K of one tile
//! cycles  = start + waves · (k_blocks · k_block + store)
//! ```
//!
//! Under the ping-pong schedule, one consumer stores its tile while the other multiplies.
//! The longer of the two phases counts, and only the store of the last tile is not hidden.
//! An order barrier separates the main loops of the two consumers:
//!
//! ```text
//! cycles = start + waves · (max(k_blocks · k_block, store) + order_barrier) + store
//! ```
//!
//! Under stream-K, the number of waves is rounded down, and the remaining tiles are cut
//! along K and shared among some of the CTAs. The other CTAs write the accumulators of
//! their parts to a workspace, and the CTA that finishes a tile adds up the accumulators
//! of all its parts (the paper's *fix-up*):
//!
//! ```text
//! last wave = tiles · k_blocks / ctas · k_block + write
//!             + latency + (ctas / tiles − 1) · read + store
//! ```
//!
//! With more CTAs, each CTA computes less, but the finishing CTA reads more; the estimate
//! takes the number of CTAs with the fewest cycles. (The paper's "grid size selection",
//! section 5.1, makes the same trade-off.)
//!
//! `store` includes the arithmetic of the epilogue (`cost/epilogue.rs`).
//!
//! The number of waves decides between tiles: a large tile computes more for
//! each byte it loads, but leaves SMs idle in the last wave. The rates below
//! are the rates of an SM of an H100 or H200. Other devices have other rates, but
//! similar ratios between their units, and a comparison needs only the ratios.

mod epilogue;

use gpu_kernels::{DType, Family, KernelInfo, TileGrid};

use super::check;
use super::choice::{Choice, Packed};
use crate::epilogue_form::EpilogueForm;
use crate::problem::{CACHE_LINE, Problem, Target};
use crate::tma::{GlobalTensor, Unreadable};

/// The operands whose lines begin in the middle of a cache line, so that each 128 bytes
/// of them touch two cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MidLine {
    /// A.
    pub a: bool,
    /// B.
    pub b: bool,
}

impl MidLine {
    /// The flags for `kernel` and the operands of `problem`. Only kernels that read
    /// through TMA count. Packed operands begin on cache lines.
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

/// FLOP per cycle that an SM sustains in the main loop of a kernel. For hopper this is
/// the peak of `wgmma` (4096 for 16-bit types); for the other families it is the rate
/// measured at 4096³ on an H200.
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

/// Tenths of a cycle that the SM needs to request 128 bytes: first where they are one
/// cache line, then where they straddle two. On an H200, the first rate limits 64×64 and
/// 64×128 tiles at 2048³; the second was fitted to ten kernels at 3000³ and 4104³.
const ASKING: (u64, u64) = (17, 38);

/// The fraction of the lines requested by CTAs next to each other in the tile order that
/// reaches L2. Such CTAs run on the same GPC, which merges requests for the same line if
/// they meet (`docs/tile-order.md`). Counted on an H200, 0.4 to 0.65 of the bytes reach
/// L2, 0.66 to 0.88 with one tile per CTA. Requests of clusters hardly meet, because the
/// clusters are distributed over all GPCs: 0.86 to 1.0.
const MADE_ONCE: (u64, u64) = (2, 3);

/// Bytes per cycle that L2 delivers to one SM, counting only the requests that reach L2.
/// Fitted to the same tiles as [`ASKING`]; if merged requests count too, the rate is 75.
const LOADED_PER_CYCLE: u64 = 50;

/// Bytes whose loads cost one cycle although arithmetic hides them: a large product runs
/// at the power limit, where moving bytes lowers the clock. Fitted to 128×128 against
/// 128×256 tiles at 4096³ on an H200: with the same number of cycles and 4/3 of the
/// bytes, the smaller tile is 1 % slower cold and 3 % slower sustained.
const LOADED_PER_CYCLE_OF_POWER: u64 = 530;

/// Cycles per k-block that the tensor cores are idle where a CTA has one consumer, because
/// it waits for a stage and releases one. Fitted to 64×128 against 128×64 tiles at 1024³
/// on an H200: 4 % slower cold, 10 % slower sustained.
const ALONE: u64 = 40;

/// Cycles per k-block that CTAs with shared loads wait for each other. Fitted to 128×64
/// tiles at 256×4096×4096 on an H200: clusters of 1×2 are 10 % slower, although they load
/// a third fewer bytes.
const COUPLED: u64 = 100;

/// Extra cycles that the first tiles wait for their operands, which come from DRAM. A
/// pipeline that fills shared memory costs none of these cycles, a pipeline without
/// stages would cost all of them, and [`fill`] interpolates. Fitted to 128×256 tiles at
/// 2048³ on an H200: four stages instead of three are 2 % faster cold.
const FILL: u64 = 4000;

/// Bytes of a pipeline that fills shared memory.
const FULL_PIPELINE: u64 = 192 << 10;

/// Extra cycles of a tile's store where the m64 tiles of a consumer are staged in parts.
/// Fitted to the same two kernels: equally fast at two waves of tiles, 0.5 % slower at
/// four and more.
const STAGED_IN_PARTS: u64 = 600;

/// Bytes of C per cycle that an SM stores.
const STORED_PER_CYCLE: u64 = 64;

/// Cycles between the multiplies of one tile and the multiplies of the next, without the
/// cycles of the stores of C. Measured with the SM's clock on an H200: 1,640 cycles in
/// all for 128×256 tiles of f16.
const BETWEEN_TILES: u64 = 600;

/// Cycles at the order barrier of the ping-pong schedule: from the last multiply of one
/// consumer to the first of the other. Fitted to 128×192 tiles at 8192×8192×1024 on an
/// H200, where ping-pong is 7 % faster than the cooperative schedule.
const ORDER_BARRIER: u64 = 450;

/// Cycles to start clusters and stop them together. Measured on an H200, at 2048³.
const CLUSTER_LATENCY: u64 = 1200;

/// Cycles for the CTAs of a cluster that split K to exchange their accumulators, however
/// many CTAs there are: all CTAs send at once, before one barrier.
const EXCHANGE_LATENCY: u64 = 1500;

/// Cycles from the stores of a CTA's accumulators, past the fence in L2, to another CTA's
/// loads of them: two to three microseconds.
const FIX_UP_LATENCY: u64 = 4000;

/// The percentage by which stream-K has to be better: its gain depends on rates that the
/// other estimates do not use.
const STREAM_K_MARGIN: u64 = 5;

/// An estimate to compare kernels by: smaller is better, cycles first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Cycles from first to last.
    pub cycles: u64,
    /// Bytes that one k-block of one CTA takes from L2.
    pub loads: u64,
}

/// What a kernel has to compute, as it sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The (cluster) tiles of one product.
    pub grid: TileGrid,
    /// Number of products.
    pub batches: u32,
    /// Depth of the products.
    pub k: u32,
    /// The operands whose lines begin in the middle of a cache line.
    pub mid_line: MidLine,
    /// What is done to the products.
    pub epilogue: EpilogueForm,
}

impl Task {
    /// `kernel`'s task if it runs `problem` in tiles of `grid`.
    pub(super) fn of(
        kernel: &KernelInfo,
        problem: &Problem,
        grid: TileGrid,
        packed: Packed,
    ) -> Task {
        Task {
            grid,
            batches: problem.batches,
            k: problem.k,
            mid_line: MidLine::of(kernel, problem, packed),
            epilogue: problem.epilogue,
        }
    }
}

/// The estimate for `choice` and `problem`.
pub(crate) fn of_choice(choice: &Choice, problem: &Problem, target: &Target) -> Cost {
    let (kernel, grid, packed) = (&choice.kernel, choice.grid, choice.packed);
    let task = match choice.transposed {
        true => Task::of(kernel, &problem.transposed(), grid, packed),
        false => Task::of(kernel, problem, grid, packed),
    };
    estimate(kernel, &task, target)
}

/// The estimate for `kernel` and its `task`. For a stream-K kernel, the estimate includes the
/// margin by which it has to be better.
pub fn estimate(kernel: &KernelInfo, task: &Task, target: &Target) -> Cost {
    let work = Work::of(kernel, task, target);
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

/// The number of CTAs with which a stream-K kernel computes the tiles that do not fill a
/// wave, of `batches` times `grid`.
///
/// Each of these tiles gets at least one CTA, and at least two where it has two k-blocks
/// and there are enough CTAs. The number is at most the number of CTAs that run at once,
/// and 1 where no tile remains. The estimate assumes that operands begin on cache lines and
/// that the product is plain, whether they do and it is or not: the place at which a tile is
/// cut decides the order in which its products are added up, and the result must not depend
/// on an address, nor the sums on the epilogue.
pub fn stream_k_ctas(
    kernel: &KernelInfo,
    grid: TileGrid,
    batches: u32,
    k: u32,
    target: &Target,
) -> u32 {
    let task = Task {
        grid,
        batches,
        k,
        mid_line: MidLine::default(),
        epilogue: EpilogueForm::PLAIN,
    };
    let (_, ctas) = Work::of(kernel, &task, target).stream_k();
    ctas as u32
}

/// Whether `kernel` may be worth measuring. A stream-K kernel is worth it only where
/// there is more than one wave of tiles and the last wave is not full.
pub(super) fn can_gain(kernel: &KernelInfo, grid: TileGrid, batches: u32, target: &Target) -> bool {
    let (tiles, at_once) = (
        grid.tiles().saturating_mul(batches),
        target.clusters_at_once(kernel),
    );
    kernel.stream_k_bytes == 0 || tiles > at_once && !tiles.is_multiple_of(at_once)
}

/// Extra cycles that the first tiles of a hopper kernel wait, compared to the largest
/// pipeline.
fn fill(kernel: &KernelInfo) -> u64 {
    match kernel.family {
        Family::Hopper => {
            FILL * FULL_PIPELINE.saturating_sub(kernel.pipeline_bytes.into()) / FULL_PIPELINE
        }
        _ => 0,
    }
}

/// Whether the staging of a hopper kernel is too small for a whole m64 tile of a 16-bit
/// type per consumer.
fn stages_in_parts(kernel: &KernelInfo) -> bool {
    kernel.staging_bytes < kernel.consumers * 64 * kernel.block.n * 2
}

/// The quantities that an estimate is made from; all times are in cycles.
struct Work {
    /// Number of cluster tiles.
    tiles: u64,
    /// Number of cluster tiles that run at once.
    at_once: u64,
    /// Number of k-blocks of one CTA for one tile.
    k_blocks: u64,
    /// Time of one k-block.
    k_block: u64,
    /// Bytes that one k-block loads from L2.
    loads: u64,
    /// Time from a tile's last k-block to its last byte of C.
    store: u64,
    /// Whether the main loop of the next tile hides the store.
    ping_pong: bool,
    /// Bytes of a tile's accumulators.
    accumulators: u64,
}

impl Work {
    fn of(kernel: &KernelInfo, task: &Task, target: &Target) -> Work {
        let Task {
            grid,
            batches,
            k,
            mid_line,
            ..
        } = *task;
        let (block, cluster) = (kernel.block, kernel.cluster);
        let [m, n, depth] = [block.m, block.n, block.k].map(u64::from);
        let arithmetic = 2 * m * n * depth / flop_per_cycle(kernel);
        // One CTA's share of the lines that its cluster loads together.
        let (rows, columns) = (m / u64::from(cluster.n), n / u64::from(cluster.m));
        // TMA fetches nothing past the end of K.
        let bytes = depth.min(u64::from(k.max(1))) * u64::from(kernel.input.bytes());
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

        // Each CTA stores one part of the tile, and sends the other parts away as f32.
        let parts = u64::from(cluster.k);
        let part = m * n / parts;
        let exchange = if parts > 1 {
            EXCHANGE_LATENCY + (parts - 1) * 4 * part / STORED_PER_CYCLE
        } else {
            0
        };
        Work {
            tiles: (u64::from(grid.tiles_m) * u64::from(grid.tiles_n))
                .saturating_mul(batches.into()),
            at_once: target.clusters_at_once(kernel).into(),
            k_blocks: u64::from(k).div_ceil(depth).div_ceil(parts),
            k_block: k_block * u64::from(kernel.ctas_per_sm),
            loads,
            store: BETWEEN_TILES
                + part * u64::from(kernel.input.bytes()) / STORED_PER_CYCLE
                + u64::from(stages_in_parts(kernel)) * STAGED_IN_PARTS
                + epilogue::cycles(kernel, &task.epilogue)
                + exchange,
            ping_pong: kernel.ping_pong,
            accumulators: 4 * m * n,
        }
    }

    /// Time of a wave of whole tiles.
    fn wave(&self) -> u64 {
        let multiply = self.k_blocks * self.k_block;
        if self.ping_pong {
            multiply.max(self.store) + ORDER_BARRIER
        } else {
            multiply + self.store
        }
    }

    /// The part of the last wave's store that [`Work::wave`] does not count.
    fn last_store(&self) -> u64 {
        if self.ping_pong { self.store } else { 0 }
    }

    /// The fewest cycles under stream-K, and the number of CTAs in the last wave that
    /// achieves them.
    fn stream_k(&self) -> (u64, u64) {
        let (waves, left) = (self.tiles / self.at_once, self.tiles % self.at_once);
        let whole = waves * self.wave();
        if left == 0 {
            return (whole, 1);
        }
        // Either every tile gets the same number of CTAs, two or more; or all CTAs take
        // part, and some of them have parts of two tiles.
        let most = self.k_blocks.min(self.at_once / left);
        let all = self.at_once.min(left * self.k_blocks);
        let counts = (2..=most).map(|each| each * left).chain([all]);
        let last = |ctas: u64| {
            // The number of CTAs whose accumulators the CTA that finishes a tile reads.
            let peers = match ctas % left {
                0 => ctas / left - 1,
                // A CTA's k-blocks do not end with a tile, so one more CTA has a part of it.
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
