//! [`PlanInfo`]: what a plan does, and who chose it.

use std::time::Duration;

use gpu_kernels::{KernelInfo, Schedule, TileGrid, TileOrder};

/// Who chose what a plan does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The rule of [`select`](crate::select), and whoever forced something.
    Rule,
    /// A [`Tuner`](crate::Tuner), by measuring.
    Measured,
    /// A [`Tuner`](crate::Tuner), from its cache.
    Remembered,
}

/// What a plan will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// The kernel; `None` on the CPU, where the fields below say nothing.
    pub kernel: Option<KernelInfo>,
    /// Who chose the kernel, and what is below.
    pub origin: Origin,
    /// Whether the kernel computes Cᵀ = Bᵀ·Aᵀ.
    pub transposed: bool,
    /// The order of tiles.
    pub order: TileOrder,
    /// How CTAs get tiles.
    pub schedule: Schedule,
    /// C (or Cᵀ) in tiles; for kernels with clusters, in tiles of a cluster.
    pub grid: TileGrid,
    /// CTAs launched; 0 when there is nothing to compute.
    pub ctas: u32,
    /// Dynamic shared memory of one CTA, bytes.
    pub shared_bytes: u32,
    /// Whether A is packed first.
    pub packed_a: bool,
    /// Whether B is packed first.
    pub packed_b: bool,
    /// Device memory for packed operands, and for the sums of tiles that CTAs share
    /// under [`Schedule::StreamK`], bytes.
    pub workspace_bytes: u64,
    /// What one run is estimated to take at the GPU's highest clock, without the copies of
    /// packed operands; zero on the CPU. Good within a factor of a few: enough to say when
    /// a wait is too long.
    pub estimate: Duration,
}

impl PlanInfo {
    /// Of a product on the CPU.
    pub(crate) fn cpu(m: usize, n: usize, k: usize) -> Self {
        PlanInfo {
            m,
            n,
            k,
            kernel: None,
            origin: Origin::Rule,
            transposed: false,
            order: TileOrder::RowMajor,
            schedule: Schedule::Grid1d,
            grid: TileGrid {
                tiles_m: 0,
                tiles_n: 0,
            },
            ctas: 0,
            shared_bytes: 0,
            packed_a: false,
            packed_b: false,
            workspace_bytes: 0,
            estimate: Duration::ZERO,
        }
    }
}
