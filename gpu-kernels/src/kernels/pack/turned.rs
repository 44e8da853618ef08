//! A tile by way of shared memory, from lines in one direction to lines in the other.

use super::{PITCH, Piece, SIDE, THREADS, element};
use crate::dtype::{DType, ElementType};
use crate::isa::{global, shared, thread};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Elements of a tile that one thread moves.
const EACH: usize = (SIDE * SIDE / THREADS) as usize;

impl Piece {
    /// Copies the tile through shared memory. Without `MASKED` all of it is inside the matrix.
    ///
    /// # Safety
    /// All threads of the CTA call this; the matrix is live, and its copy has room.
    #[inline(always)]
    pub(super) unsafe fn turn<T: ElementType, const MASKED: bool>(&self) {
        let inside = |r: u32, c: u32| !MASKED || (r < self.rows && c < self.cols);
        // With masks, 16 loads in flight take a register more than there are for four CTAs an SM.
        let batch = if MASKED { EACH / 2 } else { EACH };
        // SAFETY: masked by `inside`; the barrier separates the stores to the tile from the loads.
        unsafe {
            let from = ThreadMap::along(&self.from);
            let mut first = 0;
            while first < EACH {
                let mut bits = [0; EACH];
                unroll!(I < 16, {
                    let (r, c) = from.place((first + I) as u32);
                    if I < batch && inside(r, c) {
                        bits[I] = load::<T>(element::<T>(&self.from, self.row + r, self.col + c));
                    }
                });
                unroll!(I < 16, {
                    if I < batch {
                        let (r, c) = from.place((first + I) as u32);
                        shared::store_u32(shared::base() + (r * PITCH + c) * 4, bits[I]);
                    }
                });
                first += batch;
            }
            thread::sync_cta();
            let to = ThreadMap::along(&self.to);
            unroll!(I < 16, {
                let (r, c) = to.place(I as u32);
                if inside(r, c) {
                    let bits = shared::load_u32(shared::base() + (r * PITCH + c) * 4);
                    store::<T>(element::<T>(&self.to, self.row + r, self.col + c), bits);
                }
            });
        }
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

/// # Safety
/// `address` is an element of the matrix.
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
/// `address` is an element of the copy.
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
