//! The selection of tests that also run on emulated GPUs, and the GPUs that they run on.
//!
//! Every test runs that does not need the driver itself (captures, foreign streams, kernels
//! that never end and comparisons by a kernel of the tests' own need it), with the products
//! that take a moment to emulate; of hopper kernels that differ by the 16-bit type alone, those of
//! one type; of those that differ by the shape of their clusters alone, a third of the products of all
//! but one; and a third of the epilogues, in one shape of clusters and with operands along K alone,
//! neither of which an epilogue sees.
//! The guard bands, the bounds and the checks are the same as on a GPU, and the emulator checks
//! every access as well.

use std::time::Duration;

use gpu_kernels::entry::of_same_entry;
use tilewise::emulator::{self, EmulatedGpu};
use tilewise::{DType, Device, Error, Family, KernelInfo, Major};

use crate::case::Case;
use crate::test::{Test, Work};

/// Number of SMs: few, so that small products have several waves of tiles, but enough for a
/// cluster.
pub const SMS: u32 = 4;

/// L2, bytes: little, so that operands of small products are large for it, and have cache policies.
const L2_BYTES: u64 = 32 << 10;

/// What one launch may take, by the emulator's estimate.
const LAUNCH: Duration = Duration::from_millis(25);

/// Threads of one launch, of products that are drawn or listed: with more, a Hopper kernel takes
/// longer than the estimate says, because each takes 17 µs, k-blocks or not. Kernels split by eight
/// CTAs have 2048 or 4096 a tile.
const THREADS: u32 = 8192;

/// What all launches of a repeat may take.
const REPEATS: Duration = Duration::from_millis(120);

/// A GPU for one case. The test program runs cases on all cores.
pub fn device(seed: u64) -> Result<Device, Error> {
    Device::emulated(EmulatedGpu {
        sms: SMS,
        l2_bytes: L2_BYTES,
        seed,
        workers: Some(1),
        ..EmulatedGpu::default()
    })
}

/// Whether `test` belongs to the set.
pub fn selects(test: &Test) -> bool {
    let is_short = |case: &Case, runs: u32, limit| time(case) * runs <= limit;
    if test.kernel.is_some_and(differs_by_type_alone) {
        return false;
    }
    match &test.work {
        Work::Product(case) => {
            (test.quick || test.kind == "random")
                && (is_drawn(&test.name) || !test.kernel.is_some_and(differs_by_cluster))
                && is_short(case, 1, LAUNCH)
                && threads(case) <= THREADS
        }
        Work::Epilogue(case) => {
            time_of(case.kernel, case.shape, case.batches) <= LAUNCH
                && !case.kernel.is_some_and(differs_by_layout)
                && !case.kernel.is_some_and(differs_by_cluster)
                && (is_drawn(&test.name) || test.kernel.is_none_or(|k| k.family != Family::Hopper))
        }
        Work::Walks(case) => is_short(case, 80, 10 * REPEATS) && is_plain(case),
        Work::Hundred(case) => {
            is_short(case, 3, REPEATS) && !case.kernel.is_some_and(differs_by_cluster)
        }
        Work::Device(_) => {
            !["endless", "foreign"].contains(&test.kind)
                && !NEED_DRIVER.contains(&test.name.as_str())
        }
        // They are made small.
        Work::Invariant(_) => true,
        Work::Capture(..) | Work::Large(..) | Work::Own(_) => false,
    }
}

/// Tests of other kinds that need the driver: its graphs, and the time it takes.
const NEED_DRIVER: [&str; 2] = ["tune/within-budget", "tune/capture"];

/// Whether another hopper kernel has the same code and layouts for another 16-bit type. A GPU runs
/// both, and so does the emulator at edges (`emulate/tests/edges.rs`).
fn differs_by_type_alone(kernel: &KernelInfo) -> bool {
    kernel.family == Family::Hopper && kernel.input == DType::Bf16
}

/// Whether another kernel has the same entry point, and this one is not the one of them that its name
/// draws.
fn differs_by_cluster(kernel: &KernelInfo) -> bool {
    let (kernels, place) = of_same_entry(kernel);
    let drawn = kernel.entry.bytes().map(usize::from).sum::<usize>() % kernels.len();
    place != drawn
}

/// Whether another kernel has the same epilogue, for operands that both lie along K.
fn differs_by_layout(kernel: &KernelInfo) -> bool {
    let majors = [kernel.a_major, kernel.b_major];
    majors.iter().flatten().any(|&major| major != Major::K)
}

/// Whether a test is in the third that its name draws. Some eighty hopper kernels have each epilogue, and
/// up to six shapes of clusters the same code.
fn is_drawn(name: &str) -> bool {
    name.bytes().map(u32::from).sum::<u32>().is_multiple_of(3)
}

/// Kernels of one tile size for each way of sharing work stand for the others, and K in two parts
/// for K in more, where most of the time goes to threads that have no k-block.
fn is_plain(case: &Case) -> bool {
    case.kernel.is_some_and(|kernel| {
        kernel.family != Family::Hopper || kernel.block.m == 64 && kernel.cluster.k <= 2
    })
}

/// Threads of a launch with a CTA for each tile, of a Hopper kernel; else none, for threads of other
/// kernels take a tenth of the time.
fn threads(case: &Case) -> u32 {
    let (m, n, _) = case.shape;
    let of = |kernel: &KernelInfo| {
        let (height, width) = kernel.cluster_tile();
        let tiles = (m as u32).div_ceil(height) * (n as u32).div_ceil(width);
        tiles * kernel.cluster.ctas() * kernel.threads
    };
    let hopper = case.kernel.filter(|kernel| kernel.family == Family::Hopper);
    hopper.map_or(0, of)
}

/// The estimated time of the product.
fn time(case: &Case) -> Duration {
    time_of(case.kernel, case.shape, 1)
}

/// The estimated time of `batches` products.
fn time_of(
    kernel: Option<&KernelInfo>,
    (m, n, k): (usize, usize, usize),
    batches: usize,
) -> Duration {
    let shape = (m as u32, n as u32, k as u32);
    match kernel {
        Some(kernel) => emulator::time(kernel, shape, batches as u32, 1),
        // A kernel with tiles of 64 and more.
        None => Duration::from_nanos(
            [m, n, k]
                .map(|side| side.next_multiple_of(128) as u64)
                .iter()
                .product::<u64>()
                * 4
                * batches as u64,
        ),
    }
}
