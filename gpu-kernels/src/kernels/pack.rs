//! Not a step of the ladder: `pack` copies a matrix into another layout.
//!
//! TMA reads a matrix only if it is contiguous in one direction and both its
//! address and its pitch are multiples of 16 bytes, and `wgmma` reads 4-byte elements only
//! along K. A product of n² elements does n³ work, so it costs little to copy a
//! matrix into a layout that the fast kernels can read. Most shapes need the
//! copy: every shape with an odd K, for example.
//!
//! The kernel takes the parameters of a product and reads them as a copy: C =
//! A, M×N, with B and K unused. A CTA moves a 64×64 tile through shared memory,
//! reading along A's contiguous direction and writing along C's, so that both
//! sides are coalesced (the transpose of NVIDIA's "An Efficient Matrix Transpose
//! in CUDA C/C++").

use core::marker::PhantomData;

use crate::dtype::ElementType;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

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
        ctas_per_sm: 2,
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
        use crate::isa::thread;
        use crate::order::TileGrid;
        use crate::schedule::TileScheduler;

        let grid = TileGrid::cover(params.m, params.n, SIDE, SIDE);
        let position = thread::cta_position();
        let (schedule, order) = (params.schedule, params.order);
        let mut tiles = TileScheduler::new(schedule, order, grid, params.batches(), position);
        while let Some(tile) = tiles.next() {
            let (row, col) = (tile.m * SIDE, tile.n * SIDE);
            // SAFETY: all threads run the same walk; the copies are masked where
            // the tile reaches past the edge.
            unsafe {
                if row + SIDE <= params.m && col + SIDE <= params.n {
                    device::copy_tile::<T, false>(params, tile.batch, row, col);
                } else {
                    device::copy_tile::<T, true>(params, tile.batch, row, col);
                }
            }
        }
    }
}

mod device {
    use super::{PITCH, SIDE, THREADS};
    use crate::dtype::DType;
    use crate::dtype::ElementType;
    use crate::isa::{global, shared, thread};
    use crate::problem::GemmParams;
    use crate::tensor_ref::TensorRef;
    use crate::unroll::unroll;

    /// Elements of a tile that one thread moves.
    const EACH: usize = (SIDE * SIDE / THREADS) as usize;

    /// # Safety
    /// All threads of the CTA call this; `row` and `col` are a tile's first. Without
    /// `MASKED` the whole tile is inside the matrix.
    #[inline(always)]
    pub(super) unsafe fn copy_tile<T: ElementType, const MASKED: bool>(
        params: &GemmParams,
        batch: u32,
        row: u32,
        col: u32,
    ) {
        let a = params.a.of_batch(batch, T::DTYPE);
        let copy = params.c.of_batch(batch, T::DTYPE);
        let inside = |r: u32, c: u32| !MASKED || (row + r < params.m && col + c < params.n);
        let mut bits = [0; EACH];
        // SAFETY: masked by `inside`; the barriers separate the two uses of the tile.
        unsafe {
            let from = ThreadMap::along(&a);
            unroll!(I < 16, {
                let (r, c) = from.place(I as u32);
                if inside(r, c) {
                    bits[I] = load::<T>(element::<T>(&a, row + r, col + c));
                }
            });
            unroll!(I < 16, {
                let (r, c) = from.place(I as u32);
                shared::store_u32(shared::base() + (r * PITCH + c) * 4, bits[I]);
            });
            thread::sync_cta();
            let to = ThreadMap::along(&copy);
            unroll!(I < 16, {
                let (r, c) = to.place(I as u32);
                if inside(r, c) {
                    let bits = shared::load_u32(shared::base() + (r * PITCH + c) * 4);
                    store::<T>(element::<T>(&copy, row + r, col + c), bits);
                }
            });
            thread::sync_cta();
        }
    }

    /// The elements of a tile that a thread moves: neighbouring threads go along rows, or
    /// along columns.
    struct ThreadMap {
        along_rows: bool,
    }

    impl ThreadMap {
        #[inline(always)]
        fn along(operand: &TensorRef) -> Self {
            ThreadMap {
                along_rows: operand.col_stride <= operand.row_stride,
            }
        }

        /// Row and column, in the tile, of this thread's element number `i`.
        #[inline(always)]
        fn place(&self, i: u32) -> (u32, u32) {
            let index = i * THREADS + thread::thread_index();
            let (line, offset) = (index / SIDE, index % SIDE);
            if self.along_rows {
                (line, offset)
            } else {
                (offset, line)
            }
        }
    }

    #[inline(always)]
    fn element<T: ElementType>(operand: &TensorRef, row: u32, col: u32) -> u64 {
        let index = row as u64 * operand.row_stride + col as u64 * operand.col_stride;
        operand.address + T::DTYPE.bytes() as u64 * index
    }

    /// # Safety
    /// `address` is an element of A.
    #[inline(always)]
    unsafe fn load<T: ElementType>(address: u64) -> u32 {
        // SAFETY: the caller's duty.
        unsafe {
            match T::DTYPE {
                DType::F16 | DType::Bf16 => global::load_u16(address),
                DType::F32 | DType::Tf32 | DType::F16x3 => global::load_u32(address),
            }
        }
    }

    /// # Safety
    /// `address` is an element of C.
    #[inline(always)]
    unsafe fn store<T: ElementType>(address: u64, bits: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            if T::DTYPE.bytes() == 4 {
                global::store_u32(address, bits);
            } else {
                global::store_u16(address, bits);
            }
        }
    }
}
