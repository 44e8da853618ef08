//! A product on a GPU, ready to launch.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::gates::Gates;
use super::opened::Gpu;
use super::product::ProductLaunch;
pub(crate) use super::product::Run;
use super::run_order::RunOrder;
use super::stream::CudaStream;
use crate::error::Error;
use crate::plan_info::{GpuPlanInfo, Origin};
use crate::problem::Problem;
use crate::select::choice::Choice;

/// Everything that a product needs except its operands.
#[derive(Debug)]
pub(crate) struct GpuPlan {
    gpu: Arc<Gpu>,
    /// The launch that computes the gates of a gated product, where `launch` cannot.
    gates: Option<Gates>,
    launch: ProductLaunch,
    /// The order of the runs, which matters where there is a workspace.
    order: RunOrder,
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
        Ok(GpuPlan {
            gpu: gpu.clone(),
            gates,
            launch: ProductLaunch::new(gpu, choice, half.as_ref().unwrap_or(problem))?,
            order: RunOrder::default(),
        })
    }

    /// The estimated time of the product, at the GPU's highest clock.
    pub(crate) fn estimate(&self) -> Duration {
        match self.gates {
            None => self.launch.estimate(),
            Some(_) => 2 * self.launch.estimate(),
        }
    }

    /// The description of the plan, whose choices were made by `origin`.
    pub(crate) fn info(&self, origin: Origin) -> GpuPlanInfo {
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
        if self.launch.is_empty() {
            return Ok(());
        }
        let gpu = self.gpu.clone();
        let _current = gpu.make_current()?;
        let backend = gpu.backend();
        // The library's own stream may be named, or meant.
        let stream = stream.filter(|_| backend.stream() != stream);
        if !self.has_workspace() {
            // SAFETY: the caller ensures it.
            return unsafe { self.enqueue(stream, run) };
        }
        let turn = self.order.before(backend, stream)?;
        let is_captured = turn.is_captured();
        self.launch.clear_flags(stream, is_captured)?;
        if let Some(gates) = &mut self.gates {
            gates.clear_flags(stream, is_captured)?;
        }
        // SAFETY: the caller ensures it; the runs of this plan are in order.
        let enqueued = unsafe { self.enqueue(stream, run) };
        self.order.after(turn)?;
        enqueued
    }

    /// Enqueues the launches of [`GpuPlan::run`]. The context is current.
    ///
    /// # Safety
    /// What [`GpuPlan::run`] asks for, and no other run of this plan uses the workspace at
    /// the same time.
    unsafe fn enqueue(&mut self, stream: Option<CudaStream>, run: &Run) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        unsafe {
            match &mut self.gates {
                None => self.launch.run(stream, run),
                Some(gates) => {
                    let rest = gates.run(stream, run)?;
                    self.launch.run(stream, &rest)
                }
            }
        }
    }

    /// Whether the runs use memory of the plan.
    fn has_workspace(&self) -> bool {
        self.gates.is_some() || self.launch.has_workspace()
    }

    /// Whether a graph has captured a run and uses memory of the plan.
    pub(crate) fn belongs_to_graph(&self) -> bool {
        self.order.is_captured()
    }
}

impl Drop for GpuPlan {
    fn drop(&mut self) {
        if !self.has_workspace() {
            return;
        }
        // The library's own stream is waited for by each buffer.
        let finished = (self.gpu.make_current()).and_then(|_current| self.order.finish());
        if finished.is_err() {
            // The context is broken, or the GPU is overdue: the workspace stays allocated.
            self.launch.leak_workspace();
            mem::forget((self.gates.take(), mem::take(&mut self.order)));
        }
    }
}
