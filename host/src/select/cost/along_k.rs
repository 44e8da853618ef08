//! Estimates of tiles that several CTAs share, cut along K: under stream-K, and under split-K.
//!
//! The constants are fitted as `work.rs` says, where they name no other source.

use super::work::{STORED_PER_CYCLE, Source, Work};

/// Cycles from the stores of a CTA's accumulators, past the fence in L2, to another CTA's
/// loads of them.
const FIX_UP_LATENCY: u64 = 4270;

/// Bytes of another CTA's accumulators per cycle that a CTA loads and adds.
const ADDED_PER_CYCLE: u64 = 26;

/// Cycles that stream-K takes longer where ranges of k-blocks cross from one tile to the next, so
/// that a CTA writes and reduces.
const CROSSING: u64 = 5326;

/// Cycles from the last store of a product under split-K to the first addition of the launch
/// behind it, and the time of that launch without its loads: with operands from DRAM, and with
/// operands in L2, where launches follow each other closely. With 5771 and 3400, products drawn where less
/// changes the choice took 1 to 3 % longer cold and 4 to 8 back to back; with 3371 and 2200, others take as
/// long (`docs/perf-log.md`, "Split-K costs less than it did").
const REDUCE_LATENCY: (u64, u64) = (4171, 2800);

/// The same behind kernels that load through registers: with 800 and 600 less, products drawn take 2 to 8 %
/// longer.
const REDUCE_LATENCY_BEHIND_REGISTERS: (u64, u64) = (4971, 3400);

/// The further cycles for each part of a tile with operands from DRAM: 360×176×6200 nt in ten parts was
/// estimated 2 µs shorter than it is on an H200, cold, and clusters of the sweep of 2026-11-27 with one or
/// two parts 0.5 µs longer. With operands in L2 there is no such difference.
const EACH_PART: u64 = 80;

/// Bytes of accumulators per cycle and SM that the launch behind a product under split-K adds.
const REDUCED_PER_CYCLE: u64 = 15;

/// The percentage by which split-K without clusters takes longer than the rest of the estimate says:
/// fits to all products and to half of them gave 21 and 22, and the choice is as good with 15 to 25.
const SPLIT_K_MARGIN: u64 = 18;

/// The percentage by which split-K by clusters whose ranges of k-blocks cross from tile to tile has to be
/// better: their CTAs no longer read what they share with other clusters at the same time.
/// 64×5120×27648 nt, weights of 283 MB, was estimated shorter so than under stream-K, and takes 10 %
/// longer on an H200, cold. Loads through registers take so long that it makes no difference to them.
const CROSSING_MARGIN: u64 = 8;

impl Work {
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
                let multiply = k_blocks * self.k_block.cycles(ctas);
                let multiply = multiply.max(dram);
                let write = self.accumulators / STORED_PER_CYCLE;
                let read = peers * self.accumulators / ADDED_PER_CYCLE;
                multiply + write + FIX_UP_LATENCY + crossing + read + self.store
            }
        };
        let best = counts.map(|ctas| (whole + last(ctas), ctas)).min();
        best.expect("all is a count")
    }

    /// The fewest cycles under split-K, and the number of clusters that achieves them: an equal number
    /// for each tile, or, of kernels that leave their sums, all, which then share all tiles. `None`
    /// where tiles are not cut: they fill the GPU, or have one k-block.
    pub(super) fn split_k(&self) -> Option<(u64, u64)> {
        if self.tiles == 0 || self.tiles > self.at_once && !self.leaves_sums {
            return None;
        }
        // The kernel counts the k-blocks of tiles that are cut in 32 bits.
        let may_cut = self.all_k_blocks() <= u32::MAX.into();
        let least = if self.leaves_sums { 1 } else { 2 };
        let most = match may_cut {
            true => self.k_blocks.min((self.at_once / self.tiles).max(2)),
            false => 1,
        };
        let counts = (least..=most).map(|each| each * self.tiles);
        // With more waves there is little to gain, and all tiles have their sums in the workspace. In
        // a grid of several rows and columns, tiles that share an operand would read it at different
        // times: 512×544×8192 tn takes 22 µs so on an H200, cold, and 20 with three parts a tile. Loads
        // through registers take longer than that: 113×7034×15718 nt, 2×55 tiles, takes 6 % less.
        let may_cross = self.leaves_sums
            && (self.is_line || !self.by_tma)
            && !self.tiles.is_multiple_of(self.at_once)
            && self.tiles < 4 * self.at_once
            && self.k_blocks > 1
            && may_cut;
        let all = may_cross.then_some(self.at_once);
        counts
            .chain(all)
            .map(|clusters| (self.split_k_by(clusters), clusters))
            .min()
    }

    /// K-blocks of all tiles.
    fn all_k_blocks(&self) -> u64 {
        self.tiles.saturating_mul(self.k_blocks)
    }

    /// Cycles under split-K by so many clusters.
    pub(super) fn split_k_by(&self, clusters: u64) -> u64 {
        let at_once = clusters.min(self.at_once);
        let waves = clusters.div_ceil(self.at_once);
        let crosses = !clusters.is_multiple_of(self.tiles);
        // Tiles whose sums a cluster leaves, all parts, and what comes from DRAM again.
        let (tiles, parts, again) = if crosses {
            let again = self.tiles % clusters * self.bytes_again;
            (self.tiles / clusters + 2, clusters + self.tiles, again)
        } else {
            (1, clusters, 0)
        };
        let k_blocks = self.all_k_blocks().div_ceil(clusters);
        let dram = self.dram_time(self.tiles * self.tile_bytes + again, at_once);
        let k_block = self.k_block.cycles(at_once * self.cluster_ctas);
        let multiply = (waves * k_blocks * k_block).max(dram);
        let write = waves * tiles * self.accumulators / STORED_PER_CYCLE;
        let accumulators = parts * self.cluster_ctas * self.accumulators;
        let read = accumulators / (REDUCED_PER_CYCLE * self.sms);
        let margin = match self.leaves_sums {
            false => SPLIT_K_MARGIN,
            true if crosses && self.by_tma => CROSSING_MARGIN,
            true => 0,
        };
        let reduce = self.reduce_latency(clusters) + read;
        (multiply + write + reduce) * (100 + margin) / 100
    }

    /// The time of the launch that adds the sums of so many clusters, without its loads.
    fn reduce_latency(&self, clusters: u64) -> u64 {
        let (from_dram, from_l2) = match self.by_tma {
            true => REDUCE_LATENCY,
            false => REDUCE_LATENCY_BEHIND_REGISTERS,
        };
        match self.source {
            Source::Dram => from_dram + EACH_PART * clusters / self.tiles,
            Source::L2 => from_l2,
        }
    }
}
