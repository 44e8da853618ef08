//! Staging and sending a C that is contiguous along M, in f32.
//!
//! A staged tile has 64 rows and 32 columns of C, as for a C along N, but in two boxes of 32 × 32,
//! whose lines are columns of C:
//!
//! ```text
//! rows of C     0 … 31          32 … 63
//! column 0      line 0          line 32       128 bytes each, in the 128-byte swizzle
//! column 1      line 1          line 33
//! …
//! column 31     line 31         line 63
//! ```
//!
//! Each lane stores its values one by one. A warp's store writes eight elements of four lines,
//! two lines apart: the swizzle puts these into different banks.

use super::{Place, STORE_COLUMNS, TileStore};
use crate::isa::hint::compute_here;
use crate::isa::{shared, tma};
use crate::kernels::hopper::traits::{KernelTraits, Origin, ROW_BYTES};
use crate::problem::MapOf;

/// Rows of C in a line.
const LINE: u32 = ROW_BYTES / 4;

impl<K: KernelTraits> TileStore<'_, K> {
    /// Writes this lane's values of 16 columns, which are those of
    /// [`Accumulator::columns`](crate::isa::wgmma::Accumulator::columns), to their staged tile.
    ///
    /// # Safety
    /// See [`TileStore::fill`].
    #[inline(always)]
    pub(super) unsafe fn fill_along_m(&self, place: Place, values: [f32; 8]) {
        let lane = compute_here(self.lane);
        let row = lane / 32 * 16 + lane % 32 / 4;
        let tile = self.buffer(place.tile);
        let address = |row: u32, column: u32| {
            let line = row / LINE * STORE_COLUMNS + 16 * place.group + column;
            tile.chunk(line, row % LINE / 4) + row % 4 * 4
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

    /// Starts the TMA stores of buffer `tile` of the batch to C(origin..).
    ///
    /// # Safety
    /// See [`TileStore::send`]: the buffer is filled, and a barrier stands before.
    #[inline(always)]
    pub(super) unsafe fn send_along_m(&self, tile: u32, origin: Origin) {
        let map = self.maps.of(MapOf::C);
        let column = origin.col + tile * STORE_COLUMNS;
        let buffer = self.buffer(tile);
        // SAFETY: the caller's duty.
        unsafe {
            tma::store_if(self.sends(), map, buffer.row(0), origin.row, column);
            let from = buffer.row(STORE_COLUMNS);
            tma::store_if(self.sends(), map, from, origin.row + LINE, column);
        }
    }
}
