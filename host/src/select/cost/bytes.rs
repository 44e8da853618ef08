//! Bytes between the GPU and its DRAM, for a product.

use gpu_kernels::{KernelInfo, TileGrid};

use super::task::Task;
use crate::problem::Target;

/// FLOP per byte of A, B and C above which the tensor cores take more than twice as long as DRAM, on
/// an H200.
const FLOP_PER_BYTE: u64 = 500;

/// Bytes of A, B and C, and the FLOP done with them.
pub(super) struct Bytes {
    a: u64,
    b: u64,
    c: u64,
    flop: u64,
}

impl Bytes {
    pub(super) fn of(kernel: &KernelInfo, task: &Task) -> Bytes {
        let (height, width) = kernel.cluster_tile();
        let covered = |lines: u32, tiles: u32, extent: u32| {
            u64::from(lines).min(u64::from(tiles) * u64::from(extent))
        };
        let m = covered(task.rows, task.grid.tiles_m, height);
        let n = covered(task.columns, task.grid.tiles_n, width);
        let bytes = |one: u64, other: u64, matrices: u32| {
            let elements = one.saturating_mul(other).saturating_mul(matrices.into());
            elements.saturating_mul(kernel.input.bytes().into())
        };
        let k = u64::from(task.k);
        Bytes {
            a: bytes(m, k, task.matrices[0]),
            b: bytes(k, n, task.matrices[1]),
            c: bytes(m, n, task.batches),
            flop: (2 * m)
                .saturating_mul(n)
                .saturating_mul(k)
                .saturating_mul(task.batches.into()),
        }
    }

    /// Whether arithmetic takes so long that it makes no difference where the operands are.
    pub(super) fn hidden_by_arithmetic(&self) -> bool {
        self.flop / self.all().max(1) > FLOP_PER_BYTE
    }

    pub(super) fn all(&self) -> u64 {
        self.a.saturating_add(self.b).saturating_add(self.c)
    }

    /// What comes from DRAM again where `left` tiles are cut at different depths, so that the tiles
    /// that read the same lines do so at times of their own.
    ///
    /// Of R readers of an operand, spread evenly over its depth, one finds its line in L2 if another
    /// has read it within the part f of both operands that L2 holds. So a line comes from DRAM
    /// R · (1 − f)^(R − 1) times, and at least once: 1.8 times for two readers of weights of 283 MB
    /// (256×5120×27648), 2.4 for ten readers of 212 MB (2048×3584×18944).
    pub(super) fn again(&self, grid: TileGrid, left: u64, target: &Target) -> u64 {
        const ONE: u64 = 1 << 16;
        // An operand that is read all the time stays in half of L2.
        let held = (target.l2_bytes / 2).saturating_mul(ONE) / self.a.saturating_add(self.b).max(1);
        let missed = ONE - held.min(ONE);
        let tiles = [grid.tiles_m, grid.tiles_n].map(u64::from);
        // The tiles left, in a square as far as the grid allows.
        let readers =
            |along: u64, across: u64| across.min(left / along.min(left.isqrt()).max(1)).max(1);
        let of = |operand: u64, readers: u64| {
            let mut times = readers * ONE;
            for _ in 1..readers {
                times = times * missed / ONE;
                if times <= ONE {
                    return 0;
                }
            }
            (u128::from(operand) * u128::from(times - ONE) / u128::from(ONE)) as u64
        };
        let of_a = of(self.a, readers(tiles[0], tiles[1]));
        of_a.saturating_add(of(self.b, readers(tiles[1], tiles[0])))
    }
}
