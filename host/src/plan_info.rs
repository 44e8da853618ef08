//! [`PlanInfo`]: what a plan does, and who made its choices.

use std::fmt;
use std::time::Duration;

use gpu_kernels::{EvictFirst, KernelInfo, Schedule, TileGrid, TileOrder};

/// Who chose the kernel, the order and the schedule of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The rule of [`select`](crate::select), within what the caller forced.
    Rule,
    /// A [`Tuner`](crate::Tuner), by measuring.
    Measured,
    /// A [`Tuner`](crate::Tuner), from its cache.
    Remembered,
}

/// The description of a plan, with one variant for each kind of device.
///
/// Methods of the enum return the properties of every plan, such as
/// [`PlanInfo::shape`] and [`PlanInfo::estimate`]. [`GpuPlanInfo`] holds the properties
/// that only a plan on a GPU has.
///
/// ```
/// use tilewise::{Device, Gemm, Layout, PlanInfo, TileOrder};
///
/// # fn main() -> Result<(), tilewise::Error> {
/// let square = Layout::row_major(64, 64);
/// let gemm = Gemm::new(&Device::best()).order(TileOrder::Hilbert);
/// let plan = gemm.plan_for::<f32, f32>(square, square, square)?;
/// assert_eq!(plan.info().shape(), [64, 64, 64]);
/// match plan.info() {
///     PlanInfo::Gpu(gpu) => assert_eq!(gpu.order, TileOrder::Hilbert),
///     // The CPU has no tiles and reports that it ignored the order.
///     PlanInfo::Cpu(cpu) => assert_eq!(cpu.ignored_order, Some(TileOrder::Hilbert)),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanInfo {
    /// A product on the CPU.
    Cpu(CpuPlanInfo),
    /// A product on a GPU.
    Gpu(GpuPlanInfo),
}

/// The description of a plan on the CPU. The plan calls the `gemm` crate once; it has no
/// kernel to choose, and no tiles that an order or a schedule could place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuPlanInfo {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and, unless the epilogue is gated, of C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Number of products.
    pub batches: usize,
    /// The order that [`Gemm::order`](crate::Gemm::order) forced, which has no effect.
    pub ignored_order: Option<TileOrder>,
    /// The schedule that [`Gemm::schedule`](crate::Gemm::schedule) forced, which has no
    /// effect.
    pub ignored_schedule: Option<Schedule>,
    /// Memory in which 16-bit operands are widened to f32, and operands of batch-invariant
    /// products are arranged, bytes.
    pub workspace_bytes: u64,
}

/// The description of a plan on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuPlanInfo {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and, unless the epilogue is gated, of C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Number of products.
    pub batches: usize,
    /// The kernel.
    pub kernel: KernelInfo,
    /// Who chose the kernel and the fields below.
    pub origin: Origin,
    /// Whether the kernel computes Cᵀ = Bᵀ·Aᵀ.
    pub transposed: bool,
    /// Whether gated pairs take two launches of the kernel.
    pub two_launches: bool,
    /// The number of classes into which the lines of A or B are divided, so that fewer of them
    /// straddle cache lines; 1 where they are not. The tiles of [`GpuPlanInfo::grid`] have lines of
    /// one class.
    pub line_classes: u32,
    /// How many sixteenths of the lines of A and of B L2 evicts before others.
    pub evict_first: EvictFirst,
    /// Whether clusters of one GPC have tiles that lie together in the order; under split-K, the same
    /// part of the K of such tiles.
    pub clusters_by_gpc: bool,
    /// The order of tiles.
    pub order: TileOrder,
    /// How CTAs get tiles.
    pub schedule: Schedule,
    /// C (or Cᵀ) divided into tiles; for kernels with clusters, into cluster tiles.
    pub grid: TileGrid,
    /// CTAs launched; 0 when there is nothing to compute.
    pub ctas: u32,
    /// Dynamic shared memory of one CTA, bytes.
    pub shared_bytes: u32,
    /// Whether A is packed first.
    pub packed_a: bool,
    /// Whether B is packed first.
    pub packed_b: bool,
    /// Device memory for packed operands, for the accumulators of tiles that CTAs share under
    /// [`Schedule::StreamK`] or [`Schedule::SplitK`], and for the gates of two launches, bytes.
    pub workspace_bytes: u64,
    /// The estimated time of one run at the GPU's highest clock, without the copies of
    /// packed operands. The estimate may be wrong by a factor of a few; it is meant for
    /// choosing a timeout.
    pub estimate: Duration,
}

/// Reads fields that both variants have.
macro_rules! common {
    ($info:expr, $($field:ident),+ => $value:expr) => {
        match $info {
            PlanInfo::Cpu(CpuPlanInfo { $($field),+, .. })
            | PlanInfo::Gpu(GpuPlanInfo { $($field),+, .. }) => $value,
        }
    };
}

impl PlanInfo {
    /// Number of products.
    pub fn batches(&self) -> usize {
        common!(self, batches => *batches)
    }

    /// M, N and K.
    pub fn shape(&self) -> [usize; 3] {
        common!(self, m, n, k => [*m, *n, *k])
    }

    /// Bytes of memory that the plan owns on its device.
    pub fn workspace_bytes(&self) -> u64 {
        common!(self, workspace_bytes => *workspace_bytes)
    }

    /// The estimated time of one run: [`GpuPlanInfo::estimate`] on a GPU. Zero on the CPU,
    /// where the work is done when a run returns.
    pub fn estimate(&self) -> Duration {
        self.gpu().map_or(Duration::ZERO, |gpu| gpu.estimate)
    }

    /// Who chose the kernel, the order and the schedule. On the CPU this is
    /// [`Origin::Rule`], because there is nothing to measure.
    pub fn origin(&self) -> Origin {
        self.gpu().map_or(Origin::Rule, |gpu| gpu.origin)
    }

    /// The description of a plan on a GPU; `None` on the CPU.
    pub fn gpu(&self) -> Option<&GpuPlanInfo> {
        match self {
            PlanInfo::Cpu(_) => None,
            PlanInfo::Gpu(gpu) => Some(gpu),
        }
    }
}

/// Writes kernel, order and schedule in one line.
impl fmt::Display for PlanInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanInfo::Cpu(cpu) => cpu.fmt(f),
            PlanInfo::Gpu(gpu) => gpu.fmt(f),
        }
    }
}

impl fmt::Display for CpuPlanInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the CPU, without tiles")?;
        if let Some(order) = self.ignored_order {
            write!(f, ", order {order} ignored")?;
        }
        if let Some(schedule) = self.ignored_schedule {
            write!(f, ", schedule {schedule:?} ignored")?;
        }
        Ok(())
    }
}

impl fmt::Display for GpuPlanInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuPlanInfo {
            kernel,
            order,
            schedule,
            transposed,
            line_classes,
            ..
        } = self;
        write!(f, "{}, order {order}, schedule {schedule:?}", kernel.name)?;
        if *transposed {
            f.write_str(", transposed")?;
        }
        if *line_classes > 1 {
            write!(f, ", {line_classes} line classes")?;
        }
        Ok(())
    }
}
