//! [`UntypedPlan`]: a plan without its element types and its device, as it is kept.

use crate::cpu::CpuPlan;
use crate::gpu::plan::GpuPlan;
use crate::operands::Operands;
use crate::plan_info::PlanInfo;

/// A product ready to run on the device and with the element types that it was planned
/// for, which the owner knows. It holds no [`Device`](crate::Device), because the device
/// keeps such plans.
#[derive(Debug)]
pub(crate) struct UntypedPlan {
    pub(crate) operands: Operands,
    pub(crate) work: Work,
    pub(crate) info: PlanInfo,
}

/// What runs.
#[derive(Debug)]
pub(crate) enum Work {
    Cpu(CpuPlan),
    Gpu(Box<GpuPlan>),
}
