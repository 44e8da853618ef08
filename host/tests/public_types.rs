//! A program that depends on `tilewise` alone can name every type of its interface.
//!
//! Each function below takes or returns the types of a public signature by their names in
//! `tilewise`. If a type is not exported, this program does not compile.

use std::time::Duration;

use tilewise::l2::{Bound, Limit, Machine, Replayed, Traffic, WaveLoads, Workload};
use tilewise::select::cost::{Alignment, Cost, Task};
use tilewise::select::{
    Catalog, Choice, EpilogueForm, Packed, Packing, Problem, Rejected, Rejection, Request, Strides,
    Target,
};
use tilewise::tma::{GlobalTensor, Unreadable};
use tilewise::{
    Activation, Arch, AsView, AsViewMut, Bias, Block, BuildInfo, Cluster, CodeGenerator,
    CpuPlanInfo, DType, Device, Element, Epilogue, Error, Family, Gated, Gemm, GpuInfo,
    GpuPlanInfo, Inputs, KernelInfo, Layout, Major, Matrix, MatrixView, MatrixViewMut, Operand,
    Origin, Output, OutputType, ParseOrderError, Plan, PlanInfo, Precision, Schedule, Tile,
    TileGrid, TileOrder, Tuner, bf16, f16,
};

/// The types of forced choices and of plans.
fn planned<T: Element, O: Output<T>>(
    gemm: Gemm,
    forced: (Family, &str, Block, TileOrder, Schedule, Packing, Precision),
    (a, b, c): (impl AsView<T>, impl AsView<T>, impl AsViewMut<O>),
) -> Result<Plan<T, O>, Error> {
    let (family, kernel, block, order, schedule, packing, precision) = forced;
    gemm.family(family)
        .kernel(kernel)
        .block(block)
        .order(order)
        .schedule(schedule)
        .packing(packing)
        .precision(precision)
        .plan(a, b, c)
}

/// Every part of a plan's description.
fn described(info: &PlanInfo) -> (Origin, Duration, Option<&GpuPlanInfo>, Option<&CpuPlanInfo>) {
    let cpu = match info {
        PlanInfo::Cpu(cpu) => Some(cpu),
        PlanInfo::Gpu(_) => None,
    };
    (info.origin(), info.estimate(), info.gpu(), cpu)
}

/// Every type of a kernel's description.
type KernelParts = (
    (Family, Arch, DType, Block),
    (Option<Major>, Option<Major>, Cluster),
);

fn parts(kernel: &KernelInfo) -> KernelParts {
    let KernelInfo {
        family,
        arch,
        input,
        block,
        a_major,
        b_major,
        cluster,
        ..
    } = *kernel;
    ((family, arch, input, block), (a_major, b_major, cluster))
}

/// A problem, a target and a choice from plain numbers.
fn chosen(input: DType, output: OutputType, request: &Request) -> Result<Choice, Error> {
    let strides: Strides = Strides::new(64, 1);
    let problem = Problem {
        m: 64,
        n: 64,
        k: 64,
        batches: 1,
        input,
        output,
        a: strides,
        b: strides,
        c: strides,
        epilogue: EpilogueForm::PLAIN,
    };
    let target = Target {
        compute_capability: (9, 0),
        sms: 132,
        shared_bytes_per_cta: 227 << 10,
        l2_bytes: 50 << 20,
    };
    let catalog: Catalog<'static> = Catalog {
        is_built: |_| true,
        ..Catalog::embedded()
    };
    tilewise::select::choose(catalog, &problem, &target, request)
}

/// The tiles, the cost and the traffic of a choice.
fn estimated(choice: &Choice, target: &Target) -> (TileGrid, Packed, Workload, Cost, Traffic) {
    let kernel: &KernelInfo = &choice.kernel;
    let (input, output) = (DType::F16, OutputType::Input);
    let workload = tilewise::select::workload(kernel, [64; 3], input, output);
    let task = Task {
        grid: choice.grid,
        batches: choice.batches,
        k: 64,
        rows: 4096,
        columns: 4096,
        matrices: [1; 2],
        alignment: Alignment::CACHE_LINES,
        by_element: false,
        line_classes: 1,
        epilogue: EpilogueForm::PLAIN,
    };
    let cost = tilewise::select::cost::estimate(kernel, &task, target);
    let machine: Machine = target.machine(kernel);
    let traffic = tilewise::l2::traffic(&workload, choice.order, machine);
    (choice.grid, choice.packed, workload, cost, traffic)
}

/// Types of signatures that need no call here.
#[expect(dead_code, reason = "the names have to resolve, and no more")]
struct Named<'a> {
    device: (GpuInfo, BuildInfo, CodeGenerator),
    matrices: (Matrix<f16>, MatrixView<'a, bf16>, MatrixViewMut<'a, f32>),
    layout: (Layout, Operand, Tile),
    refused: (Rejected, Rejection, Unreadable, GlobalTensor),
    modelled: (Bound, Limit, Replayed, WaveLoads),
    tuner: Tuner,
    epilogue: (Epilogue, Activation, Bias, Gated, Inputs<'a, bf16>),
    oracle: (tilewise::oracle::Product, tilewise::oracle::Finished),
}

#[test]
fn a_problem_is_described_without_another_crate() {
    let request = Request {
        family: Some(Family::Naive),
        ..Request::default()
    };
    let choice = chosen(DType::F16, OutputType::Input, &request).unwrap();
    let ((family, ..), _) = parts(&choice.kernel);
    assert_eq!(family, Family::Naive);
    let target = Target {
        compute_capability: (9, 0),
        sms: 132,
        shared_bytes_per_cta: 227 << 10,
        l2_bytes: 50 << 20,
    };
    let (grid, packed, workload, cost, traffic) = estimated(&choice, &target);
    assert_eq!(grid, workload.grid());
    assert!(!packed.any() && cost.cycles > 0 && traffic.requests > 0);
    let refused: ParseOrderError = "spiral".parse::<TileOrder>().unwrap_err();
    assert!(refused.to_string().contains("spiral"));
}

#[test]
fn a_plan_is_made_and_described_without_another_crate() {
    let device = Device::cpu();
    let a = device.zeros::<f16>(2, 2).unwrap();
    let mut c = device.zeros::<f32>(2, 2).unwrap();
    let block = Block { m: 16, n: 16, k: 1 };
    let (order, schedule) = (TileOrder::RowMajor, Schedule::Grid1d);
    let forced = (
        Family::Naive,
        "naive_f16",
        block,
        order,
        schedule,
        Packing::Auto,
        Precision::Ieee,
    );
    let error = planned(Gemm::new(&device), forced, (&a, &a, &mut c)).unwrap_err();
    assert!(matches!(error, Error::CpuHasNoKernels { .. }));
    let plan = Gemm::new(&device).plan(&a, &a, &mut c).unwrap();
    let (origin, estimate, gpu, cpu) = described(plan.info());
    assert_eq!(
        (origin, estimate, gpu),
        (Origin::Rule, Duration::ZERO, None)
    );
    assert_eq!(cpu.unwrap().m, 2);
}
