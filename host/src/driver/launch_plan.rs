//! A product on a GPU, ready to launch.

use std::sync::Arc;

use gpu_kernels::{Family, GemmParams, Operand};

use super::gpu::Gpu;
use super::hopper_maps::HopperMaps;
use super::launch::{self, Shape};
use super::module::{self, Function};
use crate::error::Error;
use crate::gemm::PlanInfo;
use crate::select::{self, Choice, Problem};

/// Everything a launch needs but the addresses.
#[derive(Debug)]
pub(crate) struct GpuPlan {
    gpu: Arc<Gpu>,
    choice: Choice,
    function: Function,
    shape: Shape,
    /// Of the problem as the kernel sees it; the addresses are those of the
    /// last run.
    params: GemmParams,
    maps: Option<HopperMaps>,
}

impl GpuPlan {
    /// Loads the kernel of `choice`, made for `problem`.
    pub(crate) fn new(gpu: &Arc<Gpu>, choice: Choice, problem: &Problem) -> Result<Self, Error> {
        let problem = if choice.transposed {
            problem.transposed()
        } else {
            *problem
        };
        let kernel = &choice.kernel;
        let function = module::function(gpu, kernel)?;
        let empty = problem.m == 0 || problem.n == 0;
        let maps = match kernel.family {
            Family::Hopper if !empty => Some(HopperMaps::new(gpu, kernel, &problem)?),
            _ => None,
        };
        let resident = gpu.info().sms * function.ctas_per_sm;
        Ok(GpuPlan {
            gpu: gpu.clone(),
            choice,
            function,
            shape: Shape {
                ctas: select::ctas(&choice, resident),
                threads: kernel.threads,
                shared_bytes: kernel.shared_bytes,
            },
            params: GemmParams {
                a: problem.a,
                b: problem.b,
                c: problem.c,
                tensor_maps: 0,
                m: problem.m,
                n: problem.n,
                k: problem.k,
                output: problem.output,
                order: choice.order,
                schedule: choice.schedule,
                store_by_tma: 0,
            },
            maps,
        })
    }

    pub(crate) fn info(&self) -> PlanInfo {
        let (x, y) = self.shape.ctas;
        let (m, n) = if self.choice.transposed {
            (self.params.n, self.params.m)
        } else {
            (self.params.m, self.params.n)
        };
        PlanInfo {
            m: m as usize,
            n: n as usize,
            k: self.params.k as usize,
            kernel: Some(self.choice.kernel),
            transposed: self.choice.transposed,
            order: self.choice.order,
            schedule: self.choice.schedule,
            grid: self.choice.grid,
            ctas: x * y,
            shared_bytes: self.shape.shared_bytes,
        }
    }

    /// Enqueues the product of operands at the addresses of A, B and C.
    ///
    /// # Safety
    /// They are live on the plan's GPU, in the planned layouts, and stay until
    /// the stream is through.
    pub(crate) unsafe fn run(&mut self, [a, b, c]: [u64; 3]) -> Result<(), Error> {
        if self.params.m == 0 || self.params.n == 0 {
            return Ok(());
        }
        self.gpu.make_current()?;
        let (a, b) = if self.choice.transposed {
            (b, a)
        } else {
            (a, b)
        };
        let at = |operand: Operand, address| Operand { address, ..operand };
        self.params.a = at(self.params.a, a);
        self.params.b = at(self.params.b, b);
        self.params.c = at(self.params.c, c);
        if let Some(maps) = &mut self.maps {
            let maps = maps.update(&self.gpu, [a, b, c])?;
            self.params.tensor_maps = maps.address;
            self.params.store_by_tma = maps.store_by_tma.into();
        }
        // SAFETY: the caller's duty; the function takes `GemmParams` like every
        // entry point.
        unsafe { launch::launch(&self.gpu, self.function, self.shape, &self.params) }
    }
}
