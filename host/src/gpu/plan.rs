//! A product on a GPU, ready to launch.

use std::sync::Arc;
use std::time::Duration;

use super::gates::Gates;
use super::opened::Gpu;
use super::product::ProductLaunch;
pub(crate) use super::product::Run;
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
}

impl GpuPlan {
    /// Loads the kernels of `choice`, made for `problem`, and allocates
    /// workspaces.
    pub(crate) fn new(gpu: &Arc<Gpu>, choice: Choice, problem: &Problem) -> Result<Self, Error> {
        let half = problem.half().filter(|_| choice.two_launches);
        let gates = match half {
            Some(half) => Some(Gates::new(gpu, choice, problem, &half)?),
            None => None,
        };
        Ok(GpuPlan {
            gpu: gpu.clone(),
            gates,
            launch: ProductLaunch::new(gpu, choice, half.as_ref().unwrap_or(problem))?,
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

    /// Enqueues the product of the operands of `run`.
    ///
    /// # Safety
    /// The operands are live on the plan's GPU, in the planned layouts, and stay allocated
    /// until the stream has finished.
    pub(crate) unsafe fn run(&mut self, run: &Run) -> Result<(), Error> {
        self.gpu.make_current()?;
        // SAFETY: the caller ensures it.
        unsafe {
            match &mut self.gates {
                None => self.launch.run(run),
                Some(gates) => {
                    let rest = gates.run(run)?;
                    self.launch.run(&rest)
                }
            }
        }
    }
}
