//! What the library's tuner finds for each kernel of the study.

use std::time::Duration;

use gpu_kernels::{DType, KernelInfo, OutputType, Schedule, TileOrder};
use tilewise::{Device, Element, Gemm, Output, Precision, Tuner, bf16, f16};

use crate::error::Error;
use crate::workload::{Problem, Workload};

/// Time to measure one kernel.
const BUDGET: Duration = Duration::from_secs(1);

/// The order that a tuner without memories finds for `problem`, for each kernel under each
/// schedule; those that it cannot run left out.
///
/// # Errors
/// No memory on the device, or it failed.
pub fn orders(
    device: &Device,
    problem: Problem,
    kernels: &[&'static KernelInfo],
    schedules: &[Schedule],
    seed: u64,
) -> Result<Vec<(&'static KernelInfo, Schedule, TileOrder)>, Error> {
    let find = match (problem.dtype, problem.output) {
        (DType::F32 | DType::Tf32, _) => typed::<f32, f32>,
        (DType::F16, OutputType::Input) => typed::<f16, f16>,
        (DType::F16, OutputType::F32) => typed::<f16, f32>,
        (DType::Bf16, OutputType::Input) => typed::<bf16, bf16>,
        (DType::Bf16, OutputType::F32) => typed::<bf16, f32>,
    };
    find(device, problem, kernels, schedules, seed)
}

fn typed<T: Element, O: Output<T>>(
    device: &Device,
    problem: Problem,
    kernels: &[&'static KernelInfo],
    schedules: &[Schedule],
    seed: u64,
) -> Result<Vec<(&'static KernelInfo, Schedule, TileOrder)>, Error> {
    let mut workload = Workload::<T, O>::new(device, problem, seed)?;
    let mut tuner = Tuner::in_memory().budget(BUDGET);
    let mut found = Vec::new();
    for &kernel in kernels {
        for &schedule in schedules {
            let mut gemm = Gemm::new(device).kernel(kernel.name).schedule(schedule);
            if problem.dtype == DType::Tf32 {
                gemm = gemm.precision(Precision::Tf32);
            }
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
