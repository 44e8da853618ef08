//! Kernels that are taken before one whose estimated time is slightly less.
//!
//! The estimate leaves out how CTAs wait for each other and for L2. Each rule here names kernels that give
//! way, and those that then go before them although they are estimated to take longer, by a margin at most.
//! Each was judged on products that were drawn afterwards where it changes the choice; the headings are
//! those of `docs/perf-log.md`, 2026-11-29 and 30.

use gpu_kernels::{Block, Family, KernelInfo, TileGrid};

use super::choice::Fit;
use super::cost::{Cost, Task};
use super::whole_rows::is_written_past_l2;
use super::{line_classes, place};
use crate::problem::{CACHE_LINE, Problem, Target};

/// A kernel with its cost, and how it can run the problem.
type Costed = (Cost, KernelInfo, Fit);

/// Which kernels give way to which.
struct Rule {
    /// The percentage by which the kernel that is preferred may be estimated to take longer.
    margin: u64,
    /// Whether the kernel of least estimate gives way.
    gives_way: fn(&Candidate) -> bool,
    /// Whether the second kernel goes before the first, which gives way.
    is_preferred: fn(&Candidate, &Candidate) -> bool,
}

/// All rules, in the order in which they are asked.
const RULES: [Rule; 6] = [
    FOUR_BEFORE_EIGHT,
    FEWER_BEFORE_EIGHT,
    FOUR_IN_ONE_ROW,
    NO_PING_PONG_PAST_L2,
    OVER_CLUSTERS_BEFORE_INSIDE,
    CLUSTERS_IN_A_DEEP_WAVE,
];

/// In one wave, clusters of eight CTAs give way to clusters of four of the same tile: they share both operands,
/// so each CTA waits for CTAs that wait for others. With a margin of 4, 26 products take 2.4 % less time back
/// to back, and 0.4 % more cold ("Code that is there, and whole rows of tiles"); with 8, other 110 take 1.4
/// and 0.1 % less ("Clusters in one deep wave").
const FOUR_BEFORE_EIGHT: Rule = Rule {
    margin: 8,
    gives_way: |eight| eight.is_one_wave_of_eights(),
    is_preferred: |eight, four| {
        four.kernel.cluster.sharing() == 4
            && four.needs_no_workspace()
            && four.has_the_tile_of(eight)
    },
};

/// In one wave of few k-blocks, several rows and columns of clusters of eight give way to clusters of two and
/// four of any tile. 45 products take 0.8 % less time cold, and 4.8 back to back. 26 with at most four k-blocks
/// take 2.5 and 1.0 % longer, and 22 with one row or column of clusters 0.5 and 1.4: these
/// limits follow from the products themselves ("One row of tiles, and C past L2").
const FEWER_BEFORE_EIGHT: Rule = Rule {
    margin: 4,
    gives_way: |eight| {
        eight.is_one_wave_of_eights()
            && (5..=32).contains(&eight.k_blocks())
            && eight.shorter_side_of_grid() >= 2
    },
    is_preferred: |_, fewer| {
        matches!(fewer.kernel.cluster.sharing(), 2..=4) && fewer.needs_no_workspace()
    },
};

/// One row of 64×128 tiles without clusters gives way to clusters of four of that tile, which read A once for
/// four CTAs. 37 products take 4.0 % less time cold, and 7.9 back to back ("One row of tiles, and C past L2").
const FOUR_IN_ONE_ROW: Rule = Rule {
    margin: 8,
    gives_way: |alone| {
        let Block { m, n, .. } = alone.kernel.block;
        alone.shares_nothing() && (m, n) == (64, 128) && alone.grid().tiles_m == 1
    },
    is_preferred: |alone, four| {
        four.kernel.cluster.n == 4
            && four.kernel.cluster.ctas() == 4
            && four.needs_no_workspace()
            && four.has_the_tile_of(alone)
    },
};

/// Where writing C takes longer than multiplying, and L2 cannot hold it, ping-pong gives way: presumably
/// because its consumers write two tiles of a CTA at a time, which lie apart. 40 products take 4.1 % less time cold, and 2.5 back
/// to back ("One row of tiles, and C past L2").
const NO_PING_PONG_PAST_L2: Rule = Rule {
    margin: 12,
    gives_way: |ping_pong| ping_pong.kernel.ping_pong && ping_pong.is_written_past_l2(),
    is_preferred: |_, other| !other.kernel.ping_pong && other.needs_no_workspace(),
};

/// For a deep product of several rows and columns of tiles on most SMs, two or four parts of K inside a cluster
/// give way to split-K over clusters: CTAs inside share no loads, and those of clusters do. 35 products
/// take 1.8 % less time cold, and 6.1 back to back ("Split-K costs less than it did").
const OVER_CLUSTERS_BEFORE_INSIDE: Rule = Rule {
    margin: 8,
    gives_way: |inside| {
        // Of 91 products, the 36 with fewer k-blocks take 3 % longer cold, and 1 back to back.
        matches!(inside.kernel.cluster.k, 2..=4)
            && inside.k_blocks() >= 128
            && inside.fills_one_wave()
    },
    is_preferred: |_, over| {
        over.kernel.leaves_sums
            && over.kernel.cluster.sharing() > 1
            && over.has_tiles_for_all_ctas()
    },
};

/// In one wave on most SMs, small tiles without clusters whose operands begin in mid-line give way to clusters
/// that share loads: many CTAs ask L2 for each line, and it is served to each of them. 78 products take
/// 2.3 % less time cold, and 8.0 back to back; with a margin of 20, others take 3.3 and 1.0 % longer ("Clusters
/// in one deep wave").
const CLUSTERS_IN_A_DEEP_WAVE: Rule = Rule {
    margin: 8,
    gives_way: |alone| {
        let Block { m, n, .. } = alone.kernel.block;
        let task = alone.task();
        // From this K on, clusters make up for the time in which their stages are filled.
        alone.shares_nothing()
            && m.min(n) <= 96
            && task.k >= 2048
            && alone.shorter_side_of_grid() >= 3
            && task.alignment.a.min(task.alignment.b) < CACHE_LINE
            && alone.fills_one_wave()
    },
    is_preferred: |_, clusters| {
        clusters.kernel.cluster.sharing() > 1 && clusters.needs_no_workspace()
    },
};

/// Puts the kernel that a rule prefers to the first of `sorted` before it, if there is one. `sees` is the
/// problem as a kernel sees it.
pub(super) fn put_first<'a>(
    sorted: &mut [Costed],
    target: &Target,
    sees: impl Fn(&Fit) -> &'a Problem,
) {
    for rule in &RULES {
        let candidate = |(_, kernel, fit): &Costed| Candidate {
            kernel: *kernel,
            fit: *fit,
            problem: sees(fit),
            target,
        };
        if let Some(at) = rule.preferred(sorted, candidate) {
            sorted[..=at].rotate_right(1);
        }
    }
}

impl Rule {
    /// Where in `sorted` the kernel stands that goes before the first of it.
    fn preferred<'a>(
        &self,
        sorted: &[Costed],
        candidate: impl Fn(&Costed) -> Candidate<'a>,
    ) -> Option<usize> {
        let (first, others) = sorted.split_first()?;
        let most = first.0.mean.saturating_mul(100 + self.margin) / 100;
        let first = candidate(first);
        if !(self.gives_way)(&first) {
            return None;
        }
        let mut near = others.iter().take_while(|(cost, ..)| cost.mean <= most);
        let at = near.position(|other| (self.is_preferred)(&first, &candidate(other)))?;
        Some(at + 1)
    }
}

/// A kernel that can run the problem.
struct Candidate<'a> {
    kernel: KernelInfo,
    fit: Fit,
    /// The problem as the kernel sees it.
    problem: &'a Problem,
    target: &'a Target,
}

impl Candidate<'_> {
    fn grid(&self) -> TileGrid {
        line_classes::grid(&self.kernel, self.problem, self.fit.classes)
    }

    fn task(&self) -> Task {
        let Fit {
            packed, classes, ..
        } = self.fit;
        Task::of(&self.kernel, self.problem, packed, classes)
    }

    fn k_blocks(&self) -> u32 {
        self.problem.k.div_ceil(self.kernel.block.k)
    }

    fn has_the_tile_of(&self, other: &Candidate) -> bool {
        let tile = |kernel: &KernelInfo| (kernel.block, kernel.c_along_m);
        tile(&self.kernel) == tile(&other.kernel)
    }

    /// Whether no CTA leaves sums in a workspace for another, or for a second launch.
    fn needs_no_workspace(&self) -> bool {
        self.kernel.stream_k_bytes == 0
    }

    /// Whether CTAs share neither loads nor tiles.
    fn shares_nothing(&self) -> bool {
        let KernelInfo {
            family, cluster, ..
        } = self.kernel;
        family == Family::Hopper && cluster.ctas() == 1 && self.needs_no_workspace()
    }

    /// Rows of tiles, or columns of them where these are fewer; of clusters, where the kernel has them.
    fn shorter_side_of_grid(&self) -> u32 {
        let TileGrid { tiles_m, tiles_n } = self.grid();
        tiles_m.min(tiles_n)
    }

    /// Whether there are several rows and several columns of tiles, and as many as a cluster has CTAs: the
    /// others would have no tile.
    fn has_tiles_for_all_ctas(&self) -> bool {
        let (block, cluster) = (self.kernel.block, self.kernel.cluster);
        self.problem.m.div_ceil(block.m) >= cluster.m.max(2)
            && self.problem.n.div_ceil(block.n) >= cluster.n.max(2)
    }

    fn tiles(&self) -> u64 {
        u64::from(self.grid().tiles()) * u64::from(self.problem.batches)
    }

    fn is_one_wave(&self) -> bool {
        self.tiles() <= self.target.clusters_at_once(&self.kernel).into()
    }

    /// Whether clusters of eight CTAs that share loads compute all tiles in one wave.
    fn is_one_wave_of_eights(&self) -> bool {
        self.kernel.cluster.sharing() == 8 && self.needs_no_workspace() && self.is_one_wave()
    }

    /// Whether all tiles are one wave, on more than seven tenths of the SMs.
    fn fills_one_wave(&self) -> bool {
        let ctas = self.tiles() * u64::from(self.kernel.cluster.ctas());
        self.is_one_wave() && 10 * ctas > 7 * u64::from(self.target.sms)
    }

    fn is_written_past_l2(&self) -> bool {
        let problem = self.problem;
        let shape = [problem.m, problem.n, problem.k];
        let workload = place::workload(&self.kernel, shape, problem.input, problem.output);
        problem.batches == 1 && is_written_past_l2(&workload, self.target.machine(&self.kernel))
    }
}
