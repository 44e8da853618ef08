//! A tile whose lines keep their direction: each thread copies 16 bytes of a line of the copy at a
//! time, from an address that need not be a multiple of more than an element.

use super::{Piece, SIDE, THREADS, element};
use crate::dtype::ElementType;
use crate::isa::{global, thread};
use crate::unroll::unroll;

/// Bytes of a vector of the copy.
const VECTOR: u32 = 16;

impl Piece {
    /// Whether elements of a line are side by side in the matrix and in its copy, and the copy's
    /// vectors are aligned.
    #[inline(always)]
    pub(super) fn is_in_lines<T: ElementType>(&self) -> bool {
        let (from, to) = (&self.from, &self.to);
        let (rows, cols) = (
            from.col_stride == 1 && to.col_stride == 1,
            from.row_stride == 1 && to.row_stride == 1,
        );
        let pitch = if rows { to.row_stride } else { to.col_stride };
        let bytes = pitch * T::DTYPE.bytes() as u64;
        (rows || cols) && (to.address | bytes).is_multiple_of(VECTOR as u64)
    }

    /// Copies the tile without shared memory.
    ///
    /// # Safety
    /// The matrix is live, its copy has room, and [`Piece::is_in_lines`].
    #[inline(always)]
    pub(super) unsafe fn copy_lines<T: ElementType>(&self) {
        let each = VECTOR / T::DTYPE.bytes();
        let along_rows = self.from.col_stride == 1 && self.to.col_stride == 1;
        let (lines, length) = if along_rows {
            (self.rows, self.cols)
        } else {
            (self.cols, self.rows)
        };
        // 2 vectors a thread of 16-bit elements, 4 of others. All are loaded before one is stored,
        // so that their loads are in flight together.
        let mut vectors = [[0; 4]; 4];
        let place = |number: u32| {
            let index = number * THREADS + thread::thread_index();
            let (line, first) = (index / (SIDE / each), index % (SIDE / each) * each);
            let (row, col) = match along_rows {
                true => (self.row + line, self.col + first),
                false => (self.row + first, self.col + line),
            };
            let left = if line < lines {
                length.saturating_sub(first)
            } else {
                0
            };
            (row, col, left)
        };
        // SAFETY: masked to the matrix.
        unsafe {
            unroll!(NUMBER < 4, {
                if (NUMBER as u32) < SIDE * SIDE / (each * THREADS) {
                    let (row, col, left) = place(NUMBER as u32);
                    let from = element::<T>(&self.from, row, col);
                    vectors[NUMBER] = match left >= each {
                        true => load_vector::<T>(from),
                        false => load_elements::<T>(from, left),
                    };
                }
            });
            unroll!(NUMBER < 4, {
                if (NUMBER as u32) < SIDE * SIDE / (each * THREADS) {
                    let (row, col, left) = place(NUMBER as u32);
                    let to = element::<T>(&self.to, row, col);
                    match left >= each {
                        true => global::store_u32x4(to, vectors[NUMBER]),
                        false => store_elements::<T>(to, vectors[NUMBER], left),
                    }
                }
            });
        }
    }
}

/// 16 bytes from `address`, a multiple of an element's. No byte beside them is read.
///
/// # Safety
/// The bytes are readable.
#[inline(always)]
unsafe fn load_vector<T: ElementType>(address: u64) -> [u32; 4] {
    // SAFETY: the caller's duty; all loads are within the 16 bytes.
    unsafe {
        if T::DTYPE.bytes() == 4 {
            return [0, 4, 8, 12].map(|offset| global::load_u32(address + offset));
        }
        // Words, of which the first and the last are halves where the vector begins in mid-word.
        let is_split = !address.is_multiple_of(4);
        let word = address & !3;
        let first =
            global::load_u32_if(!is_split, word) | global::load_u16_if(is_split, address) << 16;
        let [second, third, fourth] = [4, 8, 12].map(|offset| global::load_u32(word + offset));
        let last = global::load_u16_if(is_split, word + 16);
        let shift = if is_split { 16 } else { 0 };
        let joined = |low: u32, high: u32| (((high as u64) << 32 | low as u64) >> shift) as u32;
        [
            joined(first, second),
            joined(second, third),
            joined(third, fourth),
            joined(fourth, last),
        ]
    }
}

/// The last `count` elements of a line, fewer than a vector has, and zeros behind them.
///
/// # Safety
/// The elements are readable.
#[inline(always)]
unsafe fn load_elements<T: ElementType>(address: u64, count: u32) -> [u32; 4] {
    let mut words = [0; 4];
    unroll!(I < 8, {
        let is_there = (I as u32) < count;
        // SAFETY: the caller's duty.
        unsafe {
            if T::DTYPE.bytes() == 2 {
                words[I / 2] |=
                    global::load_u16_if(is_there, address + 2 * I as u64) << (16 * (I % 2));
            } else if I < 4 {
                words[I] = global::load_u32_if(is_there, address + 4 * I as u64);
            }
        }
    });
    words
}

/// Stores the first `count` elements of `words`.
///
/// # Safety
/// The elements are writable.
#[inline(always)]
unsafe fn store_elements<T: ElementType>(address: u64, words: [u32; 4], count: u32) {
    unroll!(I < 8, {
        let is_there = (I as u32) < count;
        // SAFETY: the caller's duty.
        unsafe {
            if is_there && T::DTYPE.bytes() == 2 {
                global::store_u16(address + 2 * I as u64, words[I / 2] >> (16 * (I % 2)));
            } else if is_there && I < 4 {
                global::store_u32(address + 4 * I as u64, words[I]);
            }
        }
    });
}
