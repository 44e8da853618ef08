//! What one k-block of a CTA takes.
//!
//! The constants are fitted as `work.rs` says, where they name no other source.

use gpu_kernels::{DType, Family, KernelInfo, Major};

use super::task::{Task, in_mid_line, in_mid_sector};
use crate::problem::{CACHE_LINE, SECTOR, Strides, Target};
use crate::select::registers;

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
        (Family::Naive | Family::Pack | Family::Split | Family::Reduce | Family::Placement, _) => {
            20
        }
    }
}

/// Tenths of a cycle for 128 bytes of an operand.
struct Rate {
    /// Where they are one cache line.
    line: u64,
    /// What is added where they straddle two.
    second_line: u64,
    /// What is added where they begin in the middle of a sector of 32 bytes, and touch five sectors.
    fifth_sector: u64,
}

/// What the copy engine of an SM takes to request 128 bytes. Where they begin in mid-sector, they are
/// three requests, as L2 counts them, too.
const REQUEST: Rate = Rate {
    line: 8,
    second_line: 20,
    fifth_sector: 22,
};

/// What L2 takes for 128 bytes while all SMs ask for as much. Where fewer SMs ask, L2 serves each of
/// them faster: by Nsight Compute on an H200, kernels whose operands straddle lines make 58 to 64 requests
/// a cycle, all SMs together, whatever their tiles (`docs/perf-log.md`, "L2 serves the whole GPU").
/// With a pitch of an odd multiple of 64 bytes, half of the lines straddle; of 32 bytes, three of
/// four; of 16 bytes, seven of eight. Half of the latter begin in mid-sector, and are three requests
/// (`docs/perf-log.md`, "One request, two or three").
const SERVE: Rate = Rate {
    line: 2,
    second_line: 16,
    fifth_sector: 27,
};

/// [`SERVE`] for f32, four fifths of it. That share and [`LOADED_PER_CYCLE_OF_POWER_WIDE`] follow from
/// 125 TF32 products with every kernel (`docs/perf-log.md`, "TMA rounds to TF32").
const SERVE_WIDE: Rate = Rate {
    line: 2,
    second_line: 13,
    fifth_sector: 22,
};

impl Rate {
    /// The mean over lines that are aligned to `alignment` bytes, times [`CACHE_LINE`].
    fn of(&self, alignment: u64) -> u64 {
        let straddling = in_mid_line(alignment);
        let mid_sector = in_mid_sector(alignment) * (CACHE_LINE / SECTOR);
        self.line * CACHE_LINE + self.second_line * straddling + self.fifth_sector * mid_sector
    }
}

/// Thousandths by which the main loop takes longer where consumers divide the columns of a tile, as both
/// read all of A from shared memory: on 94 products, by both builds, the difference to the kernels chosen
/// before is estimated as it was measured with 15 cold and 35 back to back (`docs/perf-log.md`,
/// "Consumers that divide columns").
const DIVIDED_COLUMNS: u64 = 25;

/// How much longer L2 takes for a line for each CTA that asks for it at the same time and does not
/// share it in a cluster, because one slice of L2 has it; a fraction. A line that all 132 SMs of an
/// H200 ask for takes 3.5 times as long: 128×11880×1064 nt makes 47 requests a cycle, products with
/// more rows 58 to 64.
const MEETING: (u64, u64) = (39, 1320);

/// How many times of that is added where an operand lies along M or N, is shorter than two cache lines,
/// and begins all of its lines in mid-line: lines that follow each other along K share cache lines, so
/// that every CTA asks for each of these several times at once. In the sweeps, launches by 132 CTAs
/// of products with up to 96 such rows or columns took 14 % longer than estimated without this, back
/// to back, against launches by a few, and no longer where the short operand lies along K. On 104
/// products with a short operand along M or N, drawn for this, the choice lost 3.2 % without this, and
/// loses 2.2 % (back to back 7.1 and 3.5 %).
const MEETING_IN_SHORT_LINES: u64 = 4;

/// Cycles from the request for a stage of a hopper kernel to its arrival, and the further cycles if
/// all of its bytes come from DRAM. Every stage is filled once in this time, so what an SM gets
/// grows with the stages that it keeps in flight (Little's law). Of 56 linear layers, 128×144
/// tiles with five stages instead of four take 8 % less time cold, 128×160 in clusters 8 %, under
/// stream-K 5 %.
const LATENCY: (u64, u64) = (1675, 1162);

/// Bytes whose loads cost one cycle although arithmetic hides them: a large product runs
/// at the power limit, where moving bytes lowers the clock. At 4096³ on an H200, 128×128
/// tiles take as many cycles as 128×256 tiles with 4/3 of the bytes, and are 1 % slower cold
/// and 3 % slower sustained.
const LOADED_PER_CYCLE_OF_POWER: u64 = 585;

/// The same for f32, which has twice the bytes an operation: at 4096³ on an H200, 128×128 tiles
/// are 5 % slower than 128×256 tiles with as many stages.
const LOADED_PER_CYCLE_OF_POWER_WIDE: u64 = 160;

/// Bytes per cycle that an SM receives at most of what it asks for. What its cluster multicasts to
/// it does not count: 104×2008×1712 tn takes 9.7 µs in 64×64 tiles in clusters of 2×4, which ask for
/// 48 lines a k-block, and 13.0 without, which ask for 128.
const RECEIVED_PER_CYCLE: u64 = 80;

/// Cycles that a consumer takes at least to multiply 128 bytes of each line of its operands: it waits for
/// the stage, issues the `wgmma`s, which add to the same sums, waits for them, and releases the stage.
/// Between 190 and 200 cycles the choice is as good (`docs/perf-log.md`, "The least that a k-block
/// takes").
const LEAST_OF_LINES: u64 = 200;

/// Bytes of L2 for each of its slices, and the bytes that a slice delivers in a cycle: 60 MiB of an
/// H200 are 96 slices, 50 MiB of an H100 are 80.
const SLICE: (u64, u64) = (655_360, 64);

/// Hundredths of an operand's lines that reach L2 of those that SMs request, and what is added where
/// all of its rows begin in the middle of a cache line. Requests of several SMs for a line are served once
/// if they meet; those of clusters, which read different lines or share them, do not. In launches of
/// one wave that L2 limits, the fastest take 0.72 to 0.89 of the cycles in which the slices deliver all
/// that is requested where rows begin on lines, 0.9 to 0.98 elsewhere, and 0.99 to 1.22 in clusters,
/// whatever their depth (`docs/perf-log.md`, "What L2 delivers to one wave").
const REACHES_L2: (u64, u64) = (65, 32);

/// Cycles per k-block that CTAs with shared loads wait for each other, and the further cycles where
/// they share loads of both operands, so that each waits for CTAs that wait for others. In the sweep of
/// 2026-11-27, such clusters took 4 to 5 % longer than estimated without the latter where operands were
/// in L2.
const COUPLED: (u64, u64) = (58, 52);

/// Cycles that a thread takes to copy an element to shared memory by itself, however many CTAs
/// share the SM: with 32 accumulators a thread, which leave registers for four chunks at once,
/// and with more. Measured with `tensor_core` on an H200: 64×64 tiles of 16×225×4096 take 1.4 µs
/// a k-block, 128×256 tiles of 543×1587×96 take 10 µs.
const CYCLES_PER_ELEMENT: (u64, u64) = (60, 175);

/// Hundredths of a cycle in which `wgmma` reads 128 bytes of shared memory, and in which TMA writes
/// them: each `wgmma` reads 64 rows of A, however few columns of B it multiplies.
const SHARED: (u64, u64) = (33, 32);

/// The time of several streams of work, of which the slowest one does not quite hide the others:
/// (a⁴ + b⁴ + …)^¼, 1.19 times as long where two take as long. 888×2288×6008 tt takes 1102 cycles a
/// k-block in 128×192 tiles, where arithmetic alone takes 768. L2 alone would take 925 to 1060 at the
/// 60 to 69 requests a cycle that were counted on other products.
fn together<const N: usize>(cycles: [u64; N]) -> u64 {
    let fourths = cycles.map(|x| u128::from(x).saturating_pow(4));
    let sum = fourths.into_iter().fold(0, u128::saturating_add);
    sum.isqrt().isqrt() as u64
}

/// Cluster tiles of all products.
pub(super) fn tiles(task: &Task) -> u64 {
    let grid = task.grid;
    (u64::from(grid.tiles_m) * u64::from(grid.tiles_n)).saturating_mul(task.batches.into())
}

/// Number of k-blocks of one CTA for one tile.
pub(super) fn k_blocks(kernel: &KernelInfo, task: &Task) -> u64 {
    u64::from(task.k)
        .div_ceil(kernel.block.k.into())
        .div_ceil(kernel.cluster.k.into())
}

/// What one k-block of one CTA takes, in cycles.
pub(super) struct KBlock {
    /// Bytes that it loads.
    pub(super) loads: u64,
    /// On the tensor cores, or the FMA units.
    pub(super) arithmetic: u64,
    /// For shared memory to take its operands and to give them to the tensor cores.
    shared: u64,
    /// For a consumer to take turns with the producer.
    least: u64,
    /// For the SM to request its operands.
    requested: u64,
    /// For the SM to receive them.
    received: u64,
    /// For L2 to serve them while all SMs ask.
    served: u64,
    /// For the slices of L2 to deliver them while all SMs ask.
    delivered: u64,
    /// From the request for a stage to its arrival, without the requests.
    latency: u64,
    /// Stages on their way.
    in_flight: u64,
    /// For the other CTAs of the cluster.
    waits: u64,
    /// Lost to the power limit while all SMs load.
    power: u64,
    /// To copy elements one by one.
    by_element: u64,
    /// CTAs of an SM.
    sharing: u64,
    /// SMs of the GPU.
    sms: u64,
}

impl KBlock {
    /// A k-block of `task`, of which each tile has a share of `tile_bytes` in A, B and C.
    pub(super) fn of(kernel: &KernelInfo, task: &Task, target: &Target, tile_bytes: u64) -> KBlock {
        let Task {
            grid,
            batches,
            k,
            alignment,
            ..
        } = *task;
        let (block, cluster) = (kernel.block, kernel.cluster);
        let [m, n, depth] = [block.m, block.n, block.k].map(u64::from);
        let mut arithmetic = 2 * m * n * depth / flop_per_cycle(kernel);
        if kernel.divides_columns() {
            arithmetic += arithmetic * DIVIDED_COLUMNS / 1000;
        }
        let by_element = if registers::are_loaded_through(kernel) {
            registers::k_block_cycles(kernel)
        } else if task.by_element {
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
        let sharing =
            u64::from(kernel.ctas_per_sm).min(tiles(task).div_ceil(target.sms.max(1).into()));
        // One CTA's share of the lines that its cluster loads together. The boxes of an operand
        // along K are cut to its last line, and those along N are whole.
        let (of_a, of_b) = (u64::from(cluster.n), u64::from(cluster.m));
        let rows = match kernel.a_major {
            Some(Major::K) => m.min(task.rows.into()).div_ceil(of_a),
            _ => m / of_a,
        };
        let columns = match kernel.b_major {
            Some(Major::K) => n.min(task.columns.into()).div_ceil(of_b),
            _ => n.next_multiple_of(64) / of_b,
        };
        // TMA fetches nothing past the end of K.
        let input_bytes = u64::from(kernel.input.bytes());
        let bytes = depth.min(u64::from(k.max(1))) * input_bytes;
        let (serve, per_cycle_of_power) = match kernel.input.factor().bytes() {
            4 => (SERVE_WIDE, LOADED_PER_CYCLE_OF_POWER_WIDE),
            _ => (SERVE, LOADED_PER_CYCLE_OF_POWER),
        };
        // Along N, tiles begin where the last one ends.
        let alignment_b = match kernel.b_major {
            Some(Major::Mn) => {
                let tile = n * input_bytes;
                alignment.b.min(Strides::alignment_of(tile))
            }
            _ => alignment.b,
        };
        let requested = rows * REQUEST.of(alignment.a) + columns * REQUEST.of(alignment_b);
        let sms = u64::from(target.sms.max(1));
        let at_once = u64::from(target.clusters_at_once(kernel));
        let batches = u64::from(batches.max(1));
        // The tiles that run at once, in a square as far as there are so many, and read one of
        // `blocks` blocks of an operand, of which each is read by `readers` tiles in all.
        let meeting = |blocks: u32, matrices: u32, readers: u32, in_short_lines: u64| {
            let matrices = u64::from(matrices.max(1));
            let blocks = u64::from(blocks.max(1)) * matrices;
            let readers = u64::from(readers) * batches / matrices;
            let readers = readers.min(at_once / blocks.min(at_once.isqrt()));
            MEETING.1 + MEETING.0 * readers * (CACHE_LINE + in_short_lines) / CACHE_LINE
        };
        // The share of an operand's lines that share cache lines, times a cache line and that constant.
        let in_short_lines = |major: Option<Major>, lines: u32, alignment: u64| match major {
            Some(Major::Mn) if u64::from(lines) * input_bytes <= 2 * CACHE_LINE => {
                MEETING_IN_SHORT_LINES * in_mid_line(alignment)
            }
            _ => 0,
        };
        let short_a = in_short_lines(kernel.a_major, task.rows, alignment.a);
        let short_b = in_short_lines(kernel.b_major, task.columns, alignment_b);
        let [a_matrices, b_matrices] = task.matrices;
        let meeting_a = meeting(grid.tiles_m, a_matrices, grid.tiles_n, short_a);
        let meeting_b = meeting(grid.tiles_n, b_matrices, grid.tiles_m, short_b);
        let served =
            rows * serve.of(alignment.a) * meeting_a + columns * serve.of(alignment_b) * meeting_b;
        let whole_columns = match kernel.b_major {
            Some(Major::K) => n,
            _ => n.next_multiple_of(64),
        };
        let line_bytes = depth * u64::from(kernel.input.factor().bytes());
        let (shared, least) = match (kernel.family, kernel.input.parts()) {
            // `flop_per_cycle` has the others as a whole.
            (Family::Hopper, 1) => {
                let (read, written) = SHARED;
                let wgmma_n = u64::from(kernel.consumer_n);
                let wgmmas = m * n / (64 * wgmma_n);
                let lines = read * (64 + wgmma_n) * wgmmas + written * (m + whole_columns);
                let shared = lines * line_bytes / (100 * CACHE_LINE);
                (shared, LEAST_OF_LINES * bytes / CACHE_LINE)
            }
            _ => (0, 0),
        };
        let k_blocks = k_blocks(kernel, task);
        let loads = (rows + columns) * bytes;
        let reaches =
            |alignment: u64| REACHES_L2.0 * CACHE_LINE + REACHES_L2.1 * in_mid_line(alignment);
        let reaching = match cluster.ctas() {
            1 => rows * reaches(alignment.a) + columns * reaches(alignment_b),
            _ => (rows + columns) * 100 * CACHE_LINE,
        };
        let delivered = match kernel.family {
            Family::Hopper => {
                let (of_l2, per_cycle) = SLICE;
                let slices = (target.l2_bytes / of_l2).max(1);
                reaching * bytes * sms / (100 * CACHE_LINE * per_cycle * slices)
            }
            _ => 0,
        };
        let latency = match kernel.family {
            Family::Hopper => {
                let loaded = k_blocks * loads * u64::from(cluster.ctas());
                LATENCY.0 + LATENCY.1 * tile_bytes.min(loaded) / loaded.max(1)
            }
            _ => 0,
        };
        KBlock {
            loads,
            arithmetic,
            shared,
            least,
            received: loads / RECEIVED_PER_CYCLE,
            requested: requested * bytes / (10 * CACHE_LINE * CACHE_LINE),
            served: served / MEETING.1 * bytes / (10 * CACHE_LINE * CACHE_LINE),
            delivered,
            latency,
            // The stage that is multiplied is not in flight.
            in_flight: u64::from(kernel.stages.max(2)) - 1,
            waits: u64::from(cluster.sharing() > 1) * COUPLED.0
                + u64::from(cluster.shares_both()) * COUPLED.1,
            power: loads / per_cycle_of_power,
            by_element,
            sharing,
            sms,
        }
    }

    /// Cycles to ask for its operands while `ctas` CTAs do so.
    pub(super) fn asked(&self, ctas: u64) -> u64 {
        let served = self.served * ctas.min(self.sms) / self.sms;
        self.requested.max(served)
    }

    /// Cycles of one k-block that nothing hides, while `ctas` CTAs run: the first stage arrives before
    /// there is anything to multiply, and the last one is multiplied when nothing arrives any more.
    pub(super) fn unhidden(&self, ctas: u64) -> u64 {
        match self.latency {
            0 => 0,
            _ => self.asked(ctas).max(self.received).min(self.arithmetic),
        }
    }

    /// Cycles of it while `ctas` CTAs run.
    pub(super) fn cycles(&self, ctas: u64) -> u64 {
        let asked = self.asked(ctas);
        let arrived = match self.latency {
            0 => 0,
            latency => (latency + asked) / self.in_flight,
        };
        let power = self.power * ctas.min(self.sms) / self.sms;
        let delivered = self.delivered * ctas.min(self.sms) / self.sms;
        let multiplied = together([self.arithmetic, self.shared, asked])
            .max(self.received)
            .max(delivered)
            .max(self.least);
        let alone = multiplied.max(arrived) + power + self.waits;
        (alone * self.sharing).max(self.by_element)
    }
}
