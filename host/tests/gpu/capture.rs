//! Plans in CUDA graphs. A captured `Plan::run` computes again on the current elements of
//! its operands, wherever the plan ran before.

use gpu_kernels::entry::KERNELS;
use tilewise::{
    DType, Element, Family, GpuPlanInfo, KernelInfo, Output, OutputType, Packing, Schedule,
    TileOrder,
};

use crate::arrangement::Arrangement;
use crate::case::{Case, Data, Failure, Outcome, with_types};
use crate::cases::{aligned, persistent, storable};
use crate::graph::Graph;
use crate::operands::Operands;
use crate::shared::Shared;

/// What is captured.
#[derive(Clone, Copy, Debug)]
pub enum Scene {
    /// A run, replayed on other elements at the same addresses.
    Replays,
    /// Runs at addresses that the plans have not seen.
    NewAddresses,
}

/// Replays of a graph.
const REPLAYS: u64 = 3;

/// Name, product and what is done with it.
pub fn cases() -> Vec<(String, Case, Scene)> {
    let hopper = |kernel: &KernelInfo| {
        kernel.family == Family::Hopper && kernel.input == DType::F16 && kernel.block.m == 64
    };
    let plain = first(|kernel| hopper(kernel) && kernel.cluster.ctas() == 1);
    let shared = first(|kernel| kernel.runs_under(Schedule::StreamK));
    let split = first(|kernel| hopper(kernel) && kernel.cluster.k > 1);
    let multicast = first(|kernel| kernel.cluster.sharing() > 1);
    let rounded = first(|kernel| kernel.family == Family::Hopper && kernel.input == DType::Tf32);
    let tiled = first(|kernel| kernel.family == Family::Tiled && kernel.input == DType::F32);
    let odd = [Arrangement::RowsOdd, Arrangement::ColsShifted];
    let planned = [
        ("hopper", plain, aligned(plain), Scene::Replays),
        ("clusters", multicast, aligned(multicast), Scene::Replays),
        ("stream-k", shared, aligned(shared), Scene::Replays),
        ("split", split, aligned(split), Scene::Replays),
        ("packed", plain, odd, Scene::Replays),
        ("packed-tf32", rounded, odd, Scene::Replays),
        ("tiled", tiled, odd, Scene::Replays),
        ("new-addresses", plain, aligned(plain), Scene::NewAddresses),
    ];
    planned
        .into_iter()
        .map(|(name, kernel, operands, scene)| {
            let case = product(kernel, operands);
            (format!("capture/{name}/{case}"), case, scene)
        })
        .collect()
}

fn first(is_wanted: impl Fn(&KernelInfo) -> bool) -> &'static KernelInfo {
    let found = KERNELS.iter().find(|kernel| is_wanted(kernel));
    found.expect("the list of kernels has one of each kind")
}

/// Several tiles with ragged edges; C is written through TMA where TMA is used.
fn product(kernel: &'static KernelInfo, [a, b]: [Arrangement; 2]) -> Case {
    Case {
        kernel: Some(kernel),
        input: kernel.input,
        output: storable(kernel.input, OutputType::Input),
        shape: (331, 520, 203),
        arrangements: [a, b, Arrangement::RowsPadded],
        walk: Some((persistent(kernel), TileOrder::GroupedM { size: 2 })),
        packing: Packing::Auto,
        classes: None,
        data: Data::Integers,
    }
}

/// Does what `scene` says with `case`.
pub fn run(case: &Case, scene: Scene, device: &Shared, seed: u64) -> Result<Outcome, Failure> {
    match scene {
        Scene::Replays => with_types!(case, replays(case, device, seed)),
        Scene::NewAddresses => with_types!(case, new_addresses(case, device, seed)),
    }
}

fn replays<T: Element, O: Output<T>>(
    case: &Case,
    device: &Shared,
    seed: u64,
) -> Result<Outcome, Failure> {
    let operands = Operands::<T, O>::draw(case, seed);
    device.turn(|device| {
        let mut resident = operands.upload(device)?;
        let mut plan = resident.plan(case, device)?;
        // The first run of a plan for stream-K clears its flags.
        resident.run(&mut plan)?;
        let graph = Graph::captured(device, || Ok(resident.run(&mut plan)?))?;
        // The product, and one launch that packs the operands or splits both.
        let prepared =
            |gpu: &GpuPlanInfo| gpu.kernel.input == DType::F16x3 || gpu.packed_a || gpu.packed_b;
        let launches = 1 + usize::from(plan.info().gpu().is_some_and(prepared));
        if graph.nodes()? != launches {
            return Err(Failure::Wrong(format!(
                "captured {} nodes, not {launches}",
                graph.nodes()?
            )));
        }
        for replay in 1..=REPLAYS {
            let operands = Operands::<T, O>::draw(case, seed.wrapping_add(replay));
            resident.write(&operands)?;
            // SAFETY: plan and operands live until the device has been read.
            unsafe { graph.launch() }?;
            operands.check(case, &resident.read_back()?)?;
        }
        Ok(Outcome::Right(0.0))
    })
}

fn new_addresses<T: Element, O: Output<T>>(
    case: &Case,
    device: &Shared,
    seed: u64,
) -> Result<Outcome, Failure> {
    let operands = Operands::<T, O>::draw(case, seed);
    let others = Operands::<T, O>::draw(case, seed.wrapping_add(1));
    device.turn(|device| {
        let mut resident = operands.upload(device)?;
        let mut moved = others.upload(device)?;
        let mut fresh = resident.plan(case, device)?;
        let mut plan = resident.plan(case, device)?;
        resident.run(&mut plan)?;
        let graph = Graph::captured(device, || {
            resident.run(&mut fresh)?;
            Ok(moved.run(&mut plan)?)
        })?;
        if graph.nodes()? != 2 {
            return Err(Failure::Wrong(format!(
                "captured {} nodes, not 2 runs",
                graph.nodes()?
            )));
        }
        for replay in 1..=REPLAYS {
            let draw = |more| Operands::<T, O>::draw(case, seed.wrapping_add(2 * replay + more));
            let (here, there) = (draw(0), draw(1));
            resident.write(&here)?;
            moved.write(&there)?;
            // SAFETY: plans and operands live until the device has been read.
            unsafe { graph.launch() }?;
            here.check(case, &resident.read_back()?)?;
            there.check(case, &moved.read_back()?)?;
        }
        // Outside of the capture, both plans run where the other ran.
        resident.write(&operands)?;
        moved.write(&others)?;
        moved.run(&mut fresh)?;
        resident.run(&mut plan)?;
        others.check(case, &moved.read_back()?)?;
        operands.check(case, &resident.read_back()?)?;
        Ok(Outcome::Right(0.0))
    })
}
