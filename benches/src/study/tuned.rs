//! The order that the library's tuner finds for each kernel of the study.

use std::time::Duration;

use gpu_kernels::{DType, KernelInfo, Schedule, TileOrder};
use tilewise::{Device, Element, Output, Tuner, bf16, f16};

use crate::candidates::planned::open;
use crate::error::Error;
use crate::measure::problem_data::ProblemData;
use crate::measure::watch::{self, Watch};
use crate::problem::shape::GemmShape;
use crate::study::study_arguments::StudyArgs;
use crate::study::sweep::Sweep;

/// Time to measure one kernel.
const BUDGET: Duration = Duration::from_secs(1);

/// A kernel under a schedule, and the order that is fastest for them.
pub type Found = (&'static KernelInfo, Schedule, TileOrder);

/// The orders that a tuner without memories finds for `shape`, for each kernel of the sweep
/// under each schedule. Kernels that cannot run it are left out.
///
/// # Errors
/// No memory on the device, or it failed.
pub fn orders(
    device: &Device,
    sweep: &Sweep,
    shape: GemmShape,
    args: &StudyArgs,
    watch: &Watch,
) -> Result<Vec<Found>, Error> {
    match sweep.dtype() {
        DType::F32 | DType::Tf32 | DType::F16x3 => typed::<f32>(device, sweep, shape, args, watch),
        DType::F16 => typed::<f16>(device, sweep, shape, args, watch),
        DType::Bf16 => typed::<bf16>(device, sweep, shape, args, watch),
    }
}

/// As [`orders`], for A, B and C of `T`.
fn typed<T: Element + Output<T>>(
    device: &Device,
    sweep: &Sweep,
    shape: GemmShape,
    args: &StudyArgs,
    watch: &Watch,
) -> Result<Vec<Found>, Error> {
    let problem = sweep.problem(shape);
    let copied = watch::copying(problem.bytes());
    watch.begin(copied, format!("matrices, {problem}"));
    let mut workload = ProblemData::<T, T>::new(device, problem, args.seed)?;
    let mut tuner = args.wait.limited(Tuner::in_memory().budget(BUDGET));
    let mut found = Vec::new();
    for &kernel in &sweep.kernels {
        for &schedule in &sweep.schedules {
            let label = format!("tuning, {problem}, {}", kernel.name);
            watch.begin_within(BUDGET + watch::TUNING, label);
            let gemm = open(device, &workload)
                .kernel(kernel.name)
                .schedule(schedule);
            let (a, b, c) = workload.operands();
            match gemm.tune(a, b, c, &mut tuner) {
                Ok(plan) => {
                    let order = plan.info().gpu().map(|gpu| gpu.order);
                    found.extend(order.map(|order| (kernel, schedule, order)));
                }
                Err(tilewise::Error::KernelCannotRun { .. }) => {}
                Err(error) => {
                    watch.end_if_timed_out(&error);
                    return Err(error.into());
                }
            }
        }
    }
    watch.begin(copied, format!("freeing, {problem}"));
    Ok(found)
}
