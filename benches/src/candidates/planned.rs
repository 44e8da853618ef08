//! tilewise as a candidate: a plan of the library, forced, chosen or tuned.

use crate::candidates::candidate::{CHOSEN, Candidate, INVARIANT, Label, TILEWISE, TUNED};
use crate::error::Error;
use crate::measure::problem_data::ProblemData;
use crate::modelled::selection::estimated_dram_bytes;
use crate::problem::names::{KernelChoice, Placement, schedule_name};
use gpu_kernels::TileOrder;
use std::time::Duration;
use tilewise::{Device, Element, Gemm, GpuInfo, Origin, Output, Plan, PlanInfo, Tuner};

/// A kernel of tilewise with its order and schedule.
pub struct Planned<T, O> {
    label: Label,
    plan: Plan<T, O>,
    gpu: Option<GpuInfo>,
}

impl<T: Element, O: Output<T>> Planned<T, O> {
    /// Plans `workload` with the kernel, order and schedule that are forced. The CPU has
    /// none of them; nothing is forced there.
    ///
    /// # Errors
    /// The library cannot plan it so.
    pub fn new(
        device: &Device,
        kernel: Option<KernelChoice>,
        placement: Placement,
        workload: &mut ProblemData<T, O>,
    ) -> Result<Self, tilewise::Error> {
        let gemm = force(open(device, workload), kernel, placement);
        let (a, b, c) = workload.operands();
        let plan = gemm.plan(a, b, c)?;
        let nothing_forced = kernel.is_none() && placement == Placement::default();
        let implementation = if nothing_forced { CHOSEN } else { TILEWISE };
        Ok(Planned::of(device, implementation, plan))
    }

    /// Plans `workload` for batch-invariant results, with nothing else forced.
    ///
    /// # Errors
    /// The library cannot plan it so.
    pub fn invariant(
        device: &Device,
        workload: &mut ProblemData<T, O>,
    ) -> Result<Self, tilewise::Error> {
        let gemm = open(device, workload).batch_invariant(true);
        let (a, b, c) = workload.operands();
        let plan = gemm.plan(a, b, c)?;
        Ok(Planned::of(device, INVARIANT, plan))
    }

    /// Plans `workload` with what `tuner` remembers or measures.
    ///
    /// # Errors
    /// The library cannot plan it, or cannot measure.
    pub fn tuned(
        device: &Device,
        tuner: &mut Tuner,
        workload: &mut ProblemData<T, O>,
    ) -> Result<Self, tilewise::Error> {
        let gemm = open(device, workload);
        let (a, b, c) = workload.operands();
        let plan = gemm.tune(a, b, c, tuner)?;
        let mut planned = Planned::of(device, TUNED, plan);
        planned.label.note = match planned.plan.info().origin() {
            Origin::Measured => "measured in this run",
            Origin::Remembered => "from the cache",
            Origin::Rule => "nothing to measure",
        }
        .to_owned();
        Ok(planned)
    }

    /// What to force for the same kernel and schedule in row-major order; `None` on the
    /// CPU, which has neither. The library packs and transposes by the kernel alone, so
    /// nothing else changes.
    pub fn in_row_major_order(&self) -> Option<(KernelChoice, Placement)> {
        let info = self.plan.info().gpu()?;
        let placement = Placement {
            order: Some(TileOrder::RowMajor),
            schedule: Some(info.schedule),
            line_classes: Some(info.line_classes),
        };
        Some((KernelChoice::Entry(info.kernel.name), placement))
    }

    fn of(device: &Device, implementation: &str, plan: Plan<T, O>) -> Self {
        let label = match plan.info() {
            PlanInfo::Gpu(info) => Label {
                kernel: info.kernel.name.to_owned(),
                order: info.order.to_string(),
                schedule: schedule_name(info.schedule).to_owned(),
                ctas: Some(u64::from(info.ctas)),
                line_classes: Some(info.line_classes).filter(|&classes| classes > 1),
                ..Label::of(implementation)
            },
            PlanInfo::Cpu(_) => Label {
                kernel: "cpu".to_owned(),
                ..Label::of(match implementation {
                    INVARIANT => INVARIANT,
                    _ => TILEWISE,
                })
            },
        };
        Planned {
            label,
            plan,
            gpu: device.gpu_info().cloned(),
        }
    }
}

/// `gemm` with the kernel, order and schedule that are forced.
pub fn force(gemm: Gemm, kernel: Option<KernelChoice>, placement: Placement) -> Gemm {
    let mut gemm = match kernel {
        Some(KernelChoice::Family(family)) => gemm.family(family),
        Some(KernelChoice::Entry(name)) => gemm.kernel(name),
        None => gemm,
    };
    if let Some(order) = placement.order {
        gemm = gemm.order(order);
    }
    if let Some(schedule) = placement.schedule {
        gemm = gemm.schedule(schedule);
    }
    if let Some(classes) = placement.line_classes {
        gemm = gemm.line_classes(classes);
    }
    gemm
}

/// A plan to be made for `workload`, with nothing forced but the precision, which is part of
/// the problem.
pub(crate) fn open<T, O>(device: &Device, workload: &ProblemData<T, O>) -> Gemm {
    Gemm::new(device).precision(workload.problem.dtype.into())
}

impl<T: Element, O: Output<T>> Candidate<T, O> for Planned<T, O> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn launch(&mut self, workload: &mut ProblemData<T, O>) -> Result<(), Error> {
        let (a, b, c) = workload.operands();
        Ok(self.plan.run(a, b, c)?)
    }

    fn estimate(&self) -> Duration {
        self.plan.info().estimate()
    }

    fn modelled_dram_bytes(&self, workload: &ProblemData<T, O>) -> Option<u64> {
        let (info, gpu) = (self.plan.info().gpu()?, self.gpu.as_ref()?);
        Some(estimated_dram_bytes(
            workload.problem,
            &info.kernel,
            info.transposed,
            info.order,
            &gpu.target(),
        ))
    }
}
