//! Every kernel at shapes that fit no tile, over orders, schedules, layouts and
//! output types: the result must agree with f64, and the kernel must break no rule.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use gpu_kernels::entry::{KERNELS, of_same_entry};
use gpu_kernels::{DType, Family, KernelInfo, OutputType, Schedule, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::emulator::EmulatedGpu;
use tilewise_emulate::{Case, Placement, Values, run};

/// Cases of a kernel. A tile of the family hopper has kernels for two to four layouts.
const fn cases_of(kernel: &KernelInfo) -> u64 {
    match kernel.family {
        Family::Hopper => 4,
        _ => 6,
    }
}

/// The cases that `kernel` runs. Those of one entry point, which differ in the shape of their clusters,
/// share its cases, and each runs one at least.
fn numbers(kernel: &KernelInfo) -> impl Iterator<Item = u64> + use<> {
    let (kernels, place) = of_same_entry(kernel);
    let cases = cases_of(kernel);
    (place as u64..cases.max(kernels.len() as u64))
        .step_by(kernels.len())
        .map(move |number| number % cases)
}

/// Every how many of them a hopper kernel of bf16 runs, which has a twin of f16 that runs them all.
const OF_TWINS: u64 = 2;

/// Case `number` of a kernel.
fn edge(kernel: &KernelInfo, number: u64) -> Case {
    let name = kernel.name.bytes().fold(0, |hash: u64, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    let seed = name.wrapping_add(number);
    let mut random = StdRng::seed_from_u64(seed);
    let (height, width) = kernel.cluster_tile();
    let depth = kernel.block.k;
    // Just below, just above, far from a multiple of the tile; one line.
    let mut extent = |tile: u32, most: u32| match random.random_range(0..5) {
        0 => 1,
        1 => tile - 1,
        2 => tile + 1,
        3 => most * tile + tile / 2 + 3,
        _ => random.random_range(1..=most * tile + 1),
    };
    let mut m = extent(height, if height > 128 { 1 } else { 2 });
    let mut n = extent(width, if width > 128 { 1 } else { 2 });
    let mut k = match kernel.family {
        Family::Naive => extent(16, 4),
        _ => extent(depth, 5),
    };
    // The last two reach the paths of whole vectors, and of whole tiles.
    let is_aligned = number + 2 >= cases_of(kernel);
    if is_aligned {
        [m, n, k] = [m, n, k].map(|extent| extent.next_multiple_of(16));
    }
    if number + 1 == cases_of(kernel) {
        [m, n, k] = [height, width, 3 * depth];
    }
    if kernel.c_along_m {
        m = m.next_multiple_of(16 / kernel.input.bytes());
    } else if kernel.c_by_tma_only {
        n = n.next_multiple_of(8);
    }
    let mut case = Case::new(kernel, m, n, k);
    case.seed = seed;
    // The seed chooses, so that all kernels together cover every order at every shape.
    let orders = TileOrder::all(2 + (number % 2) as u32);
    case.choice.order = orders[(seed % orders.len() as u64) as usize];
    case.values = match number % 3 {
        0 => Values::Integers,
        _ => Values::Uniform,
    };
    let one_output = kernel.c_by_tma_only || kernel.family == Family::Pack;
    if !one_output && random.random_bool(0.4) {
        case.output = OutputType::F32;
    }
    let schedules = [Schedule::Grid1d, Schedule::Persistent, Schedule::Grid2d];
    let allowed: Vec<_> = schedules
        .into_iter()
        .filter(|&schedule| kernel.runs_under(schedule))
        .collect();
    match kernel.stream_k_bytes {
        0 => {
            case.choice.schedule = allowed[random.random_range(0..allowed.len())];
            case.resident = kernel.cluster.ctas() * random.random_range(1..=3);
        }
        _ if kernel.leaves_sums => {
            let tiles = case.choice.grid.tiles();
            case.choice.stream_k_ctas = match random.random_bool(0.5) {
                true => random.random_range(1..=k.div_ceil(depth).min(4)) * tiles,
                false => random.random_range(1..=2 * tiles),
            };
        }
        _ => {
            case.resident = random.random_range(2..=4);
            case.choice.stream_k_ctas = random.random_range(1..=case.resident);
        }
    }
    if is_aligned {
        turn(&mut case, &mut random);
    } else {
        lay_out(&mut case, &mut random);
    }
    case
}

/// Operands in the other layout than the kernel's name gives, where the kernel can read it.
fn turn(case: &mut Case, random: &mut StdRng) {
    let bytes = case.kernel().input.bytes();
    if case.kernel().family != Family::Hopper {
        if random.random_bool(0.5) {
            case.a = Placement::columns(case.m, bytes);
        }
        if random.random_bool(0.5) {
            case.b = Placement::rows(case.n, bytes);
        }
    }
    if !case.kernel().c_by_tma_only && random.random_bool(0.3) {
        case.c = Placement::columns(case.m, bytes);
    }
}

/// Strides other than the dense ones.
fn lay_out(case: &mut Case, random: &mut StdRng) {
    let aligned = 16 / u64::from(case.kernel().input.bytes());
    let through_tma = case.kernel().loads_by_tma;
    let mut pad = |placement: &mut Placement, unit: u64| {
        placement.offset = unit * random.random_range(0..3);
        let pitch = placement.row_stride.max(placement.col_stride);
        let wider = pitch + unit * random.random_range(0..3);
        if placement.row_stride >= placement.col_stride {
            placement.row_stride = wider;
        } else {
            placement.col_stride = wider;
        }
    };
    pad(&mut case.a, if through_tma { aligned } else { 1 });
    pad(&mut case.b, if through_tma { aligned } else { 1 });
    let c_aligned = case.kernel().c_by_tma_only;
    pad(&mut case.c, if c_aligned { aligned } else { 1 });
    if !c_aligned && random.random_bool(0.3) {
        case.c = Placement {
            offset: random.random_range(0..3),
            ..Placement::columns(case.m, 2)
        };
    }
    if case.kernel().family != Family::Hopper {
        // Any layout, whatever the kernel's name says, and gaps between elements.
        if random.random_bool(0.25) {
            case.a = Placement::columns(case.m, 2);
        }
        if random.random_bool(0.25) {
            case.b = Placement::rows(case.n, 2);
        }
        if random.random_bool(0.15) {
            case.a = Placement {
                offset: 1,
                row_stride: 2 * u64::from(case.a_columns()) + 1,
                col_stride: 2,
            };
        }
    }
}

#[test]
fn every_kernel_is_right_at_edge_shapes() {
    // The kernels that split operands run with those that multiply them.
    let alone = |kernel: &&KernelInfo| kernel.family.multiplies() || kernel.family == Family::Pack;
    let cases: Vec<Case> = KERNELS
        .iter()
        .filter(alone)
        .flat_map(|kernel| {
            let is_twin = (kernel.family, kernel.input) == (Family::Hopper, DType::Bf16);
            let each = if is_twin { OF_TWINS } else { 1 };
            // The last case, a whole tile, is among them.
            let numbers = numbers(kernel).filter(move |number| (number + 1).is_multiple_of(each));
            numbers.map(|number| edge(kernel, number))
        })
        .collect();
    assert!(cases.len() >= 500, "{} cases", cases.len());
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let mut failures = Vec::new();
            while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
                let gpu = EmulatedGpu {
                    workers: Some(1),
                    ..case.gpu()
                };
                if let Err(error) = run(case, &gpu) {
                    failures.push(format!("{case:?}: {error}"));
                }
            }
            failures
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<String>>| {
            worker.join().expect("a case panicked")
        };
        workers.into_iter().flat_map(join).collect()
    });
    println!("{} cases in {:.1?}", cases.len(), begin.elapsed());
    let shown = failures.iter().take(5).cloned().collect::<Vec<_>>();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        cases.len(),
        shown.join("\n")
    );
}

#[test]
fn a_seed_does_the_same_on_any_number_of_host_threads() {
    for (name, seed) in [
        ("tensor_core_f16_ak_bk_64x64x64", 3),
        ("hopper_f16_ak_bk_128x192x64_cluster2x1", 0),
        ("hopper_f16_ak_bk_128x192x64_cluster2x1", 9),
    ] {
        let kernel = tilewise_emulate::case::kernel(name).expect("a kernel");
        let case = Case::new(kernel, 300, 600, 200);
        let counts = [1, 4].map(|workers| {
            let gpu = EmulatedGpu {
                seed,
                workers: Some(workers),
                trace: true,
                ..case.gpu()
            };
            run(&case, &gpu).expect("a product").counts
        });
        assert!(!counts[0].requests.is_empty());
        assert_eq!(counts[0], counts[1], "{name}, seed {seed}");
    }
}

#[test]
fn hopper_kernels_are_right_in_any_order_of_events() {
    for name in [
        "hopper_f16_ak_bk_128x128x64",
        "hopper_bf16_am_bn_128x192x64_cluster2x1",
        "hopper_f16_ak_bn_256x192x64_cluster1x2",
        "hopper_f16_am_bn_64x64x64_cluster4x2",
        "hopper_f16_am_bk_64x64x64_split4",
        "hopper_bf16_ak_bn_192x128x64",
        "hopper_f16_ak_bk_128x128x64_streamk",
        "hopper_f16_ak_bn_128x64x64_splitk_cluster1x4",
        "hopper_tf32_am_bk_cm_128x128x32",
        "hopper_f16_ak_bk_cm_192x240x64_cluster2x1",
    ] {
        let kernel = tilewise_emulate::case::kernel(name).expect("a kernel");
        let (height, width) = kernel.cluster_tile();
        // The last CTA of a cluster may lie past both edges, and the stages are filled twice.
        let depth = (kernel.stages + 9) * kernel.block.k;
        let mut case = Case::new(kernel, height + 40, width + 24, depth);
        if kernel.runs_under(Schedule::Persistent) {
            case.choice.schedule = Schedule::Persistent;
        }
        let mut first = None;
        for seed in 0..8 {
            let gpu = EmulatedGpu { seed, ..case.gpu() };
            let outcome = match run(&case, &gpu) {
                Ok(outcome) => outcome,
                Err(error) => panic!("{name}: {error}"),
            };
            let c = first.get_or_insert_with(|| outcome.c.clone());
            assert!(*c == outcome.c, "{name}, seed {seed}: another result");
        }
    }
}
