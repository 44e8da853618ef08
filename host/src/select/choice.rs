//! What the caller forces, and what is selected.

use gpu_kernels::{Block, Family, KernelInfo, Schedule, TileGrid, TileOrder};

use crate::problem::Problem;

/// Whether operands that TMA cannot read may be packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Where it pays, and wherever a hopper kernel or the family is forced.
    #[default]
    Auto,
    /// Never: then hopper kernels refuse such operands.
    Never,
}

/// Which operands are packed before the product, named as the kernel sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// A (Bᵀ where the kernel runs the transposed problem).
    pub a: bool,
    /// B (or Aᵀ).
    pub b: bool,
}

impl Packed {
    /// Whether an operand is packed.
    pub fn any(self) -> bool {
        self.a || self.b
    }

    /// Elements copied for `problem`, as the kernel sees it.
    pub(super) fn elements(self, problem: &Problem) -> u64 {
        let of = |packed, lines: u32| u64::from(packed) * u64::from(lines) * u64::from(problem.k);
        // Each is below 2⁶².
        of(self.a, problem.m) + of(self.b, problem.n)
    }
}

/// What the caller forces; `None` leaves it to the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// A kernel by name.
    pub kernel: Option<String>,
    /// A step of the ladder.
    pub family: Option<Family>,
    /// A CTA tile.
    pub block: Option<Block>,
    /// A tile order.
    pub order: Option<TileOrder>,
    /// A schedule.
    pub schedule: Option<Schedule>,
    /// Whether operands may be packed.
    pub packing: Packing,
}

/// What was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel.
    pub kernel: KernelInfo,
    /// Whether it runs the transposed problem.
    pub transposed: bool,
    /// Operands to pack first.
    pub packed: Packed,
    /// The kernel that packs them; `None` where nothing is packed.
    pub pack: Option<KernelInfo>,
    /// C in tiles, or in the tiles of a whole cluster; of Cᵀ if transposed.
    pub grid: TileGrid,
    /// The order of those tiles.
    pub order: TileOrder,
    /// How CTAs get them.
    pub schedule: Schedule,
    /// Under [`Schedule::StreamK`], CTAs that compute the tiles of the last wave, cut
    /// along K; else 0.
    pub stream_k_ctas: u32,
}
