//! One launch of a product, with the copies of operands that go before it.

use std::sync::Arc;
use std::time::Duration;

use gpu_kernels::order::Divisor;
use gpu_kernels::{
    ClusterIds, ClusterShape, EpilogueArguments, Family, Form, GemmParams, Planes, Raster,
    TensorMaps,
};

use super::backend::{Function, LaunchConfig};
use super::epilogue::BoundEpilogue;
use super::hopper_maps::HopperMaps;
use super::opened::Gpu;
use super::pack::Pack;
use super::reduce::Reduce;
use super::run_order::Turn;
use super::split::Split;
use super::sums::Sums;
use crate::epilogue_form::Gated;
use crate::error::Error;
use crate::plan_info::{GpuPlanInfo, Origin};
use crate::problem::Problem;
use crate::select::choice::Choice;
use crate::select::gpc::{self, ByGpc};
use crate::select::pack::PackedMatrix;
use crate::select::{cost, eviction, grid, line_classes, overlap};

/// The operands of one launch: addresses, and what the epilogue reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
    pub(crate) epilogue: BoundEpilogue,
}

impl Run {
    /// The same for Cᵀ = Bᵀ·Aᵀ.
    fn transposed(self) -> Self {
        Run {
            a: self.b,
            b: self.a,
            c: self.c,
            epilogue: self.epilogue.transposed(),
        }
    }
}

/// Everything that a launch needs except the addresses.
#[derive(Debug)]
pub(crate) struct ProductLaunch {
    gpu: Arc<Gpu>,
    choice: Choice,
    function: Function,
    config: LaunchConfig,
    /// The estimated time by [`cost`], at the highest clock.
    estimate: Duration,
    /// The launch before the product that copies A or B, or both, as the kernel sees them.
    pack: Option<Pack>,
    /// The launch before the product that splits A and B instead.
    split: Option<Split>,
    /// Columns of A. The kernel may count the part of a line before them, too.
    k: u32,
    /// The parameters for the problem as the kernel sees it. The addresses are from the
    /// last run; packed operands have the address of their workspace.
    params: GemmParams,
    maps: Option<HopperMaps>,
    /// The stream-K workspace, in which CTAs leave the accumulators of shared tiles.
    sums: Option<Sums>,
    /// The launch behind the product, under split-K.
    reduce: Option<Reduce>,
}

impl ProductLaunch {
    /// Loads the kernels of `choice`, made for `problem`, and allocates
    /// workspaces.
    pub(crate) fn new(gpu: &Arc<Gpu>, choice: Choice, problem: &Problem) -> Result<Self, Error> {
        let target = gpu.info().target();
        let cycles = cost::of_choice(&choice, problem, &target).cycles;
        let estimate = gpu.info().time_of(cycles);
        let mut problem = if choice.transposed {
            problem.transposed()
        } else {
            *problem
        };
        let kernel = &choice.kernel;
        let mut form = Form {
            evict_first: eviction::evict_first(&choice, &problem, &target),
            cluster: ClusterShape::of(kernel.cluster),
            ..problem.form()
        };
        if choice.line_classes > 1 {
            form.planes = Planes::LineClasses;
        }
        let k_blocks = problem.k.div_ceil(kernel.block.k);
        let at_once = target.clusters_at_once(kernel);
        let launch = gpc::Launch::of_choice(&choice, k_blocks, at_once);
        let by_gpc = ByGpc::of(&launch)
            .filter(|_| (gpu.placement()).knows(kernel.cluster, launch.clusters()));
        form.renumbered = by_gpc.is_some().into();
        let function = gpu.load(kernel, &form)?;
        let ctas = grid::ctas(&choice, gpu.resident_ctas(&function));
        let cluster_ids = by_gpc.map_or(ClusterIds::INDICES, |by_gpc| {
            let clusters = ctas.0 / kernel.cluster.ctas();
            (gpu.placement()).ids(kernel.cluster, clusters, |place| by_gpc.id(place))
        });
        let empty = problem.is_empty();
        let (mut pack, mut split) = (None, None);
        if let (Some(splits), false) = (
            choice.pack.filter(|pack| pack.family == Family::Split),
            empty,
        ) {
            let a = PackedMatrix::of_a(kernel, &problem);
            let b = PackedMatrix::of_b(kernel, &problem);
            split = Some(Split::new(gpu, &splits, &problem, [a, b])?);
            (problem.a, problem.b) = (a.strides(), b.strides());
        } else if let (Some(copies), false) = (choice.pack, empty) {
            let packed = [
                (choice.packed.a).then(|| PackedMatrix::of_a(kernel, &problem)),
                (choice.packed.b).then(|| PackedMatrix::of_b(kernel, &problem)),
            ];
            pack = Some(Pack::new(gpu, &copies, &problem, packed)?);
            for (operand, matrix) in [&mut problem.a, &mut problem.b].into_iter().zip(packed) {
                *operand = matrix.map_or(*operand, PackedMatrix::strides);
            }
        }
        let depth = line_classes::depth(kernel, &problem, choice.line_classes);
        let problem = line_classes::as_batch(kernel, &problem, choice.line_classes);
        let maps = match kernel.loads_by_tma && !empty {
            true => Some(HopperMaps::new(kernel, &problem)?),
            false => None,
        };
        let [a, b] = match &split {
            Some(split) => split.addresses(),
            None => addresses(&pack).map(|address| address.unwrap_or(0)),
        };
        let sums = match grid::stream_k_tiles(&choice, ctas) {
            0 => None,
            _ => Some(Sums::new(gpu, kernel, grid::parts(&choice))?),
        };
        let reduce = match (&choice.reduce, empty) {
            (Some(reduce), false) => Some(Reduce::new(gpu, reduce, &choice, &form)?),
            _ => None,
        };
        Ok(ProductLaunch {
            gpu: gpu.clone(),
            choice,
            function,
            config: LaunchConfig {
                ctas,
                overlaps: overlap::pays(kernel, ctas, cycles, &target),
            },
            estimate,
            k: problem.k,
            params: GemmParams {
                form,
                batches: problem.batches,
                epilogue: with_gated_columns(&problem),
                source_by_tma: 0,
                a: problem.a.at(a),
                b: problem.b.at(b),
                c: problem.c.at(0),
                workspace: sums.as_ref().map_or(0, Sums::address),
                m: problem.m,
                n: problem.n,
                k: depth,
                raster: Raster::new(choice.order, choice.grid),
                schedule: choice.schedule,
                class_tiles: Divisor::new(line_classes::tiles_of_class(&choice)),
                store_by_tma: 0,
                stream_k_ctas: choice.stream_k_ctas,
                exponents: split.as_ref().map_or([0; 2], Split::exponents),
                cluster_ids,
            },
            pack,
            split,
            maps,
            sums,
            reduce,
        })
    }

    /// The estimated time of the product, at the GPU's highest clock.
    pub(crate) fn estimate(&self) -> Duration {
        self.estimate
    }

    /// The description of the plan, whose choices were made by `origin`.
    pub(crate) fn info(&self, origin: Origin) -> GpuPlanInfo {
        let (x, y) = self.config.ctas;
        let GemmParams {
            mut m,
            mut n,
            batches,
            ..
        } = self.params;
        let classes = self.choice.line_classes;
        match self.choice.kernel.c_along_m {
            false => m *= classes,
            true => n *= classes,
        }
        if self.choice.transposed {
            (m, n) = (n, m);
        }
        let mut packed =
            addresses(&self.pack).map(|address| self.split.is_some() || address.is_some());
        if self.choice.transposed {
            packed.reverse();
        }
        let [packed_a, packed_b] = packed;
        let mut evict_first = self.params.form.evict_first;
        if self.choice.transposed {
            evict_first = evict_first.transposed();
        }
        let packed = (self.pack.iter().map(Pack::workspace_bytes))
            .chain(self.split.iter().map(Split::workspace_bytes));
        let sums = self.sums.as_ref().map_or(0, Sums::bytes);
        GpuPlanInfo {
            m: m as usize,
            n: n as usize,
            k: self.k as usize,
            batches: (batches / classes) as usize,
            kernel: self.choice.kernel,
            origin,
            transposed: self.choice.transposed,
            two_launches: false,
            line_classes: classes,
            evict_first,
            clusters_by_gpc: self.params.form.renumbered != 0,
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

    /// Whether there is nothing to compute.
    pub(super) fn is_empty(&self) -> bool {
        let GemmParams { m, n, batches, .. } = self.params;
        m == 0 || n == 0 || batches == 0
    }

    /// Enqueues the product of the operands of `run`, which is not empty, on the stream of
    /// `turn`.
    ///
    /// # Safety
    /// The operands are live on the GPU, in the planned layouts, and stay allocated
    /// until the stream has finished. The GPU's context is current. No other run uses the
    /// workspace at the same time.
    pub(super) unsafe fn run(&mut self, turn: Turn, run: &Run) -> Result<(), Error> {
        let params = &mut self.params;
        let run = if self.choice.transposed {
            run.transposed()
        } else {
            *run
        };
        let [packed_a, packed_b] = addresses(&self.pack);
        if packed_a.is_none() && self.split.is_none() {
            params.a.address = run.a;
        }
        if packed_b.is_none() && self.split.is_none() {
            params.b.address = run.b;
        }
        params.c.address = run.c;
        params.epilogue = EpilogueArguments {
            gate_stride: params.epilogue.gate_stride,
            up_offset: params.epilogue.up_offset,
            ..run.epilogue.arguments()
        };
        let mut tensor_maps = TensorMaps::NONE;
        if let Some(maps) = &mut self.maps {
            let addresses = [params.a.address, params.b.address, run.c];
            let maps = maps
                .encode(&self.gpu, addresses, run.epilogue.source)
                .map_err(|error| named_by_caller(error, self.choice.transposed))?;
            tensor_maps = maps.maps;
            params.store_by_tma = maps.store_by_tma.into();
            params.source_by_tma = maps.source_by_tma.into();
        }
        let (backend, stream) = (self.gpu.backend(), turn.stream());
        if let Some(pack) = &self.pack {
            // SAFETY: the caller ensures it.
            unsafe { pack.run(&self.gpu, stream, [run.a, run.b]) }?;
        }
        if let Some(split) = &self.split {
            // SAFETY: the caller ensures it.
            unsafe { split.run(&self.gpu, stream, [run.a, run.b]) }?;
        }
        // Under split-K no CTA raises a flag.
        if let (Some(sums), None) = (&mut self.sums, &self.reduce) {
            sums.clear_flags(backend, turn)?;
        }
        let (function, config) = (&self.function, self.config);
        // SAFETY: the caller ensures it; the function takes these two parameters like every
        // entry point.
        unsafe { backend.launch(stream, function, config, &self.params, &tensor_maps) }?;
        match &self.reduce {
            None => Ok(()),
            // SAFETY: the caller ensures it; the product is the launch before.
            Some(reduce) => unsafe { reduce.run(&self.gpu, stream, &self.params) },
        }
    }
}

/// The error with the caller's name of its operand: a transposed product has Bᵀ as its A.
fn named_by_caller(error: Error, is_transposed: bool) -> Error {
    match error {
        Error::Misaligned {
            operand,
            address,
            kernel,
        } if is_transposed => Error::Misaligned {
            operand: operand.transposed(),
            address,
            kernel,
        },
        Error::TensorMap { operand, map, code } if is_transposed => Error::TensorMap {
            operand: operand.transposed(),
            map,
            code,
        },
        other => other,
    }
}

/// Where `pack` copies A and B to, as far as it copies them.
fn addresses(pack: &Option<Pack>) -> [Option<u64>; 2] {
    pack.as_ref().map_or([None; 2], Pack::addresses)
}

/// The arguments of a gated epilogue that the plan knows.
fn with_gated_columns(problem: &Problem) -> EpilogueArguments {
    let (gate_stride, up_offset) = match problem.epilogue.gated {
        None => return EpilogueArguments::NONE,
        Some(Gated::Interleaved) => (2, 1),
        Some(Gated::Halves) => (1, problem.n / 2),
    };
    EpilogueArguments {
        gate_stride,
        up_offset,
        ..EpilogueArguments::NONE
    }
}
