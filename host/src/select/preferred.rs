//! Kernels that are taken before one whose estimated time is slightly less.
//!
//! The estimate leaves out how CTAs wait for each other and for L2. Each rule here has a margin: the
//! kernel that it prefers may be estimated to take so much longer. Each was judged on products that were drawn
//! afterwards where it changes the choice (`docs/perf-log.md`, 2026-11-29).

use gpu_kernels::{Family, KernelInfo};

use super::choice::Fit;
use super::cost::{Cost, Task};
use super::line_classes;
use crate::problem::{CACHE_LINE, Problem, Target};

/// A kernel with its cost, and how it can run the problem.
type Costed = (Cost, KernelInfo, Fit);

/// The same without the cost.
type Candidate<'a> = (&'a KernelInfo, &'a Fit);

/// The percentage by which clusters of eight CTAs have to be better than clusters of four of the same
/// tile, in one wave: they share both operands, so each CTA waits for CTAs that wait for others. With 4,
/// 26 products take 2.4 % less time back to back, and 0.4 % more cold ("Code that is there, and whole rows of
/// tiles"); with 8, other 110 take 1.4 and 0.1 % less ("Clusters in one deep wave").
const OF_EIGHT_MARGIN: u64 = 8;

/// The percentage by which two or four parts of K inside a cluster have to be better than split-K over
/// clusters, for a deep product of several rows and columns of tiles on most SMs: CTAs inside share
/// no loads, and those of clusters do. 35 products take 1.8 % less time cold, and 6.1 back to back
/// ("Split-K costs less than it did").
const SPLIT_INSIDE_MARGIN: u64 = 8;

/// The k-blocks from which on a product is deep in that sense. Of 91 products, the 36 with fewer take 3 %
/// longer cold, and 1 back to back.
const DEEP: u32 = 128;

/// The percentage by which kernels without clusters have to be better than clusters that share loads, for
/// one wave of small tiles on most SMs whose operands begin in mid-line: many CTAs ask L2 for each line,
/// and it is served to each of them. 78 products take 2.3 % less time cold, and 8.0 back to back; with 20,
/// others take 3.3 and 1.0 % longer ("Clusters in one deep wave").
const ALONE_MARGIN: u64 = 8;

/// The shorter side of a tile that is small in that sense.
const SMALL: u32 = 96;

/// The K from which on clusters make up for the time in which their stages are filled.
const FILLED: u32 = 2048;

/// The rows and columns of tiles from which on many CTAs ask for the same lines.
const SEVERAL: u32 = 3;

/// Puts the kernel that a rule prefers to the first of `sorted` before it, if there is one. `sees` is the
/// problem as a kernel sees it.
pub(super) fn put_first<'a>(
    sorted: &mut [Costed],
    target: &Target,
    sees: impl Fn(&Fit) -> &'a Problem,
) {
    let tiles = |(kernel, fit): Candidate| {
        let problem = sees(fit);
        let grid = line_classes::grid(kernel, problem, fit.classes);
        u64::from(grid.tiles()) * u64::from(problem.batches)
    };
    let is_one_wave = |kernel: Candidate| tiles(kernel) <= target.clusters_at_once(kernel.0).into();
    // On more than seven tenths of the SMs.
    let fills_one_wave = |kernel: Candidate| {
        let ctas = tiles(kernel) * u64::from(kernel.0.cluster.ctas());
        is_one_wave(kernel) && 10 * ctas > 7 * u64::from(target.sms)
    };
    let gives_way = |eight: Candidate| eight.0.cluster.sharing() == 8 && is_one_wave(eight);
    prefer(sorted, OF_EIGHT_MARGIN, gives_way, |eight, four| {
        let tile = |(kernel, _): Candidate| (kernel.block, kernel.c_along_m, kernel.stream_k_bytes);
        four.0.cluster.sharing() == 4 && four.0.stream_k_bytes == 0 && tile(eight) == tile(four)
    });
    let gives_way = |inside: Candidate| {
        let (kernel, fit) = inside;
        matches!(kernel.cluster.k, 2..=4)
            && sees(fit).k.div_ceil(kernel.block.k) >= DEEP
            && fills_one_wave(inside)
    };
    prefer(sorted, SPLIT_INSIDE_MARGIN, gives_way, |_, over| {
        over.0.leaves_sums
            && over.0.cluster.sharing() > 1
            && has_tiles_for_all_ctas(over.0, sees(over.1))
    });
    let gives_way = |alone: Candidate| {
        asks_alone_for_lines_of_many(alone, sees(alone.1)) && fills_one_wave(alone)
    };
    prefer(sorted, ALONE_MARGIN, gives_way, |_, clusters| {
        clusters.0.cluster.sharing() > 1 && clusters.0.stream_k_bytes == 0
    });
}

/// Whether small tiles without clusters ask L2 for lines in whose middle an operand begins, many CTAs for
/// each of them, and for so long that clusters make up for their start.
fn asks_alone_for_lines_of_many((kernel, fit): Candidate, problem: &Problem) -> bool {
    let task = Task::of(kernel, problem, fit.packed, fit.classes);
    kernel.family == Family::Hopper
        && kernel.cluster.ctas() == 1
        && kernel.stream_k_bytes == 0
        && kernel.block.m.min(kernel.block.n) <= SMALL
        && task.k >= FILLED
        && task.grid.tiles_m.min(task.grid.tiles_n) >= SEVERAL
        && task.alignment.a.min(task.alignment.b) < CACHE_LINE
}

/// Whether there are several rows and several columns of tiles, and as many as a cluster has CTAs: the
/// others would have no tile.
fn has_tiles_for_all_ctas(kernel: &KernelInfo, problem: &Problem) -> bool {
    let (block, cluster) = (kernel.block, kernel.cluster);
    problem.m.div_ceil(block.m) >= cluster.m.max(2)
        && problem.n.div_ceil(block.n) >= cluster.n.max(2)
}

/// Puts the first kernel that `is_preferred` to the first of `sorted` before it, if that one `gives_way`,
/// unless its estimated time is longer by more than `margin` percent.
fn prefer(
    sorted: &mut [Costed],
    margin: u64,
    gives_way: impl Fn(Candidate) -> bool,
    is_preferred: impl Fn(Candidate, Candidate) -> bool,
) {
    let Some(((cost, kernel, fit), others)) = sorted.split_first() else {
        return;
    };
    let first = (kernel, fit);
    if !gives_way(first) {
        return;
    }
    let most = cost.mean.saturating_mul(100 + margin) / 100;
    let mut near = others.iter().take_while(|(cost, ..)| cost.mean <= most);
    let at = near.position(|(_, other, fit)| is_preferred(first, (other, fit)));
    if let Some(at) = at {
        sorted[..=at + 1].rotate_right(1);
    }
}
