//! The quantities that an estimate is made from, tile by tile, and the rates of an SM.
//!
//! Where a constant names no other source, it is fitted to the sweeps in `docs/sweep/`: some 900
//! products whose pitches are multiples of 16 bytes, most of them measured with every kernel
//! or with those of least estimate. Together these constants make the loss of the kernel chosen
//! against the fastest one small, among those that choose the kernels known to be fast on the suite
//! `hopper`; `docs/sweep/README.md` says which files have which weight.

use gpu_kernels::KernelInfo;

use super::bytes::Bytes;
use super::epilogue;
use super::k_block::{KBlock, k_blocks, tiles};
use super::task::{Task, in_mid_sector};
use crate::problem::{SECTOR, Strides, Target};
use crate::select::registers;

/// Bytes per cycle that DRAM delivers for each SM of the GPU, all SMs together, and the most that
/// it delivers to one SM: an H200 reads the weights of linear layers at 4.1 TB/s by 128 CTAs, 3.6 by
/// 80 and 2.9 by 56.
const FROM_DRAM: (u64, u64) = (17, 26);

/// The percentage of the time of a tile's bytes on their way to L2 that the multiplies of the next tile
/// hide: its consumers go on when C is in shared memory, and the copy engine stores it. Without this,
/// 4640×1144×312 tn was taken in one wave of 256×192 tiles, where waves of 128×128 take 15 % less,
/// back to back on an H200 (`docs/perf-log.md`, "Stores that the next tile hides").
const HIDDEN_STORE: u64 = 30;

/// Extra cycles of a tile's store where the m64 tiles of a consumer are staged in parts.
const STAGED_IN_PARTS: u64 = 350;

/// Extra cycles of a tile's store where the staging of a consumer is a single buffer, or a part of the
/// last stage, which the producer then waits for. Without them, the choice on the 35 products of the sweep
/// of 2026-11-28 took 2.2 % longer than the fastest kernel, cold, and with 800 to 1200 cycles 1.7 %.
const STAGED_IN_TURN: u64 = 800;

/// Extra cycles of a tile's store where a consumer has two m64 tiles of it. In the sweep of 2026-11-27,
/// tiles of 256 rows took 4 % longer than estimated without them, cold, and 4 to 11 % sustained.
const TWO_M64: u64 = 890;

/// Bytes of C, or of accumulators for another CTA, per cycle that an SM stores.
pub(super) const STORED_PER_CYCLE: u64 = 26;

/// Cycles between the multiplies of one tile and the multiplies of the next, without the
/// cycles of the stores of C.
const BETWEEN_TILES: u64 = 158;

/// Cycles that a tile takes longer where lines are in classes: the first k-block has zeros in front,
/// for which the copy engine takes longer than for elements, and the producer finds the tile's class.
/// Of 250 launches of four to thirty k-blocks, each wave took 470 cycles longer than estimated
/// without this.
const CLASSED: u64 = 1197;

/// Hundredths by which later waves take longer than the first of clusters of four and eight, and of
/// consumers that divide columns: those of a stage have drifted apart, and wait for each other. Of 58
/// products that have such waves of clusters without this, and other kernels with 41, the choice is best
/// with 3 to 6 (`docs/perf-log.md`, "Clusters that fit"). Of 94 products with consumers that divide
/// columns, those with more than three waves took 2 to 3 % longer than estimated without this, beside
/// those with one.
const LATER_WAVES: u64 = 4;

/// Cycles at the order barrier of the ping-pong schedule: from the last multiply of one
/// consumer to the first of the other.
const ORDER_BARRIER: u64 = 100;

/// Cycles for the CTAs of a cluster that split K to exchange their accumulators, and the further
/// cycles for each of them: all CTAs send at once, before one barrier. With 358 and 138, 1,280 cold
/// launches in the sweeps took 3 to 6 % longer than estimated, more with more parts.
const EXCHANGE_LATENCY: (u64, u64) = (500, 200);

/// The percentage by which a store takes longer, if all lines that it writes began in the middle of a
/// sector: of a ping-pong kernel, while the other consumer loads and multiplies, where the lines of C do,
/// and of other kernels, where those of their tiles do. With a pitch of an odd multiple of 16 bytes, half
/// of them do, and so do the lines of tiles with an odd multiple of 8 columns.
/// 15224×5592×128 nt takes 81 µs on an H200, cold, in 128×192 tiles under ping-pong, which was estimated
/// at 55, and 73 in 64×192 tiles without; 2768×2320×72 nt takes 11.7 in 128×136 tiles, and 10.7 in 128×208.
const MID_SECTOR_STORE: u64 = 100;

/// Whether the staging of a hopper kernel is too small for a whole m64 tile of a 16-bit
/// type per consumer.
fn stages_in_parts(kernel: &KernelInfo) -> bool {
    kernel.staging_bytes < kernel.consumers * 64 * kernel.consumer_n * 2
}

/// Whether a hopper kernel has less than two staging buffers a consumer beside its stages.
fn stages_in_turn(kernel: &KernelInfo) -> bool {
    !kernel.leaves_sums && kernel.staging_bytes < kernel.consumers * 2 * 64 * 128
}

/// Where a launch finds its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In DRAM.
    Dram,
    /// In L2, as after a launch that used them.
    L2,
}

/// The quantities that an estimate is made from; all times are in cycles.
pub(super) struct Work {
    /// Number of cluster tiles.
    pub(super) tiles: u64,
    /// Number of cluster tiles that run at once.
    pub(super) at_once: u64,
    /// Number of k-blocks of one CTA for one tile.
    pub(super) k_blocks: u64,
    /// What one k-block takes.
    pub(super) k_block: KBlock,
    /// Time from a tile's last k-block to its last byte of C.
    pub(super) store: u64,
    /// The same behind loads and multiplies of another tile, under ping-pong.
    store_beside_loads: u64,
    /// What classes of lines cost a tile.
    classed: u64,
    /// Time in which the SM stores the bytes of a tile of C.
    sent: u64,
    /// Whether the main loop of the next tile hides the store.
    ping_pong: bool,
    /// Bytes of a tile's accumulators.
    pub(super) accumulators: u64,
    /// The share of one cluster tile in the bytes of A, B and C from and to DRAM, each once.
    pub(super) tile_bytes: u64,
    /// The same share of what comes from DRAM again where tiles do not share their reads.
    pub(super) bytes_again: u64,
    /// Whether arithmetic takes so long that it makes no difference where the operands are.
    pub(super) hidden_by_arithmetic: bool,
    /// CTAs of a cluster.
    pub(super) cluster_ctas: u64,
    /// Whether later waves take longer than the first.
    drifts_apart: bool,
    /// Whether the kernel stores no C, so that each tile has one part at least.
    pub(super) leaves_sums: bool,
    /// Whether the tiles are one row or one column.
    pub(super) is_line: bool,
    /// Whether loads go through TMA.
    pub(super) by_tma: bool,
    /// Where the launch finds its operands.
    pub(super) source: Source,
    /// SMs of the GPU.
    pub(super) sms: u64,
}

impl Work {
    pub(super) fn of(kernel: &KernelInfo, task: &Task, target: &Target, source: Source) -> Work {
        let (grid, cluster) = (task.grid, kernel.cluster);
        let [m, n] = [kernel.block.m, kernel.block.n].map(u64::from);
        let tiles = tiles(task);
        let at_once = target.clusters_at_once(kernel).into();
        let operands = Bytes::of(kernel, task);
        let (from_dram, again) = match source {
            Source::Dram => (
                operands.all(),
                operands.again(grid, tiles % at_once, target),
            ),
            Source::L2 => (0, 0),
        };
        let tile_bytes = from_dram / tiles.max(1);
        let k_block = KBlock::of(kernel, task, target, tile_bytes);
        let k_blocks = k_blocks(kernel, task);

        // Each CTA stores one part of the tile, and sends the other parts away as f32.
        let parts = u64::from(cluster.k);
        let part = m * n / parts;
        let bytes = part * u64::from(kernel.input.bytes());
        let between_sectors = match kernel.c_along_m {
            true => 0,
            // Every tile begins where the one before it ends.
            false => in_mid_sector(Strides::alignment_of(n * u64::from(kernel.input.bytes()))),
        };
        let sent = bytes / STORED_PER_CYCLE;
        let sent = sent + sent * between_sectors * MID_SECTOR_STORE / (100 * SECTOR);
        let exchange = if registers::are_loaded_through(kernel) {
            registers::exchange_cycles(kernel)
        } else if parts > 1 {
            let (latency, of_each) = EXCHANGE_LATENCY;
            latency + parts * of_each + (parts - 1) * 4 * part / STORED_PER_CYCLE
        } else {
            0
        };
        let store = BETWEEN_TILES
            + sent
            + u64::from(stages_in_parts(kernel)) * STAGED_IN_PARTS
            + u64::from(stages_in_turn(kernel)) * STAGED_IN_TURN
            + u64::from(kernel.m64_tiles() > 1) * TWO_M64
            + epilogue::cycles(kernel, &task.epilogue)
            + exchange;
        let in_mid_sector = in_mid_sector(task.alignment.c);
        Work {
            tiles,
            at_once,
            k_blocks,
            k_block,
            store,
            store_beside_loads: store + store * in_mid_sector * MID_SECTOR_STORE / (100 * SECTOR),
            classed: u64::from(task.line_classes > 1) * CLASSED,
            sent,
            ping_pong: kernel.ping_pong,
            accumulators: 4 * m * n,
            tile_bytes,
            bytes_again: again / tiles.max(1),
            hidden_by_arithmetic: operands.hidden_by_arithmetic(),
            cluster_ctas: cluster.ctas().into(),
            drifts_apart: cluster.ctas() > 2 || kernel.divides_columns(),
            leaves_sums: kernel.leaves_sums,
            is_line: grid.tiles_m == 1 || grid.tiles_n == 1,
            by_tma: !registers::are_loaded_through(kernel),
            source,
            sms: target.sms.max(1).into(),
        }
    }

    /// Bytes that one k-block of one CTA loads.
    pub(super) fn loads(&self) -> u64 {
        self.k_block.loads
    }

    /// Cycles of one k-block that nothing hides ([`KBlock::unhidden`]).
    pub(super) fn unhidden(&self) -> u64 {
        self.k_block.unhidden(self.first_ctas())
    }

    /// CTAs that have a tile of the first wave.
    fn first_ctas(&self) -> u64 {
        self.tiles.min(self.at_once) * self.cluster_ctas
    }

    /// The k-blocks behind the first one that CTAs load for each other in the first wave, if it is the
    /// only one.
    pub(super) fn shared_while_filling(&self, kernel: &KernelInfo) -> u64 {
        match kernel.cluster.sharing() > 1 && self.tiles <= self.at_once {
            true => self.k_blocks.saturating_sub(1),
            false => 0,
        }
    }

    /// Whether so many CTAs run at once that those of the next launch find no free SM. Those of a
    /// stream-K kernel are as many as there is room for.
    pub(super) fn crowds(&self, kernel: &KernelInfo) -> bool {
        kernel.stream_k_bytes > 0 || 2 * self.first_ctas() > self.sms
    }

    /// Time in which DRAM delivers `bytes` to `clusters` clusters.
    pub(super) fn dram_time(&self, bytes: u64, clusters: u64) -> u64 {
        let (all, one) = FROM_DRAM;
        let asked = one * clusters * self.cluster_ctas;
        bytes / asked.clamp(1, all * self.sms)
    }

    /// Time in which a wave of `tiles` tiles is loaded and multiplied.
    fn multiplied(&self, tiles: u64) -> u64 {
        let dram = self.dram_time(tiles * self.tile_bytes, tiles);
        let k_block = self.k_block.cycles(tiles * self.cluster_ctas);
        (self.k_blocks * k_block + self.classed).max(dram)
    }

    /// Time of a wave of `tiles` whole tiles, between two others.
    pub(super) fn wave(&self, tiles: u64) -> u64 {
        if self.ping_pong {
            let dram = self.dram_time(tiles * self.tile_bytes, tiles);
            let ctas = tiles * self.cluster_ctas;
            let multiply = self.k_blocks * self.k_block.cycles(ctas) + self.classed;
            // Loads and stores pass the same queue to L2, one after the other: the store of one
            // tile is not hidden by the loads of the next where both straddle lines
            // (15824×12216×160 on an H200: 243 µs in 128×192 tiles, 175 by 256×192).
            let requests = self.k_blocks * self.k_block.asked(ctas) + self.sent;
            let alternating = multiply.max(self.store_beside_loads).max(requests);
            (alternating + ORDER_BARRIER).max(dram)
        } else {
            let multiplied = self.multiplied(tiles);
            let hidden = self.sent.min(multiplied) * HIDDEN_STORE / 100;
            multiplied + self.store - hidden
        }
    }

    /// Time of all tiles, each computed by one cluster.
    pub(super) fn whole_tiles(&self) -> u64 {
        let (waves, left) = (self.tiles / self.at_once, self.tiles % self.at_once);
        let last = if left > 0 { self.wave(left) } else { 0 };
        let wave = self.wave(self.at_once);
        let (first, of_first) = match waves {
            0 => (left, last),
            _ => (self.at_once, wave),
        };
        let later = waves * wave + last - of_first;
        let apart = if self.drifts_apart {
            later * LATER_WAVES / 100
        } else {
            0
        };
        // The first wave stands behind no store, and nothing hides the store of the last one.
        self.multiplied(first) + later + apart + self.store
    }
}
