//! [`Plan`]: a product ready to run.
//!
//! Running a plan checks that the operands have the planned layouts and enqueues one
//! launch.

use std::marker::PhantomData;

use crate::device::Device;
use crate::element::{Element, Output};
use crate::error::Error;
use crate::operand::Operand;
use crate::plan_info::PlanInfo;
use crate::untyped_plan::{UntypedPlan, Work};
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

/// C = A·B for operands of one device and of given layouts.
///
/// A plan holds no operand. It remembers the layouts and the alignment of the operands
/// it was made for, and runs on any operands that have them.
#[derive(Debug)]
pub struct Plan<T, O> {
    device: Device,
    plan: UntypedPlan,
    types: PhantomData<fn(T) -> O>,
}

impl<T: Element, O: Output<T>> Plan<T, O> {
    /// Wraps `plan`, which was made for `device`, `T` and `O`.
    pub(crate) fn new(device: &Device, plan: UntypedPlan) -> Self {
        Plan {
            device: device.clone(),
            plan,
            types: PhantomData,
        }
    }

    /// The untyped plan that [`Plan::new`] was given.
    pub(crate) fn into_untyped(self) -> UntypedPlan {
        self.plan
    }

    /// Computes C = A·B and overwrites C. With K = 0, C becomes zeros; with M = 0 or
    /// N = 0 there is nothing to do.
    ///
    /// On a GPU, this call enqueues the work on [`Device::stream`] and returns;
    /// [`Device::synchronize`], or reading C, waits for the work. The call allocates
    /// nothing and may be captured into a CUDA graph. The graph then holds addresses of
    /// the operands and of the plan: keep them as long as the graph. On the CPU, the work
    /// is done when the call returns.
    ///
    /// # Errors
    /// [`Error::PlanMismatch`] and [`Error::DeviceMismatch`] for operands other than
    /// planned; [`Error::Misaligned`] for addresses that TMA cannot read;
    /// [`Error::Capturing`] for new addresses during a graph capture, because the kernel
    /// needs new tensor maps for them; [`Error::Driver`] when the device has failed.
    pub fn run(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<(), Error> {
        self.run_views(a.as_view(), b.as_view(), c.as_view_mut())
    }

    /// [`Plan::run`], compiled once for all kinds of operands.
    fn run_views(
        &mut self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<(), Error> {
        let found = [a.layout(), b.layout(), c.layout()];
        self.plan.operands.check_layouts(found)?;
        check_devices(&self.device, [a.device(), b.device(), c.device()])?;
        match &mut self.plan.work {
            Work::Cpu(plan) => {
                let (a, b, c) = (a.0.host_matrix(), b.0.host_matrix(), c.0.host_matrix());
                // SAFETY: the layouts are those planned; A and B are borrowed, and C
                // exclusively.
                unsafe { plan.run(a, b, c) };
                Ok(())
            }
            // SAFETY: the views are live, on the plan's device and of the
            // planned layouts; their memory is freed behind the stream.
            Work::Gpu(plan) => unsafe { plan.run([a.address(), b.address(), c.address()]) },
        }
    }

    /// The description of the plan: its kernel, tile order, schedule and so on.
    pub fn info(&self) -> &PlanInfo {
        &self.plan.info
    }
}

/// Returns an error unless A, B and C are on `expected`.
pub(crate) fn check_devices(expected: &Device, found: [&Device; 3]) -> Result<(), Error> {
    for (operand, found) in Operand::ALL.into_iter().zip(found) {
        if found != expected {
            return Err(Error::DeviceMismatch {
                operand,
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_may_cross_threads() {
        fn crosses<T: Send + Sync>() {}
        crosses::<Device>();
        crosses::<crate::Matrix<f32>>();
        crosses::<MatrixView<f32>>();
        crosses::<MatrixViewMut<f32>>();
        crosses::<Plan<f32, f32>>();
    }
}
