//! The quantities that an estimate is made from, and the rates of an SM.
//!
//! Where a constant names no other source, it is fitted to the sweeps in `docs/sweep/`: 502
//! products whose pitches are multiples of 16 bytes, each measured with every kernel. Together
//! these constants make the loss of the kernel chosen against the fastest one small, among those
//! that choose the kernels known to be fast on the suite `hopper`. They were judged on products
//! drawn afterwards (`docs/perf-log.md`, "What cuBLASLt runs, and the tiles that were missing").

use gpu_kernels::{DType, Family, KernelInfo, Major, TileGrid};

use super::epilogue;
use super::task::Task;
use crate::problem::{CACHE_LINE, Target};

/// FLOP per cycle that an SM sustains in the main loop of a kernel. For hopper this is
/// the peak of `wgmma` (4096 for 16-bit types); for the other families it is the rate
/// measured at 4096³ on an H200.
fn flop_per_cycle(kernel: &KernelInfo) -> u64 {
    match (kernel.family, kernel.input) {
        (Family::Hopper, DType::Tf32) => 2048,
        // Three products for one. Narrow tiles read as much of shared memory as `wgmma` can: 3000³
        // takes 0.32 ms in 64×128 tiles and 0.39 in 64×64.
        (Family::Hopper, DType::F16x3) if kernel.block.n < 128 => 1100,
        (Family::Hopper, DType::F16x3) => 4096 / 3,
        (Family::Hopper, _) => 4096,
        (Family::TensorCore, DType::Tf32) => 900,
        (Family::TensorCore, DType::F16x3) if kernel.block.n < 128 => 460,
        (Family::TensorCore, DType::F16x3) => 490,
        (Family::TensorCore, _) => 2300,
        (Family::Tiled, _) => 160,
        (Family::Naive | Family::Pack | Family::Split | Family::Reduce, _) => 20,
    }
}

/// Tenths of a cycle that the SM needs to request 128 bytes: first where they are one
/// cache line, then where they straddle two, which limits most kernels.
const ASKING: (u64, u64) = (4, 42);

/// Tenths of a cycle to request 128 bytes of f32 that straddle two cache lines: at 3000³ on an
/// H200, a k-block of 128×192 tiles takes 1,060 cycles, for 320 such rows. It and
/// [`LOADED_PER_CYCLE_OF_POWER_WIDE`] are fitted to 125 TF32 products with every kernel
/// (`docs/perf-log.md`, "TMA rounds to TF32").
const ASKING_WIDE: u64 = 34;

/// The fraction of the lines requested by CTAs next to each other in the tile order that
/// reaches L2. Such CTAs run on the same GPC, which merges requests for the same line if
/// they meet (`docs/tile-order.md`). Counted on an H200, 0.4 to 0.65 of the bytes reach
/// L2, 0.66 to 0.88 with one tile per CTA. Requests of clusters hardly meet, because the
/// clusters are distributed over all GPCs: 0.86 to 1.0.
const MADE_ONCE: (u64, u64) = (77, 100);

/// Bytes per cycle that L2 delivers to one SM, counting only the requests that reach L2.
const LOADED_PER_CYCLE: u64 = 49;

/// Cycles from the request for a stage of a hopper kernel to its arrival, while all SMs ask for
/// operands, and the further cycles if all of its bytes come from DRAM. Every stage is filled
/// once in this time, so what an SM gets grows with the stages that it keeps in flight (Little's
/// law). Of 56 linear layers, 128×144 tiles with five stages instead of four take 8 % less time
/// cold, 128×160 in clusters 8 %, under stream-K 5 %.
const LATENCY: (u64, u64) = (1415, 3826);

/// Bytes whose loads cost one cycle although arithmetic hides them: a large product runs
/// at the power limit, where moving bytes lowers the clock. At 4096³ on an H200, 128×128
/// tiles take as many cycles as 128×256 tiles with 4/3 of the bytes, and are 1 % slower cold
/// and 3 % slower sustained.
const LOADED_PER_CYCLE_OF_POWER: u64 = 480;

/// The same for f32, which has twice the bytes an operation: at 4096³ on an H200, 128×128 tiles
/// are 5 % slower than 128×256 tiles with as many stages.
const LOADED_PER_CYCLE_OF_POWER_WIDE: u64 = 160;

/// Cycles per k-block that the tensor cores are idle where a CTA has one consumer, because
/// it waits for a stage and releases one.
const ALONE: u64 = 14;

/// Cycles per k-block that CTAs with shared loads wait for each other.
const COUPLED: u64 = 135;

/// Bytes per cycle that DRAM delivers for each SM of the GPU, all SMs together, and the most that
/// it delivers to one SM. Fitted to the sweep and to 40 products of 1 to 256 rows with the weights
/// of linear layers: an H200 reads such weights at 4.1 TB/s by 128 CTAs, 3.6 by 80 and 2.9 by 56.
const FROM_DRAM: (u64, u64) = (14, 21);

/// The part of an operand larger than L2 that comes from DRAM again for each tile that reads
/// it at a time of its own, in percent.
const READ_AGAIN: u64 = 26;

/// Extra cycles that the first tiles wait for their operands, which come from DRAM. A
/// pipeline that fills shared memory costs none of these cycles, a pipeline without
/// stages would cost all of them, and [`fill`] interpolates. At 2048³ on an H200, 128×256
/// tiles with four stages instead of three are 2 % faster cold.
const FILL: u64 = 1894;

/// Bytes of a pipeline that fills shared memory.
const FULL_PIPELINE: u64 = 192 << 10;

/// Extra cycles of a tile's store where the m64 tiles of a consumer are staged in parts. At
/// two waves of tiles this and [`FILL`] make the same two kernels equally fast.
const STAGED_IN_PARTS: u64 = 470;

/// Bytes of C, or of accumulators for another CTA, per cycle that an SM stores. Most rows of C
/// in the sweep begin in the middle of a cache line.
const STORED_PER_CYCLE: u64 = 23;

/// Cycles between the multiplies of one tile and the multiplies of the next, without the
/// cycles of the stores of C.
const BETWEEN_TILES: u64 = 320;

/// Cycles at the order barrier of the ping-pong schedule: from the last multiply of one
/// consumer to the first of the other.
const ORDER_BARRIER: u64 = 530;

/// Cycles for the CTAs of a cluster that split K to exchange their accumulators, however
/// many CTAs there are: all CTAs send at once, before one barrier.
const EXCHANGE_LATENCY: u64 = 3071;

/// Cycles from the stores of a CTA's accumulators, past the fence in L2, to another CTA's
/// loads of them. It, [`ADDED_PER_CYCLE`] and the margin of stream-K make the loss of the choice
/// small on the sweeps. Their sum is more than a fix-up
/// takes by itself (5,700 cycles, and 1,000 to 1,800 for each peer of a 128×128 tile), because the
/// estimate of the main loop is short for these products (`docs/perf-log.md`, "What a fix-up
/// costs").
const FIX_UP_LATENCY: u64 = 6983;

/// Bytes of another CTA's accumulators per cycle that a CTA loads and adds.
const ADDED_PER_CYCLE: u64 = 11;

/// Cycles that stream-K takes longer where ranges of k-blocks cross from one tile to the next, so
/// that a CTA writes and reduces: 1024×1024×8192 in 64 tiles takes 31.7 µs by 128 CTAs and 39.5 by
/// 132 on an H200.
const CROSSING: u64 = 27_750;

/// Cycles from the last store of a product under split-K to the first addition of the launch
/// behind it, and the time of that launch without its loads. It includes what
/// [`FIX_UP_LATENCY`] includes besides the fix-up.
const REDUCE_LATENCY: u64 = 20_950;

/// Bytes of accumulators per cycle and SM that the launch behind a product under split-K adds.
const REDUCED_PER_CYCLE: u64 = 37;

/// Cycles that a thread takes to copy an element to shared memory by itself, however many CTAs
/// share the SM: with 32 accumulators a thread, which leave registers for four chunks at once,
/// and with more. Measured with `tensor_core` on an H200: 64×64 tiles of 16×225×4096 take 1.4 µs
/// a k-block, 128×256 tiles of 543×1587×96 take 10 µs.
const CYCLES_PER_ELEMENT: (u64, u64) = (60, 175);

/// Extra cycles that the first tiles of a hopper kernel wait, compared to the largest
/// pipeline.
pub(super) fn fill(kernel: &KernelInfo) -> u64 {
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

/// Bytes of A, B and C.
struct Bytes {
    a: u64,
    b: u64,
    c: u64,
}

impl Bytes {
    fn of(kernel: &KernelInfo, task: &Task) -> Bytes {
        let (height, width) = kernel.cluster_tile();
        let covered = |lines: u32, tiles: u32, extent: u32| {
            u64::from(lines).min(u64::from(tiles) * u64::from(extent))
        };
        let m = covered(task.rows, task.grid.tiles_m, height);
        let n = covered(task.columns, task.grid.tiles_n, width);
        let bytes = |one: u64, other: u64, matrices: u32| {
            let elements = one.saturating_mul(other).saturating_mul(matrices.into());
            elements.saturating_mul(kernel.input.bytes().into())
        };
        let k = u64::from(task.k);
        Bytes {
            a: bytes(m, k, task.matrices[0]),
            b: bytes(k, n, task.matrices[1]),
            c: bytes(m, n, task.batches),
        }
    }

    fn all(&self) -> u64 {
        self.a.saturating_add(self.b).saturating_add(self.c)
    }

    /// What comes from DRAM again where no two tiles of a grid share their reads.
    fn again(&self, grid: TileGrid, target: &Target) -> u64 {
        let of = |operand: u64, readers: u32| {
            // An operand that is read all the time stays in half of L2.
            let stays = operand <= target.l2_bytes / 2;
            let times = if stays { 0 } else { readers.saturating_sub(1) };
            operand.saturating_mul(times.into())
        };
        let again = of(self.a, grid.tiles_n).saturating_add(of(self.b, grid.tiles_m));
        again / 100 * READ_AGAIN
    }
}

/// The quantities that an estimate is made from; all times are in cycles.
pub(super) struct Work {
    /// Number of cluster tiles.
    pub(super) tiles: u64,
    /// Number of cluster tiles that run at once.
    pub(super) at_once: u64,
    /// Number of k-blocks of one CTA for one tile.
    k_blocks: u64,
    /// Time of one k-block.
    k_block: u64,
    /// Bytes that one k-block loads from L2.
    pub(super) loads: u64,
    /// Time from a tile's last k-block to its last byte of C.
    store: u64,
    /// Time in which the SM requests a tile's operands and stores its C, one after the other: the
    /// store of one tile is not hidden by the loads of the next where both straddle lines
    /// (15824×12216×160 on an H200: 243 µs by ping-pong in 128×192 tiles, 175 by 256×192).
    requests: u64,
    /// Whether the main loop of the next tile hides the store.
    ping_pong: bool,
    /// Time of the loads that the producer makes for the next tile while this one is stored.
    ahead: u64,
    /// Bytes of a tile's accumulators.
    accumulators: u64,
    /// The share of one cluster tile in the bytes of A, B and C, each once.
    tile_bytes: u64,
    /// The same share of what comes from DRAM again where tiles do not share their reads.
    bytes_again: u64,
    /// CTAs of a cluster.
    cluster_ctas: u64,
    /// SMs of the GPU.
    sms: u64,
}

impl Work {
    pub(super) fn of(kernel: &KernelInfo, task: &Task, target: &Target) -> Work {
        let Task {
            grid,
            batches,
            k,
            mid_line,
            ..
        } = *task;
        let (block, cluster) = (kernel.block, kernel.cluster);
        let [m, n, depth] = [block.m, block.n, block.k].map(u64::from);
        let tiles =
            (u64::from(grid.tiles_m) * u64::from(grid.tiles_n)).saturating_mul(batches.into());
        let arithmetic = 2 * m * n * depth / flop_per_cycle(kernel);
        let by_element = if task.by_element {
            let threads = u64::from(kernel.threads.max(1));
            let cycles = if m * n / threads <= 32 {
                CYCLES_PER_ELEMENT.0
            } else {
                CYCLES_PER_ELEMENT.1
            };
            (m + n) * depth * cycles / threads
        } else {
            0
        };
        // CTAs that share an SM, if there are so many.
        let sharing = u64::from(kernel.ctas_per_sm).min(tiles.div_ceil(target.sms.max(1).into()));
        // One CTA's share of the lines that its cluster loads together. The boxes of an operand
        // along K are cut to its last line if no other CTA shares them, and those along N are
        // whole.
        let rows = match (kernel.a_major, cluster.n) {
            (Some(Major::K), 1) => m.min(task.rows.into()),
            (_, sharing) => m / u64::from(sharing),
        };
        let columns = match (kernel.b_major, cluster.m) {
            (Some(Major::K), 1) => n.min(task.columns.into()),
            (Some(Major::K), sharing) => n / u64::from(sharing),
            (_, sharing) => n.next_multiple_of(64) / u64::from(sharing),
        };
        // TMA fetches nothing past the end of K.
        let bytes = depth.min(u64::from(k.max(1))) * u64::from(kernel.input.bytes());
        let (straddling, per_cycle_of_power) = match kernel.input.factor().bytes() {
            4 => (ASKING_WIDE, LOADED_PER_CYCLE_OF_POWER_WIDE),
            _ => (ASKING.1, LOADED_PER_CYCLE_OF_POWER),
        };
        let asking = |mid_line| if mid_line { straddling } else { ASKING.0 };
        let asked = rows * asking(mid_line.a) + columns * asking(mid_line.b);
        let taken = |lines, neighbours: u32| match (cluster.ctas(), neighbours) {
            (1, 2..) => lines * MADE_ONCE.0 / MADE_ONCE.1,
            _ => lines,
        };
        let loads = (taken(rows, grid.tiles_n) + taken(columns, grid.tiles_m)) * bytes;
        let alone = u64::from(kernel.consumers == 1);
        let coupled = u64::from(cluster.sharing() > 1);
        let waits = alone * ALONE + coupled * COUPLED;
        let operands = Bytes::of(kernel, task);
        let tile_bytes = operands.all() / tiles.max(1);
        let k_blocks = u64::from(k).div_ceil(depth).div_ceil(cluster.k.into());
        let requested = asked * bytes / (10 * CACHE_LINE);
        let in_flight = match kernel.family {
            Family::Hopper => {
                let loaded = k_blocks * (rows + columns) * bytes * u64::from(cluster.ctas());
                let from_dram = LATENCY.1 * tile_bytes.min(loaded) / loaded.max(1);
                // The stage that is multiplied is not in flight.
                let stages = u64::from(kernel.stages.max(2)) - 1;
                (LATENCY.0 + from_dram + requested) / stages
            }
            _ => 0,
        };
        let arrived = requested.max(loads / LOADED_PER_CYCLE).max(in_flight);
        let k_block = arithmetic.max(arrived) + waits + loads / per_cycle_of_power;

        // Each CTA stores one part of the tile, and sends the other parts away as f32.
        let parts = u64::from(cluster.k);
        let part = m * n / parts;
        let exchange = if parts > 1 {
            EXCHANGE_LATENCY + (parts - 1) * 4 * part / STORED_PER_CYCLE
        } else {
            0
        };
        Work {
            tiles,
            at_once: target.clusters_at_once(kernel).into(),
            k_blocks,
            k_block: (k_block * sharing).max(by_element),
            loads,
            store: BETWEEN_TILES
                + part * u64::from(kernel.input.bytes()) / STORED_PER_CYCLE
                + u64::from(stages_in_parts(kernel)) * STAGED_IN_PARTS
                + epilogue::cycles(kernel, &task.epilogue)
                + exchange,
            requests: k_blocks * requested
                + part * u64::from(kernel.input.bytes()) / STORED_PER_CYCLE,
            ping_pong: kernel.ping_pong,
            ahead: match kernel.family {
                Family::Hopper => {
                    k_blocks.min(kernel.stages.into()) * k_block.saturating_sub(arithmetic)
                }
                _ => 0,
            },
            accumulators: 4 * m * n,
            tile_bytes,
            bytes_again: operands.again(grid, target) / tiles.max(1),
            cluster_ctas: cluster.ctas().into(),
            sms: target.sms.into(),
        }
    }

    /// Time in which DRAM delivers `bytes` to `clusters` clusters.
    fn dram_time(&self, bytes: u64, clusters: u64) -> u64 {
        let (all, one) = FROM_DRAM;
        let asked = one * clusters * self.cluster_ctas;
        bytes / asked.clamp(1, (all * self.sms).max(1))
    }

    /// Time of a wave of `tiles` whole tiles.
    fn wave(&self, tiles: u64) -> u64 {
        let dram = self.dram_time(tiles * self.tile_bytes, tiles);
        let multiply = self.k_blocks * self.k_block;
        if self.ping_pong {
            (multiply.max(self.store).max(self.requests) + ORDER_BARRIER).max(dram)
        } else {
            multiply.max(dram) + self.store
        }
    }

    /// Time of all tiles, each computed by one cluster.
    pub(super) fn whole_tiles(&self) -> u64 {
        let (waves, left) = (self.tiles / self.at_once, self.tiles % self.at_once);
        let last = if left > 0 { self.wave(left) } else { 0 };
        // The store of the last tile, which no multiply hides.
        let store = if self.ping_pong { self.store } else { 0 };
        // Half of the shorter of the two is hidden, by the sweeps.
        let ahead = if self.ping_pong {
            0
        } else {
            self.ahead.min(self.store) / 2
        };
        let later_waves = (waves + u64::from(left > 0)).saturating_sub(1);
        waves * self.wave(self.at_once) + last + store - later_waves * ahead
    }

    /// The fewest cycles under stream-K, and the number of CTAs in the last wave that
    /// achieves them.
    pub(super) fn stream_k(&self) -> (u64, u64) {
        let (waves, left) = (self.tiles / self.at_once, self.tiles % self.at_once);
        let whole = waves * self.wave(self.at_once);
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
                self.wave(left)
            } else {
                let (again, crossing) = match ctas % left {
                    0 => (0, 0),
                    _ => (self.bytes_again, CROSSING),
                };
                let dram = self.dram_time(left * (self.tile_bytes + again), ctas);
                let k_blocks = match ctas % left {
                    0 => self.k_blocks.div_ceil(ctas / left),
                    _ => (left * self.k_blocks).div_ceil(ctas),
                };
                let multiply = k_blocks * self.k_block;
                let multiply = multiply.max(dram);
                let write = self.accumulators / STORED_PER_CYCLE;
                let read = peers * self.accumulators / ADDED_PER_CYCLE;
                multiply + write + FIX_UP_LATENCY + crossing + read + self.store
            }
        };
        let best = counts.map(|ctas| (whole + last(ctas), ctas)).min();
        best.expect("all is a count")
    }
    /// The fewest cycles under split-K, and the number of CTAs that achieves them, an equal number
    /// for each tile; `None` where tiles are not cut: they fill the GPU, or have one k-block.
    pub(super) fn split_k(&self) -> Option<(u64, u64)> {
        if self.tiles == 0 || self.tiles > self.at_once {
            return None;
        }
        let most = self.k_blocks.min((self.at_once / self.tiles).max(2));
        let cycles = |each: u64| {
            let ctas = each * self.tiles;
            let dram = self.dram_time(self.tiles * self.tile_bytes, ctas.min(self.at_once));
            let waves = ctas.div_ceil(self.at_once);
            let multiply = (waves * self.k_blocks.div_ceil(each) * self.k_block).max(dram);
            let write = waves * self.accumulators / STORED_PER_CYCLE;
            let read = ctas * self.accumulators / (REDUCED_PER_CYCLE * self.sms.max(1));
            multiply + write + REDUCE_LATENCY + read
        };
        (2..=most)
            .map(|each| (cycles(each), each * self.tiles))
            .min()
    }
}
