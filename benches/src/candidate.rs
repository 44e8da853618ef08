//! What is measured: one way to compute a problem.

use crate::choice::{KernelChoice, Placement, schedule_name};
use crate::error::Error;
use crate::model;
use crate::workload::Workload;
use gpu_kernels::{DType, TileOrder};
use std::fmt;
use std::time::Duration;
use tilewise::{Device, Element, Gemm, GpuInfo, Origin, Output, Plan, PlanInfo, Precision, Tuner};

/// The implementation of a record whose kernel was forced, or of the CPU.
pub const TILEWISE: &str = "tilewise";

/// The implementation of a record with nothing forced: what a user gets.
pub const CHOSEN: &str = "tilewise (chosen)";

/// The implementation of a record whose kernel, order and schedule a
/// [`Tuner`] measured.
pub const TUNED: &str = "tilewise (tuned)";

/// How a candidate is named in records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// [`TILEWISE`], [`CHOSEN`], [`TUNED`], or a peer with its version.
    pub implementation: String,
    /// Entry point or algorithm.
    pub kernel: String,
    /// Tile order; empty where there is none to name.
    pub order: String,
    /// Schedule; empty where there is none to name.
    pub schedule: String,
    /// CTAs launched, where known.
    pub ctas: Option<u64>,
    /// What else there is to say.
    pub note: String,
}

impl Label {
    /// Only the implementation, where there is no more to name.
    pub fn of(implementation: impl Into<String>) -> Label {
        Label {
            implementation: implementation.into(),
            ..Label::default()
        }
    }

    /// Whether both launch the same, whoever chose it.
    pub fn same_launch(&self, other: &Label) -> bool {
        let launch = |label: &Label| {
            let Label {
                kernel,
                order,
                schedule,
                ctas,
                ..
            } = label.clone();
            (kernel, order, schedule, ctas)
        };
        launch(self) == launch(other)
    }
}

/// The parts that there are, as a table has them.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            &self.implementation,
            &self.kernel,
            &self.order,
            &self.schedule,
        ];
        let parts = parts.map(String::as_str).into_iter();
        let said: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        f.write_str(&said.join(" "))
    }
}

/// One way to compute a [`Workload`].
pub trait Candidate<T, O> {
    /// Its name.
    fn label(&self) -> &Label;

    /// Enqueues (GPU) or makes (CPU) one product.
    ///
    /// # Errors
    /// The launch failed.
    fn launch(&mut self, workload: &mut Workload<T, O>) -> Result<(), Error>;

    /// What one product is estimated to take; zero where nobody knows.
    fn estimate(&self) -> Duration {
        Duration::ZERO
    }

    /// Bytes from and to DRAM of one product, by the model; `None` where the
    /// algorithm is not known.
    fn modelled_dram_bytes(&self, _workload: &Workload<T, O>) -> Option<u64> {
        None
    }
}

/// A kernel of tilewise with its order and schedule.
pub struct Planned<T, O> {
    label: Label,
    plan: Plan<T, O>,
    gpu: Option<GpuInfo>,
}

impl<T: Element, O: Output<T>> Planned<T, O> {
    /// Plans `workload` with what `kernel` and `placement` force. On the CPU,
    /// which has neither, with nothing forced.
    ///
    /// # Errors
    /// The library cannot plan it so.
    pub fn new(
        device: &Device,
        kernel: Option<KernelChoice>,
        placement: Placement,
        workload: &mut Workload<T, O>,
    ) -> Result<Self, tilewise::Error> {
        let gemm = open(device, workload);
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
        let (a, b, c) = workload.operands();
        let plan = gemm.plan(a, b, c)?;
        let implementation = match (kernel, placement) {
            (
                None,
                Placement {
                    order: None,
                    schedule: None,
                },
            ) => CHOSEN,
            _ => TILEWISE,
        };
        Ok(Planned::of(device, implementation, plan))
    }

    /// Plans `workload` with what `tuner` remembers or measures.
    ///
    /// # Errors
    /// The library cannot plan it, or cannot measure.
    pub fn tuned(
        device: &Device,
        tuner: &mut Tuner,
        workload: &mut Workload<T, O>,
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
        };
        Some((KernelChoice::Entry(info.kernel.name), placement))
    }

    fn of(device: &Device, implementation: &str, plan: Plan<T, O>) -> Self {
        let label = match plan.info() {
            PlanInfo::Gpu(info) => Label {
                implementation: implementation.to_owned(),
                kernel: info.kernel.name.to_owned(),
                order: info.order.to_string(),
                schedule: schedule_name(info.schedule).to_owned(),
                ctas: Some(u64::from(info.ctas)),
                note: String::new(),
            },
            PlanInfo::Cpu(_) => Label {
                implementation: TILEWISE.to_owned(),
                kernel: "cpu".to_owned(),
                ..Label::default()
            },
        };
        Planned {
            label,
            plan,
            gpu: device.gpu_info().cloned(),
        }
    }
}

/// `workload` with nothing forced but the way to multiply, which is part of the
/// problem.
pub(crate) fn open<T, O>(device: &Device, workload: &Workload<T, O>) -> Gemm {
    let gemm = Gemm::new(device);
    match workload.problem.dtype {
        DType::Tf32 => gemm.precision(Precision::Tf32),
        DType::F32 | DType::F16 | DType::Bf16 => gemm,
    }
}

impl<T: Element, O: Output<T>> Candidate<T, O> for Planned<T, O> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn launch(&mut self, workload: &mut Workload<T, O>) -> Result<(), Error> {
        let (a, b, c) = workload.operands();
        Ok(self.plan.run(a, b, c)?)
    }

    fn estimate(&self) -> Duration {
        self.plan.info().estimate()
    }

    fn modelled_dram_bytes(&self, workload: &Workload<T, O>) -> Option<u64> {
        let (info, gpu) = (self.plan.info().gpu()?, self.gpu.as_ref()?);
        Some(model::estimated_dram_bytes(
            workload.problem,
            &info.kernel,
            info.transposed,
            info.order,
            &gpu.target(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_launch_can_be_the_chosen_one() {
        let chosen = Label {
            implementation: CHOSEN.to_owned(),
            kernel: "hopper_f16".to_owned(),
            order: "grouped:8".to_owned(),
            ..Label::default()
        };
        let forced = Label {
            implementation: TILEWISE.to_owned(),
            ..chosen.clone()
        };
        assert!(chosen.same_launch(&forced) && chosen != forced);
        let other = Label {
            order: "row".to_owned(),
            ..chosen.clone()
        };
        assert!(!chosen.same_launch(&other));
    }
}
