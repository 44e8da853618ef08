//! The choices that the caller forces ([`Request`]), how a kernel can run a problem ([`Fit`]), and the
//! selection ([`Choice`]).

use gpu_kernels::{Block, Family, KernelInfo, Schedule, TileGrid, TileOrder};

use crate::problem::{Problem, Strides};

/// Whether operands that TMA cannot read may be packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Pack where it pays, and wherever a hopper kernel or the family is forced.
    #[default]
    Auto,
    /// Never pack. Hopper kernels that load through TMA then refuse operands that it cannot read.
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

    /// Number of elements copied for `problem`, as the kernel sees it.
    pub(super) fn elements(self, problem: &Problem) -> u64 {
        let a = u64::from(self.a) * elements(problem, problem.m, &problem.a);
        let b = u64::from(self.b) * elements(problem, problem.n, &problem.b);
        a.saturating_add(b)
    }
}

/// Number of elements of an operand of `problem` that has so many lines along K. A matrix that all
/// products share counts once.
pub(super) fn elements(problem: &Problem, lines: u32, operand: &Strides) -> u64 {
    let of_one = u64::from(lines) * u64::from(problem.k);
    of_one.saturating_mul(match operand.batch_stride {
        0 => 1,
        _ => problem.batches.into(),
    })
}

/// How a kernel can run a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Whether the kernel runs the transposed problem.
    pub(super) transposed: bool,
    /// The operands that are packed first.
    pub(super) packed: Packed,
    /// The number of classes of lines; 1 are none.
    pub(super) classes: u32,
}

/// The choices that the caller forces; `None` leaves a choice to the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// A kernel by name.
    pub kernel: Option<String>,
    /// A family of kernels.
    pub family: Option<Family>,
    /// A CTA tile.
    pub block: Option<Block>,
    /// A tile order.
    pub order: Option<TileOrder>,
    /// A schedule.
    pub schedule: Option<Schedule>,
    /// Whether operands may be packed.
    pub packing: Packing,
    /// The number of classes of lines, 1, 2, 4 or 8; 1 are none.
    pub line_classes: Option<u32>,
    /// Whether the bits of C may depend on nothing but its row of A, B, K and the types.
    pub batch_invariant: bool,
}

/// A complete configuration: kernel, tile order and schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel.
    pub kernel: KernelInfo,
    /// Whether it runs the transposed problem.
    pub transposed: bool,
    /// Whether gated pairs are computed in two launches of the kernel: the gates, then the
    /// other columns, times the activation of the gates. Then everything below is of one of
    /// them.
    pub two_launches: bool,
    /// Operands to pack first.
    pub packed: Packed,
    /// The kernel that packs them; `None` where nothing is packed.
    pub pack: Option<KernelInfo>,
    /// The number of classes into which the lines of an operand are divided, so that fewer of
    /// them straddle cache lines
    /// ([`hopper::line_classes`](gpu_kernels::kernels::hopper::line_classes)); 1 where they are
    /// not.
    pub line_classes: u32,
    /// The product divided into CTA tiles, or into cluster tiles; transposed if C is. C has
    /// fewer columns than the product if the epilogue is gated. Tiles have lines of one class.
    pub grid: TileGrid,
    /// Number of products, each with this grid.
    pub batches: u32,
    /// The order of those tiles.
    pub order: TileOrder,
    /// How CTAs get tiles.
    pub schedule: Schedule,
    /// Under [`Schedule::StreamK`], the number of CTAs that compute the tiles of the last
    /// wave, which are cut along K; under [`Schedule::SplitK`], the number of all CTAs, the same
    /// for each tile; else 0.
    pub stream_k_ctas: u32,
    /// Under [`Schedule::SplitK`], the kernel that adds the sums of the CTAs and stores C;
    /// `None` where each tile has one CTA, which stores it.
    pub reduce: Option<KernelInfo>,
}

impl Choice {
    /// Number of tiles of all products. A launch can number them.
    pub fn tiles(&self) -> u32 {
        self.grid.tiles() * self.batches
    }
}
