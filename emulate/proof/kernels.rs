//! Whole kernels: random products, each by the same kernel on the GPU and in the emulator.

use std::collections::BTreeMap;

use gpu_kernels::entry::KERNELS;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tilewise::emulator::EmulatedGpu;
use tilewise::select::{self, Target, cost};
use tilewise::{
    DType, Device, Element, Family, Gemm, KernelInfo, Output, OutputType, Packing, Schedule,
    TileOrder, bf16, f16, oracle,
};
use tilewise_benches::modelled::selection::H200;
use tilewise_emulate::{Case, Placement, Values, operands, run};

use crate::tally::{Difference, Tally};
use crate::worlds::{Worlds, within_limit};

/// Problems drawn, for each that both worlds can run, before we give up.
const DRAWS: usize = 100;

/// Sides at which blocks and boxes end.
const BLOCKS: [u32; 6] = [8, 16, 32, 64, 128, 256];

/// Compares random products. A row for each family, element types and kind of
/// operands.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let (device, problems) = (&worlds.device, worlds.problems);
    let mut rows: BTreeMap<String, (usize, Tally)> = BTreeMap::new();
    for index in 0..problems {
        let drawn = (0..DRAWS).find_map(|_| {
            let mut case = random_case(random);
            if case.kernel().stream_k_bytes > 0 {
                cut_as_on(device, &mut case);
            }
            let name = name(index, problems, &case);
            match compare_case(worlds, &name, &case) {
                Ok(tally) => Some((case, Ok(tally))),
                Err(Refused::Failed(reason)) => Some((case, Err(reason))),
                Err(Refused::Problem) => None,
            }
        });
        let (case, compared) = drawn.expect("some problem suits some kernel");
        let (count, tally) = rows
            .entry(row_name(&case))
            .or_insert_with_key(|name| (0, Tally::new(name, "")));
        *count += 1;
        match compared {
            Ok(of_case) => tally.add(of_case),
            Err(reason) => tally.fail(format!("{case:?}: {reason}")),
        }
    }
    let rows = rows.into_values().map(|(problems, tally)| Tally {
        case: format!("{problems} problems"),
        ..tally
    });
    rows.collect()
}

/// The name of a case before it runs.
fn name(index: usize, problems: usize, case: &Case) -> String {
    let Case {
        choice, m, n, k, ..
    } = case;
    let (order, schedule) = (choice.order, choice.schedule);
    format!(
        "product {} of {problems}: {} {m}x{n}x{k}, {order}, {schedule:?}",
        index + 1,
        choice.kernel.name
    )
}

/// The row that a case counts towards.
fn row_name(case: &Case) -> String {
    let output = match case.output {
        OutputType::Input => "",
        OutputType::F32 => " to f32",
        OutputType::F16 => " to f16",
        OutputType::Bf16 => " to bf16",
    };
    let values = match case.values {
        Values::Uniform => "uniform in -1..1",
        Values::Integers => "integers",
    };
    let kernel = case.kernel();
    let (family, input) = (kernel.family.name(), kernel.input.name());
    format!("{family}, {input}{output}, {values}")
}

/// Why a case gave no result to compare.
enum Refused {
    /// The kernel cannot run it.
    Problem,
    /// It should have run.
    Failed(String),
}

fn compare_case(worlds: &Worlds, name: &str, case: &Case) -> Result<Tally, Refused> {
    let input = case.kernel().input;
    match (input, case.output.dtype(input)) {
        (DType::F16, DType::F16) => compare_types::<f16, f16>(worlds, name, case),
        (DType::F16, DType::Bf16) => compare_types::<f16, bf16>(worlds, name, case),
        (DType::F16, _) => compare_types::<f16, f32>(worlds, name, case),
        (DType::Bf16, DType::F16) => compare_types::<bf16, f16>(worlds, name, case),
        (DType::Bf16, DType::Bf16) => compare_types::<bf16, bf16>(worlds, name, case),
        (DType::Bf16, _) => compare_types::<bf16, f32>(worlds, name, case),
        (_, DType::F16) => compare_types::<f32, f16>(worlds, name, case),
        (_, DType::Bf16) => compare_types::<f32, bf16>(worlds, name, case),
        (_, _) => compare_types::<f32, f32>(worlds, name, case),
    }
}

fn compare_types<T: Element, O: Output<T>>(
    worlds: &Worlds,
    name: &str,
    case: &Case,
) -> Result<Tally, Refused> {
    // The emulator's own tests check the rules; this program compares results.
    let gpu = EmulatedGpu {
        checks: false,
        ..case.gpu()
    };
    eprintln!("{name}");
    let on_cpu = case.clone();
    let emulated = within_limit(&format!("emulator, {name}"), move || run(&on_cpu, &gpu))
        .map_err(Refused::Failed)?
        .map_err(|error| match error {
            tilewise_emulate::Error::Library(tilewise::Error::KernelCannotRun { .. }) => {
                Refused::Problem
            }
            error => Refused::Failed(error.to_string()),
        })?;
    let emulated: Vec<O> = bytemuck::pod_collect_to_vec(&emulated.c);
    let gpu = if worlds.device.is_gpu() {
        let on_gpu_case = case.clone();
        worlds
            .on_gpu(name, move |device| on_gpu::<T, O>(device, &on_gpu_case))
            .map_err(Refused::Failed)?
            .map_err(|error| match error {
                tilewise::Error::KernelCannotRun { .. } => Refused::Problem,
                error => Refused::Failed(error.to_string()),
            })?
    } else {
        emulated.clone()
    };
    let failed = |error: tilewise::Error| Refused::Failed(error.to_string());
    let product = f64_product::<T>(case).map_err(failed)?;
    let mut tally = Tally::new("", "");
    tally.compare(&bits(&gpu), &bits(&emulated), |at| {
        let (gpu, emulated) = (gpu[at].to_f64(), emulated[at].to_f64());
        let allowed = match (case.values, O::DTYPE) {
            (Values::Integers, _) => false,
            (Values::Uniform, DType::F16 | DType::Bf16) => neighbours::<O>(gpu, emulated),
            // Each is within the bound of the product in f64.
            (Values::Uniform, DType::F32 | DType::Tf32 | DType::F16x3) => {
                (gpu - emulated).abs() <= 2.0 * product.bound(at, case.kernel().input, O::DTYPE)
            }
        };
        if allowed {
            Difference::Allowed
        } else {
            Difference::Wrong
        }
    });
    Ok(tally)
}

/// The stored bits of elements.
fn bits<O: Element>(elements: &[O]) -> Vec<u32> {
    let bytes: &[u8] = bytemuck::cast_slice(elements);
    let size = size_of::<O>();
    let element = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |bits, &byte| bits << 8 | u32::from(byte))
    };
    bytes.chunks_exact(size).map(element).collect()
}

/// Whether two finite values of a 16-bit type are at most one unit in the last place apart.
fn neighbours<O: Element>(x: f64, y: f64) -> bool {
    let (digits, least_exponent) = match O::DTYPE {
        DType::F16 => (10, -14),
        _ => (7, -126),
    };
    let exponent = x.abs().max(y.abs()).log2().floor() as i32;
    (x - y).abs() <= 2_f64.powi(exponent.max(least_exponent) - digits)
}

/// C of `case` by the GPU.
fn on_gpu<T: Element, O: Output<T>>(
    device: &Device,
    case: &Case,
) -> Result<Vec<O>, tilewise::Error> {
    let [a_values, b_values] = operands::<T>(case);
    let matrix = |place: Placement, (rows, cols): (u32, u32), values: &[T]| {
        let (row_stride, col_stride) = (place.row_stride as usize, place.col_stride as usize);
        let (rows, cols) = (rows as usize, cols as usize);
        let mut matrix = device.zeros_strided(rows, cols, row_stride, col_stride)?;
        matrix.copy_from_slice(values)?;
        Ok::<_, tilewise::Error>(matrix)
    };
    let a = matrix(case.a, (case.m, case.k), &a_values)?;
    let b = matrix(case.b, (case.k, case.n), &b_values)?;
    let mut c = device.zeros_strided::<O>(
        case.m as usize,
        case.n as usize,
        case.c.row_stride as usize,
        case.c.col_stride as usize,
    )?;
    let kernel = case.kernel();
    let mut gemm = Gemm::new(device)
        .kernel(kernel.name)
        .precision(kernel.input.into())
        .schedule(case.choice.schedule);
    if case.choice.schedule != Schedule::Grid2d {
        gemm = gemm.order(case.choice.order);
    }
    gemm = gemm.packing(match kernel.input.parts() {
        1 => Packing::Never,
        _ => Packing::Auto,
    });
    let mut plan = gemm.plan(a.view(), b.view(), c.view_mut())?;
    plan.run(a.view(), b.view(), c.view_mut())?;
    c.to_vec()
}

/// C of `case` in f64.
fn f64_product<T: Element>(case: &Case) -> Result<oracle::Product, tilewise::Error> {
    let [a, b] = operands::<T>(case);
    let device = Device::cpu();
    let (m, n, k) = (case.m as usize, case.n as usize, case.k as usize);
    let (a, b) = (device.from_slice(&a, m, k)?, device.from_slice(&b, k, n)?);
    oracle::product(a.view(), b.view())
}

/// A problem, and a kernel that may suit it.
fn random_case(random: &mut StdRng) -> Case {
    let families = [
        Family::Hopper,
        Family::Hopper,
        Family::TensorCore,
        Family::TensorCore,
        Family::Tiled,
        Family::Naive,
    ];
    let family = choose(random, &families);
    let kernels: Vec<KernelInfo> = KERNELS
        .iter()
        .filter(|kernel| kernel.family == family)
        .copied()
        .collect();
    let kernel = choose(random, &kernels);
    let [m, n, k] = [(); 3].map(|()| side(random));
    let mut case = Case::new(&kernel, m, n, k);
    let bytes = kernel.input.bytes();
    for (operand, major, [rows, cols]) in [
        (&mut case.a, kernel.a_major, [m, k]),
        (&mut case.b, kernel.b_major, [k, n]),
    ] {
        if major.is_none() && random.random() {
            *operand = if operand.col_stride == 1 {
                Placement::columns(rows, bytes)
            } else {
                Placement::rows(cols, bytes)
            };
        }
        pad(operand, &kernel, bytes, random);
    }
    if !kernel.c_by_tma_only && random.random() {
        case.output = OutputType::F32;
    }
    pad(&mut case.c, &kernel, 4, random);
    case.values = choose(
        random,
        &[Values::Uniform, Values::Uniform, Values::Integers],
    );
    case.seed = random.random();
    let size = random.random_range(1..=9);
    case.choice.order = choose(random, &TileOrder::all(size));
    let schedules = [
        Schedule::Grid1d,
        Schedule::Persistent,
        Schedule::StreamK,
        Schedule::Grid2d,
    ];
    let possible: Vec<Schedule> = schedules
        .into_iter()
        .filter(|&schedule| kernel.runs_under(schedule))
        .collect();
    // Others have split-K alone, which the case has by itself.
    if !possible.is_empty() {
        case.choice.schedule = choose(random, &possible);
    }
    case.resident = 4 * kernel.cluster.ctas();
    case
}

/// Cuts the tiles of the last wave for as many CTAs as the library would on `device`, or on
/// an H200 if there is no GPU: the cuts of a tile decide the order in which its sums are
/// added.
fn cut_as_on(device: &Device, case: &mut Case) {
    let sms = device.gpu_info().map_or(H200.target.sms, |gpu| gpu.sms);
    let target = Target {
        compute_capability: (9, 0),
        sms,
        shared_bytes_per_cta: case.kernel().shared_bytes,
        l2_bytes: 0,
    };
    let grid = select::tile_grid(case.kernel(), case.m, case.n);
    case.resident = sms * case.kernel().ctas_per_sm;
    case.choice.stream_k_ctas = cost::shared_ctas(
        case.kernel(),
        grid,
        1,
        case.k,
        &target,
        case.choice.schedule,
    );
}

/// Moves the lines of a matrix apart, by a multiple of 16 bytes where TMA reads it.
fn pad(place: &mut Placement, kernel: &KernelInfo, bytes: u32, random: &mut StdRng) {
    let step = match kernel.family {
        Family::Hopper => u64::from(16 / bytes).max(8),
        _ => 1,
    };
    let more = step * random.random_range(0..4);
    if place.col_stride == 1 {
        place.row_stride += more;
    } else {
        place.col_stride += more;
    }
}

/// A side of a problem: small, around the end of a block, or any.
fn side(random: &mut StdRng) -> u32 {
    match random.random_range(0..5) {
        0 => random.random_range(1..=9),
        1 | 2 => choose(random, &BLOCKS) + 1 - random.random_range(0..=2),
        3 => 8 * random.random_range(1..=40),
        _ => random.random_range(1..=320),
    }
}

fn choose<T: Copy>(random: &mut StdRng, from: &[T]) -> T {
    *from.choose(random).expect("not empty")
}
