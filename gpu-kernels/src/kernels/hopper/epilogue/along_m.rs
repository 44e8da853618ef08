//! Staging and sending a C that is contiguous along M.
//!
//! A staged tile has 64 rows of C and, in boxes whose lines are columns of C, 64 columns of a
//! 16-bit type or 32 of f32:
//!
//! ```text
//! 16 bits                         f32
//! rows of C     0 … 63            0 … 31          32 … 63
//! column 0      line 0            line 0          line 32     128 bytes each, in the
//! column 1      line 1            line 1          line 33     128-byte swizzle
//! …
//! column 31     line 31           line 31         line 63
//! …
//! column 63     line 63
//! ```
//!
//! `stmatrix.trans` stores 16-bit elements as it stores a C along N, with rows and columns
//! exchanged. Of f32 elements, each lane stores its values one by one: a warp's store writes eight
//! elements of four lines, two lines apart, which the swizzle puts into different banks.

use super::{Fragment, Place, TileStore};
use crate::dtype::ElementType as _;
use crate::epilogue::pack_pair;
use crate::isa::hint::compute_here;
use crate::isa::{shared, tma, warpgroup};
use crate::kernels::hopper::origin::Origin;
use crate::kernels::hopper::tma_load::plane;
use crate::kernels::hopper::traits::{KernelTraits, ROW_BYTES};
use crate::problem::MapOf;

impl<K: KernelTraits> TileStore<'_, K> {
    /// Bytes of an element of a C along M.
    const BYTES: u32 = K::Element::DTYPE.bytes();

    /// Rows of C in a line.
    const LINE: u32 = ROW_BYTES / Self::BYTES;

    /// Columns of a staged tile.
    const COLUMNS: u32 = Self::LINE;

    /// Writes this lane's values of 16 columns, which are those of
    /// [`Accumulator::columns`](crate::isa::wgmma::Accumulator::columns), to their staged tile of
    /// 16-bit elements.
    ///
    /// # Safety
    /// See [`TileStore::fill`].
    #[inline(always)]
    pub(super) unsafe fn fill_along_m(&self, fragment: Fragment, place: Place, values: [f32; 8]) {
        let dtype = self.params.form.output;
        let [a, b, c, d, e, f, g, h] = values;
        // Lanes 0 to 15 of a warp address the first eight columns, lanes 16 to 31 the others; eight
        // lanes with the same chunk of eight rows make a matrix.
        let column = 16 * place.group + 8 * fragment.matrix_half + fragment.matrix_row % 8;
        let chunk = fragment.matrix_row / 8;
        // SAFETY: the caller's duty.
        unsafe {
            warpgroup::store_matrices_transposed(
                self.buffer(place.tile).chunk(column, chunk),
                [(a, b), (c, d), (e, f), (g, h)].map(|(low, high)| pack_pair(dtype, low, high)),
            );
        }
    }

    /// [`TileStore::fill_along_m`] for f32.
    ///
    /// # Safety
    /// See [`TileStore::fill`].
    #[inline(always)]
    pub(super) unsafe fn fill_along_m_wide(&self, place: Place, values: [f32; 8]) {
        let lane = compute_here(self.lane);
        let row = lane / 32 * 16 + lane % 32 / 4;
        let tile = self.buffer(place.tile);
        let address = |row: u32, column: u32| {
            let line = row / Self::LINE * Self::COLUMNS + 16 * place.group + column;
            tile.chunk(line, row % Self::LINE / 4) + row % 4 * 4
        };
        let column = 2 * (lane % 4);
        let [a, b, c, d, e, f, g, h] = values;
        // SAFETY: the caller's duty.
        unsafe {
            shared::store_f32(address(row, column), a);
            shared::store_f32(address(row, column + 1), b);
            shared::store_f32(address(row + 8, column), c);
            shared::store_f32(address(row + 8, column + 1), d);
            shared::store_f32(address(row, column + 8), e);
            shared::store_f32(address(row, column + 9), f);
            shared::store_f32(address(row + 8, column + 8), g);
            shared::store_f32(address(row + 8, column + 9), h);
        }
    }

    /// Starts the TMA stores of buffer `tile` of the batch at `origin`, which is the consumer's
    /// column `col` of C's tile.
    ///
    /// # Safety
    /// See [`TileStore::send`]: the buffer is filled, and a barrier stands before.
    #[inline(always)]
    pub(super) unsafe fn send_along_m(&self, tile: u32, origin: Origin, col: u32) {
        let plane = plane::<K>(self.params, &self.params.c, origin.batch);
        let first = tile * Self::COLUMNS;
        let is_whole = K::CONSUMER_N.is_multiple_of(Self::COLUMNS)
            || col + first + Self::COLUMNS <= K::CONSUMER_N;
        let map = self.maps.of(if is_whole {
            MapOf::C
        } else {
            MapOf::LAST_COLUMNS
        });
        let mut rows = 0;
        while rows < 64 {
            let from = self.buffer(tile).row(rows / Self::LINE * Self::COLUMNS);
            let (x, y) = (origin.row + rows, origin.col + first);
            // SAFETY: the caller's duty.
            unsafe {
                match plane {
                    None => tma::store_if(self.sends(), map, from, x, y),
                    Some(z) => tma::store_3d_if(self.sends(), map, from, (x, y, z)),
                }
            }
            rows += Self::LINE;
        }
    }
}
