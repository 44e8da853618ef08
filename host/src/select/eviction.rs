//! How much of each operand of a launch L2 is to evict before other lines ([`EvictFirst`]).
//!
//! Lines that this launch will not read again push out what L2 held before: C of the launch before,
//! which has to be written to DRAM first, while this launch needs DRAM for its operand, and which
//! the next launch may read. Evicted first, they push out each other. On the other hand an operand
//! that is evicted first is never in L2 when the next launch wants it again. So a quarter of L2
//! keeps a part of it, as it keeps any lines, and the rest is evicted first:
//!
//! ```text
//! share evicted first = 1 − ¼ · L2 / operand        rounded to 0, ½, ¾, ⅞ or 1
//! ```
//!
//! There are five shares only, because the driver compiles a kernel for each. On an H200, linear
//! layers take 3 to 12 % less time behind an L2 that had been overwritten, and from 5 % more to 19 %
//! less when one launch follows another with the same operands (`docs/perf-log.md`, "What is read
//! once is evicted first").
//!
//! Nothing is evicted first
//!
//! - that later waves read again: 13072×552×7752, in four waves whose five columns of tiles all read
//!   A, took 9 % longer so;
//! - of an operand of more than six times L2, which takes so long that what is pushed out makes no
//!   difference: such linear layers took up to 4 % longer on an H100;
//! - of an operand of more than three times L2 whose lines straddle cache lines, of which the next
//!   box wants the other half: 9160×176×13328 took a third longer on an H100.

use gpu_kernels::{EvictFirst, Major, Schedule};

use super::check;
use super::choice::{Choice, elements};
use super::cost::Alignment;
use crate::problem::{CACHE_LINE, Problem, Strides, Target};

/// The part of L2 that keeps lines of an operand.
const KEEPS: u64 = 4;

/// The most columns of tiles that may read a row of tiles of A where there is more than one wave,
/// and the same for B. Two of them run at about the same time in any order that is chosen for large
/// operands.
const MOST_READERS: u32 = 2;

/// What the launch of `choice` lets L2 evict first. `problem` is as the kernel sees it.
pub(crate) fn evict_first(choice: &Choice, problem: &Problem, target: &Target) -> EvictFirst {
    let kernel = &choice.kernel;
    if !kernel.loads_by_tma {
        return EvictFirst::NONE;
    }
    let at_once = target.clusters_at_once(kernel);
    let is_one_wave = match choice.schedule {
        Schedule::SplitK => choice.stream_k_ctas <= at_once,
        _ => choice.tiles() <= at_once,
    };
    let alignment = Alignment::of(kernel, problem, choice.packed);
    let of = |operand: &Strides, lines: u32, (major, alignment), readers: u32| {
        let readers = match operand.batch_stride {
            0 => readers.saturating_mul(problem.batches),
            _ => readers,
        };
        // Neighbouring tiles share the lines that straddle their edge.
        let shares_lines = major == Major::Mn && alignment < CACHE_LINE;
        if !is_one_wave && (readers > MOST_READERS || shares_lines) {
            return 0;
        }
        let bytes = elements(problem, lines, operand).saturating_mul(kernel.input.bytes().into());
        sixteenths(bytes, target.l2_bytes / KEEPS, alignment >= CACHE_LINE)
    };
    let a = (check::a_major(kernel, problem), alignment.a);
    let b = (check::b_major(kernel, problem), alignment.b);
    EvictFirst {
        a: of(&problem.a, problem.m, a, choice.grid.tiles_n),
        b: of(&problem.b, problem.n, b, choice.grid.tiles_m),
    }
}

/// The share of an operand of `bytes` that is evicted first, if about `kept` bytes are not; its
/// lines are cache lines, or straddle them.
fn sixteenths(bytes: u64, kept: u64, has_cache_lines: bool) -> u8 {
    match 2 * bytes / kept.max(1) {
        0..3 => 0,
        3..6 => 8,
        6..12 => 12,
        12..24 => 14,
        24..48 if has_cache_lines => 16,
        24.. => 0,
    }
}
