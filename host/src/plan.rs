//! [`Plan`]: a product ready to run.
//!
//! Running a plan checks that the operands have the planned layouts and enqueues the work.

use std::marker::PhantomData;

use crate::device::Device;
use crate::element::{Element, Output};
use crate::error::Error;
use crate::gpu::plan::Run;
use crate::gpu::stream::CudaStream;
use crate::inputs::Inputs;
use crate::operand::Operand;
use crate::plan_info::PlanInfo;
use crate::untyped_plan::{UntypedPlan, Work};
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

/// C = A·B, or its epilogue, for operands of one device and of given layouts.
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

    /// Computes C = A·B, or the epilogue of the plan, and overwrites C. With K = 0, the
    /// product is zeros; with M = 0, N = 0 or no product in the batch there is nothing to do.
    ///
    /// On a GPU, this call enqueues the work on [`Device::stream`] and returns;
    /// [`Device::synchronize`], or reading C, waits for the work. The call allocates
    /// nothing and may be captured into a CUDA graph. The graph then holds addresses of
    /// the operands and of the plan's workspace: keep them as long as the graph, and see
    /// [`Plan::run_on`] for the order of runs and launches. On the CPU, the work is done when
    /// the call returns.
    ///
    /// # Errors
    /// [`Error::PlanMismatch`] and [`Error::DeviceMismatch`] for operands other than
    /// planned; [`Error::Misaligned`] for addresses that TMA cannot read;
    /// [`Error::OrderWhileCapturing`] from a plan that has run on another stream;
    /// [`Error::Epilogue`] if the epilogue of the plan has inputs, which [`Plan::run_with`]
    /// takes; [`Error::Driver`] when the device has failed.
    pub fn run(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<(), Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        // SAFETY: the stream is the library's own, and the views' memory is freed behind it.
        unsafe { self.run_views(None, a, b, c, &Inputs::new()) }
    }

    /// [`Plan::run`] for a plan whose epilogue has inputs. They may be others at each run.
    ///
    /// # Errors
    /// Those of [`Plan::run`], and [`Error::Epilogue`] for inputs that the epilogue does not
    /// have or that have another shape, and for a source that overlaps C and is not C.
    pub fn run_with(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        // SAFETY: the stream is the library's own, and the views' memory is freed behind it.
        unsafe { self.run_views(None, a, b, c, inputs) }
    }

    /// [`Plan::run_with`] on a stream of yours: the call enqueues all of its work on `stream`, and
    /// none on [`Device::stream`]. On the CPU and on emulated GPUs, the stream is ignored,
    /// and the work is done when the call returns.
    ///
    /// The plan may run on one stream now and on another next. Where it has a workspace
    /// ([`PlanInfo::workspace_bytes`]), the later run waits on the GPU for the earlier one,
    /// so that they do not use the workspace at once. Dropping the plan waits for its last
    /// run. The operands are not part of that: work of other streams that writes to them, or
    /// reads C, must be ordered by you.
    ///
    /// While `stream` captures a CUDA graph, the run is captured. The graph then uses the
    /// plan's workspace, and the library does not see when it is launched: until the graph
    /// is destroyed, keep the plan, and order the graph's launches and the plan's other runs
    /// one after the other. [`Plan::run`] is captured in the same way while
    /// [`Device::stream`] captures.
    ///
    /// # Errors
    /// Those of [`Plan::run_with`].
    ///
    /// # Safety
    /// - `stream` belongs to the primary context of the plan's device, and exists until the
    ///   call has returned.
    /// - The operands live until `stream` has finished the work. Dropping a
    ///   [`Matrix`](crate::Matrix) waits only for [`Device::stream`].
    /// - What was enqueued on other streams and writes to an operand, or reads C, has
    ///   finished, or `stream` waits for it. A new matrix of this library is filled on
    ///   [`Device::stream`].
    /// - Until `stream` has finished the work, nothing else writes to the operands or reads
    ///   C; that includes [`MatrixView::to_vec`], which waits only for [`Device::stream`].
    pub unsafe fn run_on(
        &mut self,
        stream: CudaStream,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        // SAFETY: the caller ensures it.
        unsafe { self.run_views(Some(stream), a, b, c, inputs) }
    }

    /// [`Plan::run_on`], or [`Plan::run_with`] without a stream, compiled once for all kinds of
    /// operands.
    ///
    /// # Safety
    /// What [`Plan::run_on`] asks for, if there is a stream.
    pub(crate) unsafe fn run_views(
        &mut self,
        stream: Option<CudaStream>,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let UntypedPlan {
            operands,
            epilogue,
            work,
            ..
        } = &mut self.plan;
        operands.check_layouts([a.layout(), b.layout(), c.layout()])?;
        check_devices(&self.device, [a.device(), b.device(), c.device()])?;
        let [m, n, _] = operands.shape();
        inputs.check(&epilogue.form(), &self.device, (m, n), &c)?;
        match work {
            Work::Cpu(plan) => {
                let (a, b, c) = (a.0.host_matrix(), b.0.host_matrix(), c.0.host_matrix());
                let epilogue = inputs.on_host(epilogue, c);
                // SAFETY: the layouts are those planned; A, B and the inputs are borrowed,
                // and C exclusively.
                unsafe { plan.run(a, b, c, &epilogue) };
                Ok(())
            }
            Work::Gpu(plan) => {
                let run = Run {
                    a: a.address(),
                    b: b.address(),
                    c: c.address(),
                    epilogue: inputs.addresses(epilogue, &c),
                };
                // SAFETY: the views are live, on the plan's device and of the planned layouts;
                // the caller ensures the rest.
                unsafe { plan.run(stream, &run) }
            }
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
