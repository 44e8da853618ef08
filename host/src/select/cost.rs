//! The estimated time of a kernel, in cycles of an SM.
//!
//! ```text
//! waves   = clusters that have a tile / clusters that run at once, rounded up
//! asked   = max(cycles that an SM takes to request its bytes, cycles that L2 takes to serve them)
//! arrives = max(cycles that an SM takes to receive its bytes, (latency + asked) / (stages − 1),
//!               cycles that L2 takes to deliver what reaches it)
//! k_block = max(arithmetic ⊕ shared ⊕ asked, arrives, least) + waits + power     BLOCK_K of one tile;
//!           a ⊕ b = (a⁴ + b⁴)^¼
//! first   = max(k_blocks · k_block + classed, DRAM)
//! wave    = first + store − hidden
//! cycles  = set-up + first + (waves − 1) · wave · apart + store
//! ```
//!
//! `shared` is what shared memory takes to be written by TMA and read by `wgmma`, and `least` what a
//! consumer takes however narrow its tile is.
//!
//! What reaches L2 is less than what SMs request, because requests for a line that come together
//! are one. In the first wave they do, and where a launch has more waves, L2 has a limit in bytes: 64
//! a cycle from each of its slices, which are fewer on an H100 than on an H200.
//!
//! L2 serves the whole GPU: where half of the SMs ask, it serves each of them in half the time. A
//! line for which many CTAs ask at the same time takes longer.
//!
//! `set-up` is that of the stages, of clusters (whose CTAs wait for each other's first stages where they
//! share loads), and a part of the k-block that nothing hides: the first one arrives before there is
//! anything to multiply, the last one is multiplied when nothing arrives.
//!
//! `hidden` is the part of a store that the next wave hides, because the copy engine sends C to L2
//! while the next tile is multiplied. The first wave stands behind no store, and nothing hides that of
//! the last one.
//!
//! `apart` is 1, but for clusters of four and eight, whose CTAs drift apart after the first wave.
//!
//! DRAM is the time for a wave's share of A, B and C, each read or written once. A wave that
//! leaves SMs idle cannot ask for all that DRAM delivers.
//!
//! All this is computed twice: with operands from DRAM, and with operands in L2, where nothing takes
//! time in DRAM, and a launch whose CTAs take more than half of the SMs waits for the one before it.
//! Kernels are compared by the geometric mean of the two, each with the time of its launch, unless
//! arithmetic takes more than twice as long as DRAM. On linear layers of few rows, kernels within 2 % of
//! each other cold differ by 30 % where the weights are in L2, and the mean chooses better than either
//! in both regimes (`docs/perf-log.md`, "Kernels compared cold and warm").
//!
//! Under the ping-pong schedule, one consumer stores its tile while the other multiplies.
//! The longer of the two phases counts, and only the store of the last tile is not hidden.
//! An order barrier separates the main loops of the two consumers, of which the first waits for none:
//!
//! ```text
//! wave = max(max(k_blocks · k_block, store, k_blocks · asked + stored) + order_barrier, DRAM)
//! ```
//!
//! Loads and stores pass the same queue to L2, one after the other.
//!
//! Under stream-K, the number of waves is rounded down, and the remaining tiles are cut
//! along K and shared among some of the CTAs. The other CTAs write the accumulators of
//! their parts to a workspace, and the CTA that finishes a tile adds up the accumulators
//! of all its parts (the paper's *fix-up*):
//!
//! ```text
//! last wave = max(tiles · k_blocks / ctas · k_block, DRAM) + write
//!             + latency + (ctas / tiles − 1) · read + store
//! ```
//!
//! Where the number of CTAs is a multiple of the number of tiles, neighbouring tiles are cut at
//! the same depth, and the operand that they share comes from DRAM once. Elsewhere they read it
//! at different times, and where operands are larger than L2 it comes again, unless so many tiles
//! share it that one has just read it (`Bytes::again`).
//!
//! Under split-K, all tiles are cut into equal parts, and a second launch adds the accumulators
//! of all of them, on all SMs at once:
//!
//! ```text
//! cycles = waves · max(k_blocks / parts · k_block, DRAM) + write + launch + accumulators / read
//! ```
//!
//! A kernel that leaves its sums may also deal the k-blocks of all tiles to all clusters; those whose
//! ranges cross from one tile to the next write twice.
//!
//! With more CTAs, each CTA computes less, but the finishing CTA reads more; the estimate
//! takes the number of CTAs with the fewest cycles. (The paper's "grid size selection",
//! section 5.1, makes the same trade-off.)
//!
//! `store` includes the arithmetic of the epilogue (`cost/epilogue.rs`). Where tensor_core
//! copies an operand element by element, these copies are a lower bound of `k_block`.
//!
//! The number of waves decides between tiles: a large tile computes more for
//! each byte it loads, but leaves SMs idle in the last wave. The rates (`cost/k_block.rs`,
//! `cost/work.rs`, `cost/along_k.rs`) are those of an SM of an H100 or H200. Other devices have other
//! rates, but similar ratios between their units, and a comparison needs only the ratios.

mod along_k;
mod bytes;
mod epilogue;
mod k_block;
mod task;
mod work;

use gpu_kernels::{Family, KernelInfo, Schedule, TileGrid};

use super::choice::Choice;
use crate::epilogue_form::EpilogueForm;
use crate::problem::{Problem, Target};
use work::{Source, Work};

pub use task::{Alignment, Task};

/// Cycles to start clusters and stop them together, with operands from DRAM and with operands in L2,
/// where launches follow each other closely; fitted as the constants of `cost/work.rs`.
const CLUSTER_LATENCY: (u64, u64) = (93, 15);

/// Further cycles of clusters that share loads, where their tiles are one wave, with operands from DRAM and
/// with operands in L2: until the stages of all their CTAs have arrived for the first time, each waits
/// for the latest. In the sweeps, 300 products of 4 to 16 k-blocks took 450 to 1,060 cycles longer by
/// clusters than estimated without this, cold, and 150 to 400 back to back, against kernels without.
const CLUSTER_FILL: (u64, u64) = (700, 280);

/// The k-blocks behind the first from which on clusters take all of that, as many as most kernels have
/// stages; fewer take their share.
const CLUSTER_FILL_K_BLOCKS: u64 = 12;

/// Cycles from the call of a launch to its first tile and behind its last, the same for every kernel, with
/// operands from DRAM and with operands in L2, where launches follow each other closely. They decide
/// how much the rest weighs: 1000 cycles are 7 % of a cold launch whose tiles take 3 µs, and 13 % of
/// one that follows another. Of 1,270 launches below 3 µs, the second took 1.1 to 1.3 µs longer than
/// estimated without this, in the median.
const LAUNCH: (u64, u64) = (9505, 2000);

/// Cycles of a launch that closely follows another, where its CTAs take more than half of the SMs: until a
/// CTA of the launch before it has ended, there is no SM on which they set themselves up. Between
/// kernels on the same product, 1,300 launches below 3 µs differed by 210 to 450 cycles at that number.
const CROWDED: u64 = 300;

/// Cycles to set up a stage of a hopper kernel, fitted as the constants of `cost/work.rs`.
const STAGE: u64 = 16;

/// The percentage of what one k-block takes to arrive, or to be multiplied where that takes less, that
/// nothing hides: once a launch (`KBlock::unhidden`).
const UNHIDDEN: u64 = 18;

/// The 1000ths by which clusters that share loads have to be better: without them, 2048³ would take
/// 256×128 tiles in clusters, which were not measured there, for an estimate that is 0.6 % lower.
const SHARED_LOADS_MARGIN: u64 = 7;

/// The 1000ths by which four and eight classes of lines have to be better: tiles of different classes
/// read the operand that they share from different places on, so that fewer of their requests meet.
/// Of 170 launches with as many tiles as without classes, these were 4 to 5 % slower than
/// estimated without this.
const APART_MARGIN: u64 = 116;

/// The percentage by which stream-K has to be better: its gain depends on rates that the
/// other estimates do not use.
const STREAM_K_MARGIN: u64 = 1;

/// An estimate to compare kernels by: smaller is better, the mean first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Cycles from the call to the end: the geometric mean of those with operands from DRAM and those
    /// with operands in L2, which are the same where it makes no difference.
    pub mean: u64,
    /// Bytes that one k-block of one CTA takes from L2.
    pub loads: u64,
    /// Cycles from first to last with operands from DRAM, without those of the launch.
    pub cycles: u64,
}

/// The estimate for `choice` and `problem`.
pub(crate) fn of_choice(choice: &Choice, problem: &Problem, target: &Target) -> Cost {
    let (kernel, packed, classes) = (&choice.kernel, choice.packed, choice.line_classes);
    let task = match choice.transposed {
        true => Task::of(kernel, &problem.transposed(), packed, classes),
        false => Task::of(kernel, problem, packed, classes),
    };
    under(Some(choice.schedule), kernel, &task, target)
}

/// The estimate for `kernel` and its `task`. For a stream-K kernel, it is that of the better of
/// its schedules, and includes the margin by which it has to be better than other kernels.
pub fn estimate(kernel: &KernelInfo, task: &Task, target: &Target) -> Cost {
    under(None, kernel, task, target)
}

/// The estimate under `schedule`, or under the better of a stream-K kernel's two.
pub(super) fn under(
    schedule: Option<Schedule>,
    kernel: &KernelInfo,
    task: &Task,
    target: &Target,
) -> Cost {
    let works = Works::of(kernel, task, target);
    let cycles = if kernel.stream_k_bytes > 0 {
        let schedule = schedule.or(kernel.leaves_sums.then_some(Schedule::SplitK));
        let cycles = match schedule {
            Some(Schedule::StreamK) => works.stream_k(),
            Some(Schedule::SplitK) => works.split_k().unwrap_or_else(|| works.whole_tiles()),
            _ => works.split_k().map_or_else(
                || works.stream_k(),
                |split_k| split_k.or_less(works.stream_k()),
            ),
        };
        cycles.map(|cycles| cycles * 100 / (100 - STREAM_K_MARGIN))
    } else {
        works.whole_tiles()
    };
    let cluster = match kernel.cluster.ctas() {
        1 => (0, 0),
        _ => CLUSTER_LATENCY,
    };
    let cluster = works.both_of(cluster).plus(works.cluster_fill(kernel));
    let crowded = works.both_of((0, u64::from(works.dram.crowds(kernel)) * CROWDED));
    let set_up = match kernel.family {
        Family::Hopper => STAGE * u64::from(kernel.stages) + works.dram.unhidden() * UNHIDDEN / 100,
        _ => 0,
    };
    // A margin in 1000ths.
    let margin = match kernel.cluster.sharing() {
        0 | 1 => 0,
        _ => SHARED_LOADS_MARGIN,
    };
    let apart = match task.line_classes {
        0..=2 => 0,
        _ => APART_MARGIN,
    };
    let cycles = cycles.plus(cluster).map(|cycles| {
        let cycles = cycles * (1000 + margin) / 1000;
        set_up + cycles * (1000 + apart) / 1000
    });
    let cycles = cycles.plus(crowded);
    Cost {
        mean: cycles.mean(),
        loads: works.dram.loads(),
        cycles: cycles.dram,
    }
}

/// Cycles with operands from DRAM and with operands in L2.
#[derive(Clone, Copy, Debug)]
struct Cycles {
    dram: u64,
    l2: u64,
}

impl Cycles {
    /// What kernels are compared by: the geometric mean, with the times of the launch. A launch may find
    /// its operands in either place, and a kernel that is much slower in one of them is no good choice
    /// for being slightly faster in the other.
    fn mean(self) -> u64 {
        let (dram, l2) = (self.dram + LAUNCH.0, self.l2 + LAUNCH.1);
        (u128::from(dram) * u128::from(l2)).isqrt() as u64
    }

    fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Cycles {
            dram: f(self.dram),
            l2: f(self.l2),
        }
    }

    fn plus(self, other: Self) -> Self {
        Cycles {
            dram: self.dram + other.dram,
            l2: self.l2 + other.l2,
        }
    }

    fn or_less(self, other: Self) -> Self {
        if other.mean() < self.mean() {
            other
        } else {
            self
        }
    }
}

/// The work of a kernel with operands from DRAM and with operands in L2.
struct Works {
    dram: Work,
    /// `None` where it makes no difference where the operands are.
    l2: Option<Work>,
    gated: bool,
}

impl Works {
    fn of(kernel: &KernelInfo, task: &Task, target: &Target) -> Self {
        let of = |source| Work::of(kernel, task, target, source);
        let dram = of(Source::Dram);
        Works {
            l2: (!dram.hidden_by_arithmetic).then(|| of(Source::L2)),
            dram,
            gated: task.epilogue.gated.is_some(),
        }
    }

    fn both(&self, cycles: impl Fn(&Work) -> u64) -> Cycles {
        let dram = cycles(&self.dram);
        let l2 = self.l2.as_ref().map_or(dram, cycles);
        Cycles { dram, l2 }
    }

    /// Of two constants, the first is that with operands from DRAM.
    fn both_of(&self, (dram, l2): (u64, u64)) -> Cycles {
        Cycles {
            dram,
            l2: if self.l2.is_some() { l2 } else { dram },
        }
    }

    /// What clusters take longer until their stages are full.
    fn cluster_fill(&self, kernel: &KernelInfo) -> Cycles {
        let k_blocks = self.dram.shared_while_filling(kernel);
        let share = k_blocks.min(CLUSTER_FILL_K_BLOCKS);
        let of = |cycles| cycles * share / CLUSTER_FILL_K_BLOCKS;
        self.both_of((of(CLUSTER_FILL.0), of(CLUSTER_FILL.1)))
    }

    fn whole_tiles(&self) -> Cycles {
        self.both(Work::whole_tiles)
    }

    fn stream_k(&self) -> Cycles {
        self.both(|work| work.stream_k().0)
    }

    /// `None` where split-K cuts no tile.
    fn split_k(&self) -> Option<Cycles> {
        if self.gated {
            // Pairs of columns would be finished in one tile.
            return None;
        }
        let (dram, clusters) = self.dram.split_k()?;
        let l2 = (self.l2.as_ref()).map_or(dram, |work| work.split_k_by(clusters));
        Some(Cycles { dram, l2 })
    }
}

/// Whether a stream-K kernel is faster under split-K than under stream-K; `None` where split-K
/// cuts no tile.
pub(super) fn prefers_split_k(kernel: &KernelInfo, task: &Task, target: &Target) -> Option<bool> {
    let works = Works::of(kernel, task, target);
    Some(works.split_k()?.mean() < works.stream_k().mean())
}

/// The number of CTAs that share tiles of `batches` times `grid`: under
/// [`Schedule::StreamK`] those with which a stream-K kernel computes the tiles that do not fill a
/// wave, under [`Schedule::SplitK`] all, an equal number for each tile.
///
/// Under stream-K each of these tiles gets at least one CTA, and at least two where it has two k-blocks
/// and there are enough CTAs. The number is at most the number of CTAs that run at once,
/// and 1 where no tile remains. The estimate assumes that operands begin on cache lines and
/// that the product is plain, whether they do and it is or not: the place at which a tile is
/// cut decides the order in which its products are added up, and the result must not depend
/// on an address, nor the sums on the epilogue.
pub fn shared_ctas(
    kernel: &KernelInfo,
    grid: TileGrid,
    batches: u32,
    k: u32,
    target: &Target,
    schedule: Schedule,
) -> u32 {
    let task = Task {
        grid,
        batches,
        k,
        rows: u32::MAX,
        columns: u32::MAX,
        matrices: [batches; 2],
        alignment: Alignment::CACHE_LINES,
        by_element: false,
        line_classes: 1,
        epilogue: EpilogueForm::PLAIN,
    };
    let work = Work::of(kernel, &task, target, Source::Dram);
    let ctas = match schedule {
        Schedule::SplitK => work.split_k().map_or(work.tiles, |(_, ctas)| ctas),
        _ => work.stream_k().1,
    };
    ctas as u32
}

/// Whether `kernel` may be worth measuring. A stream-K kernel is worth it only where the last
/// wave of tiles is not full.
pub(super) fn can_gain(kernel: &KernelInfo, grid: TileGrid, batches: u32, target: &Target) -> bool {
    let (tiles, at_once) = (
        grid.tiles().saturating_mul(batches),
        target.clusters_at_once(kernel),
    );
    kernel.stream_k_bytes == 0 || !tiles.is_multiple_of(at_once) || kernel.leaves_sums
}

#[cfg(test)]
mod tests;
