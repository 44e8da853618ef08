//! What the library's tuner finds for each kernel of the study.

use std::time::Duration;

use gpu_kernels::{DType, KernelInfo, Schedule, TileOrder};
use tilewise::{Device, Element, Output, Tuner, bf16, f16};

use super::plan::Plan;
use crate::candidate::open;
use crate::error::Error;
use crate::shape::Shape;
use crate::workload::Workload;

/// Time to measure one kernel.
const BUDGET: Duration = Duration::from_secs(1);

/// A kernel under a schedule, and the order that is fastest for them.
pub type Found = (&'static KernelInfo, Schedule, TileOrder);

/// What a tuner without memories finds for `shape`, for each kernel of the plan under each
/// schedule; those that cannot run it left out.
///
/// # Errors
/// No memory on the device, or it failed.
pub fn orders(device: &Device, plan: &Plan, shape: Shape, seed: u64) -> Result<Vec<Found>, Error> {
    match plan.dtype() {
        DType::F32 | DType::Tf32 => typed::<f32>(device, plan, shape, seed),
        DType::F16 => typed::<f16>(device, plan, shape, seed),
        DType::Bf16 => typed::<bf16>(device, plan, shape, seed),
    }
}

/// As [`orders`], for A, B and C of `T`.
fn typed<T: Element + Output<T>>(
    device: &Device,
    plan: &Plan,
    shape: Shape,
    seed: u64,
) -> Result<Vec<Found>, Error> {
    let mut workload = Workload::<T, T>::new(device, plan.problem(shape), seed)?;
    let mut tuner = Tuner::in_memory().budget(BUDGET);
    let mut found = Vec::new();
    for &kernel in &plan.kernels {
        for &schedule in &plan.schedules {
            let gemm = open(device, &workload)
                .kernel(kernel.name)
                .schedule(schedule);
            let (a, b, c) = workload.operands();
            match gemm.tune(a, b, c, &mut tuner) {
                Ok(plan) => found.push((kernel, schedule, plan.info().order)),
                Err(tilewise::Error::KernelCannotRun { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(found)
}
