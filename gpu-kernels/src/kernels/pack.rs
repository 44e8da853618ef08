//! Not a step of the ladder: `pack` copies a matrix into another layout.
//!
//! TMA reads a matrix only if it is contiguous in one direction and both its
//! address and its pitch are multiples of 16 bytes, and `wgmma` reads 4-byte elements only
//! along K. A product of n² elements does n³ work, so it costs little to copy a
//! matrix into a layout that the fast kernels can read. Most shapes need the
//! copy: every shape with an odd K, for example.
//!
//! The kernel takes the parameters of a product, and copies A, M×K, to C, and B, K×N, to the source
//! of the epilogue; either may be [`TensorRef::NONE`]. One launch copies both, because a launch
//! takes as long as copying a small operand. A CTA moves a 64×64 tile:
//!
//! | lines of the operand and of its copy | how |
//! |---|---|
//! | in the same direction | in registers, 16 bytes of the copy at a time. An operand of 16-bit elements may begin between two words: a thread then loads words and shifts (`pack/lines.rs`) |
//! | in different directions, or elements apart | through shared memory: reading along the operand's lines and writing along the copy's, so that both sides are coalesced (`pack/turned.rs`; the transpose of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++") |

mod lines;
mod turned;

use core::marker::PhantomData;

use crate::dtype::ElementType;
use crate::isa::thread;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::order::{TileGrid, div_rem};
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;

/// Rows and columns of a tile.
const SIDE: u32 = 64;

/// Threads of a CTA.
const THREADS: u32 = 256;

/// Words from one row of the staged tile to the next: odd, so that a warp's 32
/// elements fall into 32 banks along rows and along columns.
const PITCH: u32 = SIDE + 1;

/// Copies elements of the size of `T`, bit for bit.
pub struct Pack<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Pack<T> {
    const INFO: KernelInfo = KernelInfo {
        ctas_per_sm: 4,
        shared_bytes: SIDE * PITCH * 4,
        ..KernelInfo::new(
            Family::Pack,
            Arch::Sm75,
            T::DTYPE,
            Block {
                m: SIDE,
                n: SIDE,
                k: 1,
            },
            THREADS,
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // A CTA has one tile: those of A come first, then those of B. One path for both takes
        // half of the registers of two.
        let a = Operand::a(params);
        let before = a.tiles();
        let id = thread::cta_position().x;
        let (operand, id) = if id < before {
            (a, id)
        } else {
            (Operand::b(params), id - before)
        };
        // SAFETY: all threads of the CTA copy the same tile, and the launch has a CTA for each.
        unsafe { operand.copy_tile::<T>(id) }
    }
}

/// Number of CTAs of the launch: one for each tile. Operands that fit in memory have fewer tiles
/// than a launch can number.
pub fn ctas(params: &GemmParams) -> u32 {
    Operand::a(params).tiles() + Operand::b(params).tiles()
}

/// An operand and its copy.
#[derive(Clone, Copy)]
struct Operand {
    rows: u32,
    cols: u32,
    /// Number of matrices; `None` if the launch has no batch, 0 if the operand is not copied.
    matrices: Option<u32>,
    from: TensorRef,
    to: TensorRef,
}

impl Operand {
    #[inline(always)]
    fn a(params: &GemmParams) -> Self {
        Operand::new(params, (params.m, params.k), params.a, params.c)
    }

    #[inline(always)]
    fn b(params: &GemmParams) -> Self {
        let to = params.epilogue.source;
        Operand::new(params, (params.k, params.n), params.b, to)
    }

    #[inline(always)]
    fn new(params: &GemmParams, (rows, cols): (u32, u32), from: TensorRef, to: TensorRef) -> Self {
        let matrices = match params.batches() {
            _ if to.address == 0 => Some(0),
            // Products share the matrix.
            Some(_) if from.batch_stride == 0 => Some(1),
            batches => batches,
        };
        Operand {
            rows,
            cols,
            matrices,
            from,
            to,
        }
    }

    #[inline(always)]
    fn grid(&self) -> TileGrid {
        TileGrid::cover(self.rows, self.cols, SIDE, SIDE)
    }

    #[inline(always)]
    fn tiles(&self) -> u32 {
        self.grid().tiles() * self.matrices.unwrap_or(1)
    }

    /// Copies tile `id`: tiles are numbered along the rows of a matrix, and from matrix to matrix.
    ///
    /// # Safety
    /// All threads of the CTA call this; the operand is live and has such a tile, and its copy
    /// has room.
    #[inline(always)]
    unsafe fn copy_tile<T: ElementType>(&self, id: u32) {
        let grid = self.grid();
        let (batch, id) = match self.matrices {
            None => (0, id),
            Some(_) => div_rem(id, grid.tiles()),
        };
        let (m, n) = div_rem(id, grid.tiles_n);
        let (row, col) = (m * SIDE, n * SIDE);
        let piece = Piece {
            from: self.from.of_batch(batch, T::DTYPE),
            to: self.to.of_batch(batch, T::DTYPE),
            row,
            col,
            rows: self.rows - row,
            cols: self.cols - col,
        };
        // SAFETY: all threads copy the same tile; the copies are masked where the tile reaches past
        // the edge.
        unsafe {
            if piece.is_in_lines::<T>() {
                piece.copy_lines::<T>();
            } else if piece.rows >= SIDE && piece.cols >= SIDE {
                piece.turn::<T, false>();
            } else {
                piece.turn::<T, true>();
            }
        }
    }
}

/// A tile of a matrix, and of its copy.
#[derive(Clone, Copy)]
struct Piece {
    from: TensorRef,
    to: TensorRef,
    /// Its first row.
    row: u32,
    /// Its first column.
    col: u32,
    /// Rows of the matrix from there on.
    rows: u32,
    /// Columns of the matrix from there on.
    cols: u32,
}

/// The address of an element of a matrix.
#[inline(always)]
fn element<T: ElementType>(matrix: &TensorRef, row: u32, col: u32) -> u64 {
    let index = row as u64 * matrix.row_stride + col as u64 * matrix.col_stride;
    matrix.address + T::DTYPE.bytes() as u64 * index
}
