//! What is measured: one way to compute a problem.

use crate::choice::{KernelChoice, Placement, order_name, schedule_name};
use crate::error::Error;
use crate::workload::Workload;
use gpu_kernels::DType;
use tilewise::{Device, Element, Gemm, Output, Plan, Precision};

/// How a candidate is named in records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// `tilewise`, or a peer with its version.
    pub implementation: String,
    /// Entry point or algorithm.
    pub kernel: String,
    /// Tile order; empty where there is none to name.
    pub order: String,
    /// Schedule; empty where there is none to name.
    pub schedule: String,
    /// CTAs launched, where known.
    pub ctas: Option<u64>,
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
}

/// A kernel of tilewise with its order and schedule.
pub struct Planned<T, O> {
    label: Label,
    plan: Plan<T, O>,
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
        let mut gemm = match kernel {
            Some(KernelChoice::Family(family)) => Gemm::new(device).family(family),
            Some(KernelChoice::Entry(name)) => Gemm::new(device).kernel(name),
            None => Gemm::new(device),
        };
        if let Some(order) = placement.order {
            gemm = gemm.order(order);
        }
        if let Some(schedule) = placement.schedule {
            gemm = gemm.schedule(schedule);
        }
        if workload.problem.dtype == DType::Tf32 {
            gemm = gemm.precision(Precision::Tf32);
        }
        let (a, b, c) = workload.operands();
        let plan = gemm.plan(a, b, c)?;
        let info = plan.info();
        let label = match info.kernel {
            Some(kernel) => Label {
                implementation: "tilewise".to_owned(),
                kernel: kernel.name.to_owned(),
                order: order_name(info.order),
                schedule: schedule_name(info.schedule).to_owned(),
                ctas: Some(u64::from(info.ctas)),
            },
            None => Label {
                implementation: "tilewise".to_owned(),
                kernel: "cpu".to_owned(),
                ..Label::default()
            },
        };
        Ok(Planned { label, plan })
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
}
