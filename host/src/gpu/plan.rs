//! A product on a GPU, ready to launch.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use gpu_kernels::{EpilogueArguments, Family, Form, GemmParams, TensorMaps};

use super::backend::{Function, LaunchConfig};
use super::hopper_maps::HopperMaps;
use super::opened::Gpu;
use super::pack::Pack;
use super::run_order::RunOrder;
use super::stream::CudaStream;
use super::sums::Sums;
use crate::error::Error;
use crate::plan_info::{GpuPlanInfo, Origin};
use crate::problem::Problem;
use crate::select::choice::Choice;
use crate::select::pack::PackedMatrix;
use crate::select::{cost, grid};
use crate::tma;

/// Products up to this many cycles, by [`cost`], may start while the previous kernel in
/// the stream still runs. For products back to back on an H200, this gains 5 % at 512³
/// and 1024³ and 4 % at 2048³. Larger products already run at the power or memory limit
/// and would lose up to 6 % (`docs/perf-log.md`).
const SHORT_CYCLES: u64 = 40_000;

/// Everything that a launch needs except the addresses.
#[derive(Debug)]
pub(crate) struct GpuPlan {
    gpu: Arc<Gpu>,
    choice: Choice,
    function: Function,
    config: LaunchConfig,
    /// The estimated time by [`cost`], at the highest clock.
    estimate: Duration,
    /// The copies of A and B, as the kernel sees them, that are made before the product.
    packs: [Option<Pack>; 2],
    /// The parameters for the problem as the kernel sees it. The addresses are from the
    /// last run; packed operands have the address of their workspace.
    params: GemmParams,
    maps: Option<HopperMaps>,
    /// The stream-K workspace, in which CTAs leave the accumulators of shared tiles.
    sums: Option<Sums>,
    /// The order of the runs, which matters where there is a workspace.
    order: RunOrder,
}

impl GpuPlan {
    /// Loads the kernels of `choice`, made for `problem`, and allocates
    /// workspaces.
    pub(crate) fn new(gpu: &Arc<Gpu>, choice: Choice, problem: &Problem) -> Result<Self, Error> {
        let target = gpu.info().target();
        let cycles = cost::of_choice(&choice, problem, &target).cycles;
        let is_short = cycles <= SHORT_CYCLES;
        let estimate = gpu.info().time_of(cycles);
        let mut problem = if choice.transposed {
            problem.transposed()
        } else {
            *problem
        };
        let kernel = &choice.kernel;
        let form = Form::plain(tma::output_dtype(&problem));
        let function = gpu.load(kernel, &form)?;
        let empty = problem.m == 0 || problem.n == 0;
        let mut packs = [None, None];
        if let (Some(copies), false) = (choice.pack, empty) {
            if choice.packed.a {
                let matrix = PackedMatrix::of_a(kernel, &problem);
                let pack = Pack::new(gpu, &copies, problem.a, matrix)?;
                problem.a = matrix.strides();
                packs[0] = Some(pack);
            }
            if choice.packed.b {
                let matrix = PackedMatrix::of_b(kernel, &problem);
                let pack = Pack::new(gpu, &copies, problem.b, matrix)?;
                problem.b = matrix.strides();
                packs[1] = Some(pack);
            }
        }
        let maps = match kernel.family {
            Family::Hopper if !empty => Some(HopperMaps::new(kernel, &problem)?),
            _ => None,
        };
        let ctas = grid::ctas(&choice, gpu.resident_ctas(&function));
        let sums = match grid::stream_k_tiles(&choice, ctas) {
            0 => None,
            _ => Some(Sums::new(gpu, kernel, choice.stream_k_ctas)?),
        };
        Ok(GpuPlan {
            gpu: gpu.clone(),
            choice,
            function,
            config: LaunchConfig {
                ctas,
                overlaps: kernel.family == Family::Hopper && is_short,
            },
            estimate,
            params: GemmParams {
                form,
                batches: 1,
                epilogue: EpilogueArguments::NONE,
                source_by_tma: 0,
                a: problem.a.at(packs[0].as_ref().map_or(0, Pack::address)),
                b: problem.b.at(packs[1].as_ref().map_or(0, Pack::address)),
                c: problem.c.at(0),
                workspace: sums.as_ref().map_or(0, Sums::address),
                m: problem.m,
                n: problem.n,
                k: problem.k,
                order: choice.order,
                schedule: choice.schedule,
                store_by_tma: 0,
                stream_k_ctas: choice.stream_k_ctas,
            },
            packs,
            maps,
            sums,
            order: RunOrder::default(),
        })
    }

    /// The estimated time of the product, at the GPU's highest clock.
    pub(crate) fn estimate(&self) -> Duration {
        self.estimate
    }

    /// The description of the plan, whose choices were made by `origin`.
    pub(crate) fn info(&self, origin: Origin) -> GpuPlanInfo {
        let (x, y) = self.config.ctas;
        let (m, n) = if self.choice.transposed {
            (self.params.n, self.params.m)
        } else {
            (self.params.m, self.params.n)
        };
        let mut packed = [0, 1].map(|index: usize| self.packs[index].is_some());
        if self.choice.transposed {
            packed.reverse();
        }
        let [packed_a, packed_b] = packed;
        let packed = self.packs.iter().flatten().map(Pack::workspace_bytes);
        let sums = self.sums.as_ref().map_or(0, Sums::bytes);
        GpuPlanInfo {
            m: m as usize,
            n: n as usize,
            k: self.params.k as usize,
            kernel: self.choice.kernel,
            origin,
            transposed: self.choice.transposed,
            order: self.choice.order,
            schedule: self.choice.schedule,
            grid: self.choice.grid,
            ctas: x * y,
            shared_bytes: self.choice.kernel.shared_bytes,
            packed_a,
            packed_b,
            workspace_bytes: packed.sum::<u64>() + sums as u64,
            estimate: self.estimate,
        }
    }

    /// Enqueues the product of operands at the addresses of A, B and C, on `stream` or on the
    /// library's own.
    ///
    /// # Safety
    /// The operands are live on the plan's GPU, in the planned layouts, and stay allocated
    /// until the stream has finished. `stream` belongs to the GPU's context.
    pub(crate) unsafe fn run(
        &mut self,
        stream: Option<CudaStream>,
        addresses: [u64; 3],
    ) -> Result<(), Error> {
        if self.params.m == 0 || self.params.n == 0 {
            return Ok(());
        }
        let gpu = self.gpu.clone();
        let _current = gpu.make_current()?;
        let backend = gpu.backend();
        // The library's own stream may be named, or meant.
        let stream = stream.filter(|_| backend.stream() != stream);
        if !self.has_workspace() {
            // SAFETY: the caller ensures it.
            return unsafe { self.enqueue(stream, addresses) };
        }
        let turn = self.order.before(backend, stream)?;
        if let Some(sums) = &mut self.sums {
            sums.clear_flags(backend, stream, turn.is_captured())?;
        }
        // SAFETY: the caller ensures it; the runs of this plan are in order.
        let enqueued = unsafe { self.enqueue(stream, addresses) };
        self.order.after(turn)?;
        enqueued
    }

    /// Enqueues the launches of [`GpuPlan::run`]. The context is current.
    ///
    /// # Safety
    /// What [`GpuPlan::run`] asks for, and no other run of this plan uses the workspace at
    /// the same time.
    unsafe fn enqueue(
        &mut self,
        stream: Option<CudaStream>,
        [a, b, c]: [u64; 3],
    ) -> Result<(), Error> {
        let (a, b) = if self.choice.transposed {
            (b, a)
        } else {
            (a, b)
        };
        let [pack_a, pack_b] = &self.packs;
        let params = &mut self.params;
        if pack_a.is_none() {
            params.a.address = a;
        }
        if pack_b.is_none() {
            params.b.address = b;
        }
        params.c.address = c;
        let mut tensor_maps = TensorMaps::NONE;
        if let Some(maps) = &mut self.maps {
            let addresses = [params.a.address, params.b.address, c];
            let maps = maps.encode(&self.gpu, addresses)?;
            tensor_maps = maps.maps;
            params.store_by_tma = maps.store_by_tma.into();
        }
        for (pack, address) in [(pack_a, a), (pack_b, b)] {
            if let Some(pack) = pack {
                // SAFETY: the caller ensures it.
                unsafe { pack.run(&self.gpu, stream, address) }?;
            }
        }
        let (backend, function) = (self.gpu.backend(), &self.function);
        // SAFETY: the caller ensures it; the function takes these two parameters like every
        // entry point.
        unsafe { backend.launch(stream, function, self.config, params, &tensor_maps) }
    }

    /// Whether the runs use memory of the plan.
    fn has_workspace(&self) -> bool {
        self.sums.is_some() || self.packs.iter().any(Option::is_some)
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
            let [pack_a, pack_b] = &mut self.packs;
            mem::forget((pack_a.take(), pack_b.take(), self.sums.take()));
            mem::forget(mem::take(&mut self.order));
        }
    }
}
