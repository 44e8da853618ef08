//! A product on a GPU, ready to launch.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use super::gates::Gates;
use super::opened::Gpu;
use super::product::ProductLaunch;
pub(crate) use super::product::Run;
use super::run_order::{RunOrder, Turn};
use super::stream::CudaStream;
use crate::error::Error;
use crate::plan_info::{GpuPlanInfo, Origin};
use crate::problem::Problem;
use crate::select::choice::Choice;

/// Everything that a product needs except its operands.
#[derive(Debug)]
pub(crate) struct GpuPlan {
    gpu: Arc<Gpu>,
    launches: ManuallyDrop<Launches>,
    /// Whether the launches use memory of the plan.
    has_workspace: bool,
    /// The order of the runs, which matters where there is a workspace.
    order: ManuallyDrop<RunOrder>,
}

/// The launches of one product, with their workspaces.
#[derive(Debug)]
struct Launches {
    /// The launch that computes the gates of a gated product, where `launch` cannot.
    gates: Option<Gates>,
    launch: ProductLaunch,
}

impl GpuPlan {
    /// Loads the kernels of `choice`, made for `problem`, and allocates
    /// workspaces.
    pub(crate) fn new(gpu: &Arc<Gpu>, choice: Choice, problem: &Problem) -> Result<Self, Error> {
        let half = problem.half().filter(|_| choice.two_launches);
        let gates = match half {
            Some(half) if !half.is_empty() => Some(Gates::new(gpu, choice, problem, &half)?),
            _ => None,
        };
        let launch = ProductLaunch::new(gpu, choice, half.as_ref().unwrap_or(problem))?;
        let launches = Launches { gates, launch };
        Ok(GpuPlan {
            gpu: gpu.clone(),
            has_workspace: launches.info(Origin::Rule).workspace_bytes > 0,
            launches: ManuallyDrop::new(launches),
            order: ManuallyDrop::default(),
        })
    }

    /// The estimated time of the product, at the GPU's highest clock.
    pub(crate) fn estimate(&self) -> Duration {
        self.launches.estimate()
    }

    /// The description of the plan, whose choices were made by `origin`.
    pub(crate) fn info(&self, origin: Origin) -> GpuPlanInfo {
        self.launches.info(origin)
    }

    /// Enqueues the product of the operands of `run`, on `stream` or on the library's own.
    ///
    /// # Safety
    /// The operands are live on the plan's GPU, in the planned layouts, and stay allocated
    /// until the stream has finished. `stream` belongs to the GPU's context.
    pub(crate) unsafe fn run(
        &mut self,
        stream: Option<CudaStream>,
        run: &Run,
    ) -> Result<(), Error> {
        if self.launches.launch.is_empty() {
            return Ok(());
        }
        let _current = self.gpu.make_current()?;
        let backend = self.gpu.backend();
        // The caller may have named the library's own stream.
        let stream = stream.filter(|_| backend.stream() != stream);
        if !self.has_workspace {
            let turn = Turn::unordered(stream);
            // SAFETY: the caller ensures it.
            return unsafe { self.launches.run(turn, run) };
        }
        let turn = self.order.before(backend, stream)?;
        // SAFETY: the caller ensures it; the runs of this plan are in order.
        let enqueued = unsafe { self.launches.run(turn, run) };
        self.order.after(turn)?;
        enqueued
    }

    /// Whether a graph has captured a run and uses memory of the plan.
    pub(crate) fn belongs_to_graph(&self) -> bool {
        self.order.is_captured()
    }
}

impl Drop for GpuPlan {
    fn drop(&mut self) {
        let is_free = || -> Result<bool, Error> {
            if !self.has_workspace {
                return Ok(true);
            }
            let _current = self.gpu.make_current()?;
            if self.gpu.backend().capture(None)?.is_some() {
                // The graph may use the workspace, and waiting would break the capture.
                return Ok(false);
            }
            // The buffers wait for the library's own stream by themselves.
            self.order.finish().map(|()| true)
        };
        // This fails when the context is broken or the GPU is overdue. Workspaces and events
        // then stay allocated.
        if is_free().unwrap_or(false) {
            // SAFETY: both are dropped here, and this value is gone.
            unsafe {
                ManuallyDrop::drop(&mut self.launches);
                ManuallyDrop::drop(&mut self.order);
            }
        }
    }
}

impl Launches {
    fn estimate(&self) -> Duration {
        match self.gates {
            None => self.launch.estimate(),
            Some(_) => 2 * self.launch.estimate(),
        }
    }

    fn info(&self, origin: Origin) -> GpuPlanInfo {
        let launch = self.launch.info(origin);
        match &self.gates {
            None => launch,
            Some(gates) => GpuPlanInfo {
                n: 2 * launch.n,
                two_launches: true,
                workspace_bytes: launch.workspace_bytes + gates.workspace_bytes(),
                estimate: self.estimate(),
                ..launch
            },
        }
    }

    /// Enqueues the product of the operands of `run`. The GPU's context is current.
    ///
    /// # Safety
    /// What [`GpuPlan::run`] asks for, and no other run uses the workspaces at the same time.
    unsafe fn run(&mut self, turn: Turn, run: &Run) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        unsafe {
            match &mut self.gates {
                None => self.launch.run(turn, run),
                Some(gates) => {
                    let rest = gates.run(turn, run)?;
                    self.launch.run(turn, &rest)
                }
            }
        }
    }
}
