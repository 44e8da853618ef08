//! [`UntypedPlan`]: a plan without its element types and its device, as the plan cache
//! keeps it.

use crate::cpu::CpuPlan;
use crate::epilogue::Epilogue;
use crate::gpu::plan::GpuPlan;
use crate::operands::Operands;
use crate::plan_info::PlanInfo;

/// A product ready to run. The owner of the plan knows the device and the element types
/// that it was made for. The plan holds no [`Device`](crate::Device), because the device
/// keeps such plans and the two would keep each other alive.
#[derive(Debug)]
pub(crate) struct UntypedPlan {
    pub(crate) operands: Operands,
    /// The work depends on the epilogue's form alone; another epilogue of the same form may
    /// take its place.
    pub(crate) epilogue: Epilogue,
    pub(crate) work: Work,
    pub(crate) info: PlanInfo,
}

impl UntypedPlan {
    /// Whether a graph has captured a run and uses memory of the plan.
    pub(crate) fn belongs_to_graph(&self) -> bool {
        match &self.work {
            Work::Cpu(_) => false,
            Work::Gpu(plan) => plan.belongs_to_graph(),
        }
    }
}

/// The implementation that runs the product.
#[derive(Debug)]
pub(crate) enum Work {
    Cpu(CpuPlan),
    Gpu(Box<GpuPlan>),
}
