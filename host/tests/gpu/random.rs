//! Random products. Shape, layouts, kernel, walk and types are drawn together, which gives
//! combinations that the crosses of [`cases`](crate::cases) leave out.
//!
//! Case `i` of seed `s` is a function of `s` and `i` alone. Its name holds all
//! of it, so `--seed s --filter random/i/` replays it, data included.
//!
//! - *Sides* favour difficult numbers: 1 to 9, one around a multiple of
//!   a block, primes, multiples of 8 and 16. One product in five has one long
//!   side, up to 4096, or is large, up to 1500 a side.
//! - *Kernels*: a hopper kernel that can read the operands where they are, now and
//!   then one that few cases suit; or any
//!   kernel that can; or one that must have them packed; or whatever
//!   the library chooses.
//! - *Checked* is all of C up to 2²⁷ multiplications, and 48 rows beyond
//!   ([`rows_to_check`](crate::reference::rows_to_check)).

use std::hash::{DefaultHasher, Hash, Hasher};

use gpu_kernels::entry::KERNELS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tilewise::{DType, Family, KernelInfo, Major, OutputType, Packing, Schedule, TileOrder};

use crate::arrangement::{Arrangement, DISTINCT, REPEATING};
use crate::case::{Case, Data};
use crate::cases::storable;

/// Number of cases unless the command line gives it.
pub const CASES: usize = 66_000;

/// The same for the reduced set.
pub const QUICK_CASES: usize = 200;

/// The same on emulated GPUs, before cases are left out that take too long there.
pub const EMULATED_CASES: usize = 700;

/// Multiplications of the largest case that compute-sanitizer, a hundred times
/// slower, may see.
const QUICK_WORK: usize = 1 << 24;

/// Sides of the blocks and boxes that kernels have.
const BLOCKS: [usize; 10] = [8, 16, 32, 64, 96, 112, 128, 144, 160, 256];

const PRIMES: [usize; 10] = [11, 13, 37, 61, 67, 97, 131, 193, 251, 283];

/// Layouts that TMA reads where the shape allows.
const LINES: [Arrangement; 6] = {
    use Arrangement::*;
    [Rows, Cols, RowsPadded, ColsPadded, RowsSliced, ColsSliced]
};

/// Case `index` of `seed`.
pub fn case(seed: u64, index: usize) -> Case {
    let mut hasher = DefaultHasher::new();
    (seed, index, "random").hash(&mut hasher);
    let mut random = StdRng::seed_from_u64(hasher.finish());
    let random = &mut random;
    let input = match random.random_range(0..16) {
        0 | 1 => DType::F32,
        2 | 3 => DType::Tf32,
        4 => DType::F16x3,
        5..10 => DType::F16,
        _ => DType::Bf16,
    };
    let output = choose(random, &[OutputType::Input, OutputType::F32]);
    let mut case = Case {
        kernel: None,
        input,
        output: storable(input, output),
        shape: shape(random),
        arrangements: arrangements(random),
        walk: None,
        packing: Packing::Auto,
        classes: None,
        data: choose(random, &[Data::Uniform, Data::Uniform, Data::Integers]),
    };
    if random.random_bool(0.15) {
        make_picky(random, &mut case);
    } else {
        case.kernel = kernel(random, &case);
    }
    if random.random_bool(0.75) {
        case.walk = Some(walk(random, case.kernel));
    }
    if random.random_bool(0.1) {
        case.packing = Packing::Never;
    }
    case
}

/// Gives `case` a kernel that few cases suit, since it stores C by TMA alone, and what it needs;
/// half of the time one operand is as it was drawn, which may have to be packed.
fn make_picky(random: &mut StdRng, case: &mut Case) {
    let picky: Vec<&KernelInfo> = KERNELS.iter().filter(|k| k.c_by_tma_only).collect();
    if picky.is_empty() {
        return;
    }
    let kernel = one_of(random, &picky);
    let along = |major| match major {
        Some(Major::Mn) => [Arrangement::Cols, Arrangement::ColsPadded],
        _ => [Arrangement::Rows, Arrangement::RowsPadded],
    };
    let [drawn_a, drawn_b, _] = case.arrangements;
    // Columns of B are lines along K.
    let turned = kernel.b_major.map(|major| match major {
        Major::K => Major::Mn,
        Major::Mn => Major::K,
    });
    let mut factors = [along(kernel.a_major), along(turned)].map(|lines| choose(random, &lines));
    match random.random_range(0..4) {
        0 => factors[0] = drawn_a,
        1 => factors[1] = drawn_b,
        _ => (),
    }
    let (m, n, k) = case.shape;
    let mut c = choose(random, &[Arrangement::Rows, Arrangement::RowsPadded]);
    if kernel.c_along_m && random.random() {
        // Cᵀ, of Bᵀ and Aᵀ.
        factors = [factors[1].turned(), factors[0].turned()];
    } else if kernel.c_along_m {
        c = c.turned();
    }
    let candidate = Case {
        kernel: Some(kernel),
        input: kernel.input,
        output: OutputType::Input,
        shape: [m, n, k].map(|side| side.next_multiple_of(8)).into(),
        arrangements: [factors[0], factors[1], c],
        ..*case
    };
    if candidate.is_runnable() {
        *case = candidate;
    }
}

/// Whether `case` is small enough for the reduced set.
pub fn is_quick(case: &Case) -> bool {
    let (m, n, k) = case.shape;
    m * n * k <= QUICK_WORK
}

fn shape(random: &mut StdRng) -> (usize, usize, usize) {
    let [m, n, k] = [(); 3].map(|()| side(random));
    match random.random_range(0..20) {
        0 => (long(random), n, k),
        1 => (m, long(random), k),
        2 => (m, n, long(random)),
        3 => {
            let mut large = || random.random_range(320..=1500);
            (large(), large(), large())
        }
        _ => (m, n, k),
    }
}

fn side(random: &mut StdRng) -> usize {
    match random.random_range(0..8) {
        0 => random.random_range(1..=9),
        1 | 2 => {
            let near = choose(random, &BLOCKS) * random.random_range(1..=2);
            near + 1 - random.random_range(0..=2)
        }
        3 => choose(random, &PRIMES),
        4 | 5 => 8 * random.random_range(1..=40),
        6 => 16 * random.random_range(1..=20),
        _ => random.random_range(1..=320),
    }
}

fn long(random: &mut StdRng) -> usize {
    let side: usize = random.random_range(512..=4096);
    if random.random() {
        side.next_multiple_of(8)
    } else {
        side
    }
}

fn arrangements(random: &mut StdRng) -> [Arrangement; 3] {
    let mut any = |in_lines: f64| {
        if random.random_bool(in_lines) {
            return choose(random, &LINES);
        }
        match random.random_range(0..DISTINCT.len() + 3) {
            0 => Arrangement::RowsSliced,
            1 => Arrangement::ColsSliced,
            2 => Arrangement::ScatteredCols,
            other => DISTINCT[other - 3],
        }
    };
    let mut drawn = [any(0.75), any(0.75), any(0.5)];
    // Of two repeated factors, a sum of equal terms may pass what f16 can hold.
    if random.random_bool(0.05) {
        let which = random.random_range(0..2);
        drawn[which] = choose(random, &REPEATING);
    }
    drawn
}

/// A kernel for `case`, or `None` for the library's choice.
fn kernel(random: &mut StdRng, case: &Case) -> Option<&'static KernelInfo> {
    let candidates = KERNELS
        .iter()
        .filter(|kernel| kernel.input == case.input && kernel.family.multiplies());
    let with = |kernel| Case {
        kernel: Some(kernel),
        ..*case
    };
    let (in_place, packing): (Vec<&KernelInfo>, Vec<&KernelInfo>) = candidates
        .filter(|kernel| with(kernel).is_runnable())
        .partition(|kernel| with(*kernel).reads_in_place());
    let mut hopper = in_place.clone();
    hopper.retain(|kernel| kernel.family == Family::Hopper);
    // Those that few cases suit.
    let [picky_hopper, picky_packing] = [&hopper, &packing].map(|kernels| {
        let mut picky = kernels.clone();
        picky.retain(|kernel| kernel.c_by_tma_only);
        picky
    });
    let pool = match random.random_range(0..8) {
        0 => return None,
        1 if !picky_packing.is_empty() => picky_packing,
        1 | 2 if !packing.is_empty() => packing,
        3 if !picky_hopper.is_empty() => picky_hopper,
        3..=5 if !hopper.is_empty() => hopper,
        _ if !in_place.is_empty() => in_place,
        _ if !packing.is_empty() => packing,
        _ => return None,
    };
    Some(one_of(random, &pool))
}

/// One of the kernels of `pool`, which is not empty: half of the time all alike, and half of the time
/// an entry point first, and then one of its shapes of clusters, so that entry points with one
/// kernel are not drawn too seldom.
fn one_of(random: &mut StdRng, pool: &[&'static KernelInfo]) -> &'static KernelInfo {
    if random.random() {
        return choose(random, pool);
    }
    let mut entries: Vec<_> = pool.iter().map(|kernel| kernel.entry).collect();
    entries.dedup();
    let entry = choose(random, &entries);
    let mut shapes = pool.to_vec();
    shapes.retain(|kernel| kernel.entry == entry);
    choose(random, &shapes)
}

fn walk(random: &mut StdRng, kernel: Option<&KernelInfo>) -> (Schedule, TileOrder) {
    let takes = |schedule| kernel.is_none_or(|kernel| kernel.runs_under(schedule));
    let size = match random.random_range(0..10) {
        0 => 0,
        1 => u32::MAX,
        _ => random.random_range(1..=16),
    };
    let order = choose(random, &TileOrder::all(size));
    // Made for it, or not. Left to the library, there may be no such kernel.
    if kernel.is_some() && takes(Schedule::StreamK) {
        let schedules = [Schedule::StreamK, Schedule::SplitK];
        return (choose(random, &schedules), order);
    }
    if kernel.is_some_and(|kernel| kernel.leaves_sums) {
        return (Schedule::SplitK, order);
    }
    match random.random_range(0..5) {
        0 if takes(Schedule::Grid2d) => (Schedule::Grid2d, TileOrder::RowMajor),
        1 | 2 => (Schedule::Grid1d, order),
        _ => (Schedule::Persistent, order),
    }
}

fn choose<T: Copy>(random: &mut StdRng, from: &[T]) -> T {
    *from.choose(random).expect("not empty")
}
