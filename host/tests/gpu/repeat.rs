//! Tests that results are repeatable bit by bit: sums are computed in a fixed order, so
//! results depend neither on timing nor on the walk over the tiles.

use tilewise::{Element, KernelInfo, Output, OutputType, Packing, Plan, Schedule, TileOrder};

use crate::arrangement::Arrangement;
use crate::case::{Case, Data, Failure, Outcome, walk_name, with_types};
use crate::cases::{aligned, persistent, storable};
use crate::compare::{self, Comparer};
use crate::operands::{OnDevice, Operands, ReadBack};
use crate::shared::Shared;
use crate::test::is_emulated;

/// Runs of each walk.
const RUNS_A_WALK: usize = 4;

/// Runs of one plan.
const RUNS: usize = 100;

/// The same on an emulated GPU.
const EMULATED_RUNS: usize = 3;

/// SMs of the largest GPU of compute capability 9.0.
pub const SMS: u32 = 132;

/// Runs `case` under every one of `walks`, several times each: all results are
/// the same, bit by bit; of stream-K, those of one walk.
pub fn over_walks(
    case: &Case,
    device: &Shared,
    seed: u64,
    walks: &[(Schedule, TileOrder)],
) -> Result<Outcome, Failure> {
    with_types!(case, run_over_walks(case, device, seed, walks))
}

/// Runs one plan of `case` a hundred times: all results are the same, bit by
/// bit, and right.
pub fn a_hundred_times(case: &Case, device: &Shared, seed: u64) -> Result<Outcome, Failure> {
    with_types!(case, run_a_hundred_times(case, device, seed))
}

/// A product for [`a_hundred_times`] on a GPU of `sms` SMs: ragged at both ends, in a persistent
/// launch of which every CTA has two tiles or more.
pub fn in_many_tiles(kernel: &'static KernelInfo, sms: u32) -> Case {
    let (mut height, mut width) = kernel.cluster_tile();
    if kernel.c_along_m {
        // It computes a row-major C as Cᵀ.
        (height, width) = (width, height);
    }
    let clusters = (sms * resident(kernel) / kernel.cluster.ctas()).max(1);
    // Two tiles for all and a third for some, in a nearly square C. Of stream-K,
    // so many that those left over do not each begin with a run of steps.
    let waves = match persistent(kernel) {
        Schedule::StreamK => 2.75,
        _ => 2.25,
    };
    let tiles = f64::from(clusters) * waves;
    let down = (tiles * f64::from(width) / f64::from(height)).sqrt().ceil();
    let across = (tiles / down).ceil();
    let [a, b] = aligned(kernel);
    Case {
        kernel: Some(kernel),
        input: kernel.input,
        output: storable(kernel.input, OutputType::Input),
        // Lines of C stay multiples of 16 bytes, for TMA.
        shape: (
            down as usize * height as usize - 3,
            across as usize * width as usize - 8,
            6 * kernel.block.k as usize + 5,
        ),
        arrangements: [a, b, Arrangement::RowsPadded],
        walk: Some((persistent(kernel), TileOrder::GroupedM { size: 3 })),
        packing: Packing::Auto,
        classes: None,
        data: Data::Uniform,
    }
}

/// CTAs that an SM of compute capability 9.0 has room for, by threads and
/// shared memory: at least as many as it runs (CUDA C++ programming guide,
/// "Technical specifications per compute capability").
fn resident(kernel: &KernelInfo) -> u32 {
    let by_threads = 2048 / kernel.threads;
    let by_memory = 228 * 1024 / (kernel.shared_bytes + 1024);
    by_threads.min(by_memory).max(1)
}

fn run_over_walks<T: Element, O: Output<T>>(
    case: &Case,
    device: &Shared,
    seed: u64,
    walks: &[(Schedule, TileOrder)],
) -> Result<Outcome, Failure> {
    let operands = Operands::<T, O>::draw(case, seed);
    device.turn(|device| {
        let mut resident = operands.upload(device)?;
        let mut first: Option<Vec<O>> = None;
        let mut before = Schedule::Grid2d;
        for &(schedule, order) in walks {
            let walk = Some((schedule, order));
            // Under stream-K the order decides where along K a shared tile is cut.
            if [schedule, before].contains(&Schedule::StreamK) {
                first = None;
            }
            before = schedule;
            let mut plan = resident.plan(&Case { walk, ..*case }, device)?;
            for repeat in 0..RUNS_A_WALK {
                resident.c.write(&operands.c)?;
                resident.run(&mut plan)?;
                let found = resident.c.read_back()?;
                let first = first.get_or_insert_with(|| found.clone());
                if bytemuck::cast_slice::<O, u8>(first) != bytemuck::cast_slice::<O, u8>(&found) {
                    return Err(Failure::Wrong(format!(
                        "repeat {repeat} under {} differs from the first run",
                        walk_name(schedule, order)
                    )));
                }
            }
        }
        Ok(Outcome::Right(0.0))
    })
}

fn run_a_hundred_times<T: Element, O: Output<T>>(
    case: &Case,
    device: &Shared,
    seed: u64,
) -> Result<Outcome, Failure> {
    let operands = Operands::<T, O>::draw(case, seed);
    let found = device.turn(|device| {
        let mut resident = operands.upload(device)?;
        let mut plan = resident.plan(case, device)?;
        let info = *plan.info().gpu().expect("it is planned for a GPU");
        let cluster = info.kernel.cluster.ctas();
        if info.grid.tiles() * cluster <= info.ctas && !info.kernel.leaves_sums {
            return Err(Failure::Wrong(format!(
                "{} tiles for {} CTAs in clusters of {cluster}: none has two",
                info.grid.tiles(),
                info.ctas
            )));
        }
        if is_emulated(device) {
            return run_a_few_times(&operands, &mut resident, &mut plan);
        }
        let poisoned = operands.c.upload(device)?;
        let mut first = operands.c.upload(device)?;
        resident.run(&mut plan)?;
        compare::copy(resident.c.buffer(), first.buffer_mut())?;
        let comparer = Comparer::new(device)?;
        comparer.compare(first.buffer(), poisoned.buffer())?;
        let told_apart = comparer.differences()?;
        if told_apart == 0 {
            return Err(Failure::Wrong("C is as poisoned as before".into()));
        }
        for _ in 1..RUNS {
            compare::copy(poisoned.buffer(), resident.c.buffer_mut())?;
            resident.run(&mut plan)?;
            comparer.compare(resident.c.buffer(), first.buffer())?;
        }
        let differing = comparer.differences()?.wrapping_sub(told_apart);
        if differing > 0 {
            return Err(Failure::Wrong(format!(
                "{differing} 16-bit words differ between the first of {RUNS} runs and the others"
            )));
        }
        Ok(resident.read_back()?)
    })?;
    operands.check(case, &found).map(Outcome::Right)
}

/// The same where a run takes long, and the host compares.
fn run_a_few_times<T: Element, O: Output<T>>(
    operands: &Operands<T, O>,
    resident: &mut OnDevice<T, O>,
    plan: &mut Plan<T, O>,
) -> Result<ReadBack<T, O>, Failure> {
    resident.run(plan)?;
    let first = resident.c.read_back()?;
    for _ in 1..EMULATED_RUNS {
        resident.c.write(&operands.c)?;
        resident.run(plan)?;
        let again = resident.c.read_back()?;
        if bytemuck::cast_slice::<O, u8>(&first) != bytemuck::cast_slice::<O, u8>(&again) {
            return Err(Failure::Wrong("another run, another result".into()));
        }
    }
    Ok(resident.read_back()?)
}
