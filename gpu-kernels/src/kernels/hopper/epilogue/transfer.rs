//! Between the staged tiles and global memory: TMA stores and loads, and copies element by
//! element where TMA cannot.

use super::TileStore;
use crate::isa::hint::compute_here_u64;
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{global, shared, thread, tma, warpgroup};
use crate::kernels::hopper::origin::Origin;
use crate::kernels::hopper::shared_memory::M64_TILE_BYTES;
use crate::kernels::hopper::tma_load::{is_gated, plane};
use crate::kernels::hopper::traits::KernelTraits;
use crate::problem::MapOf;
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

impl<K: KernelTraits> TileStore<'_, K> {
    /// Waits until the next `batch` buffers are free or, where there is a source, hold the
    /// source of C(origin..). `prepared`: its load is on the way.
    ///
    /// # Safety
    /// All threads that [`TileStore::sync`] together call this.
    #[inline(always)]
    pub(super) unsafe fn begin(&mut self, batch: u32, origin: Origin, prepared: bool) {
        // SAFETY: the caller's duty.
        unsafe {
            if self.source_by_tma() {
                if !prepared {
                    self.load_source(origin);
                }
                self.landed.wait(self.parity);
                self.parity ^= 1;
                return;
            }
            self.wait_read(batch);
            self.sync();
            if self.has_source() {
                let mut tile = 0;
                while tile < batch {
                    self.copy(tile, origin, Transfer::FromSource);
                    tile += 1;
                }
                self.sync();
            }
        }
    }

    /// Starts the TMA loads of the source of C(origin..) into the next batch of buffers.
    ///
    /// # Safety
    /// See [`TileStore::begin`].
    #[inline(always)]
    pub(super) unsafe fn load_source(&self, origin: Origin) {
        let batch = self.batch();
        let sends = self.sends();
        let source = &self.params.epilogue.source;
        let plane = plane::<K>(self.params, source, origin.batch);
        let bytes = self.params.form.output.bytes();
        self.wait_read(batch);
        // SAFETY: the buffers are free: the thread that waits is the one that loads, and all
        // threads have read and written their parts before the barrier of the last `send`.
        unsafe {
            let landing = batch * M64_TILE_BYTES;
            self.landed.arrive_expecting_if(sends, landing);
            let mut tile = 0;
            while tile < batch {
                let to = self.buffer(tile).row(0);
                let at = (origin.col + tile * (128 / bytes), origin.row);
                let map = self.maps.of(MapOf::Source);
                tma::load_if(sends, to, map, at, plane, self.landed.address());
                tile += 1;
            }
        }
    }

    /// Waits, in the thread that sends, until the copy engine has read the last contents of
    /// the next `batch` buffers. The stores of the other batches may still be in flight.
    #[inline(always)]
    pub(super) fn wait_read(&self, batch: u32) {
        match Self::BUFFERS / batch {
            1 => tma::wait_stores_read_if::<0>(self.sends()),
            2 => tma::wait_stores_read_if::<1>(self.sends()),
            3 => tma::wait_stores_read_if::<2>(self.sends()),
            _ => tma::wait_stores_read_if::<3>(self.sends()),
        }
    }

    /// Sends the filled batch to C(origin..), and goes on to the next one. `col` is the first
    /// column of the batch, counted from the consumer's first column of C's tile.
    ///
    /// # Safety
    /// All threads that [`TileStore::sync`] together call this; each has filled its part.
    #[inline(always)]
    pub(super) unsafe fn send(&mut self, batch: u32, origin: Origin, col: u32) {
        // SAFETY: all threads have written their part before the barrier.
        unsafe {
            if K::STORES_BY_TMA_ONLY || self.params.store_by_tma != 0 {
                tma::fence_shared();
                self.sync();
                let mut tile = 0;
                while tile < batch {
                    if K::C_ALONG_M {
                        self.send_along_m(tile, origin, col);
                    } else {
                        self.send_along_n(tile, origin, col);
                    }
                    tile += 1;
                }
                tma::commit_stores_if(self.sends());
            } else {
                self.sync();
                let mut tile = 0;
                while tile < batch {
                    self.copy(tile, origin, Transfer::ToC);
                    tile += 1;
                }
            }
        }
        self.first += batch;
        if self.first == Self::BUFFERS {
            self.first = 0;
        }
    }

    /// Starts the TMA store of buffer `tile` of the batch at `origin`, which is the consumer's
    /// column `col` of C's tile.
    ///
    /// # Safety
    /// See [`TileStore::send`]: the buffer is filled, and a barrier stands before.
    #[inline(always)]
    unsafe fn send_along_n(&self, tile: u32, origin: Origin, col: u32) {
        let plane = plane::<K>(self.params, &self.params.c, origin.batch);
        let width = if self.is_wide() { 32 } else { 64 };
        let first_row = self.first_row();
        let from = self.buffer(tile).row(first_row);
        let (x, y) = (origin.col + tile * width, origin.row + first_row);
        let is_whole = K::CONSUMER_N.is_multiple_of(64) || col + (tile + 1) * 64 <= K::CONSUMER_N;
        let map = self.maps.of(if is_whole {
            MapOf::C
        } else {
            MapOf::LAST_COLUMNS
        });
        // SAFETY: the caller's duty.
        unsafe {
            match plane {
                None => tma::store_if(self.sends(), map, from, x, y),
                Some(z) => tma::store_3d_if(self.sends(), map, from, (x, y, z)),
            }
        }
    }

    /// Copies buffer `tile` of the batch at `origin` to C, or from the source, element by
    /// element, for any strides and any edge. A warp copies 16 rows, one 128-byte row at a
    /// time.
    ///
    /// # Safety
    /// See [`TileStore::send`]; a barrier separates this from other uses of the buffer.
    #[inline(always)]
    unsafe fn copy(&self, tile: u32, origin: Origin, transfer: Transfer) {
        let dtype = self.params.form.output;
        let bytes = if self.is_wide() { 4 } else { 2 };
        let matrix: TensorRef = match transfer {
            Transfer::ToC => self.params.c,
            Transfer::FromSource => self.params.epilogue.source,
        };
        let matrix = matrix.of_batch(origin.batch, dtype);
        let cols = if is_gated::<K>(self.params) {
            self.params.n / 2
        } else {
            self.params.n
        };
        // Without `compute_here` LLVM would compute the lane and the strides once, before
        // the main loop, which has no registers to keep them in.
        let lane = self.lane_here();
        let (first, word) = (lane / 32 * 16, lane % 32);
        let col = origin.col + tile * (128 / bytes) + word * 4 / bytes;
        let start = matrix.address + bytes as u64 * (col as u64 * matrix.col_stride);
        let pitch = bytes as u64 * compute_here_u64(matrix.row_stride);
        let step = 2 * compute_here_u64(matrix.col_stride);
        // Two 16-bit elements are copied as one word where that access is aligned.
        let packed = step == 2 && (matrix.address | pitch) & 3 == 0;
        let whole = bytes == 4 || packed && col + 1 < cols;
        let word_exists = whole && col < cols;
        let (low_exists, high_exists) = (!whole && col < cols, !whole && col + 1 < cols);
        // Four rows at a time, so that their loads do not wait for each other.
        let mut i = first;
        // Rows past the last have a source of zeros, as columns past the last do.
        let is_source = matches!(transfer, Transfer::FromSource);
        while i < first + 16 && (is_source || origin.row + i < self.params.m) {
            let staged = |row: u32| self.buffer(tile).chunk(i + row, word / 4) + word % 4 * 4;
            let address = start + (origin.row + i) as u64 * pitch;
            let mut words = [0; 4];
            unroll!(ROW < 4, {
                let row = ROW as u32;
                let is_row = origin.row + i + row < self.params.m;
                let address = address + row as u64 * pitch;
                // SAFETY: masked to the rows and columns of the matrix.
                words[ROW] = unsafe {
                    match transfer {
                        Transfer::FromSource => {
                            let [low, high] =
                                [(low_exists, address), (high_exists, address + step)].map(
                                    |(exists, address)| {
                                        global::load_written_u16_if(is_row && exists, address)
                                    },
                                );
                            let word = global::load_written_u32_if(is_row && word_exists, address);
                            word | low | high << 16
                        }
                        Transfer::ToC => shared::load_u32(staged(row)),
                    }
                };
            });
            unroll!(ROW < 4, {
                let (row, word) = (ROW as u32, words[ROW]);
                let is_row = origin.row + i + row < self.params.m;
                let address = address + row as u64 * pitch;
                // SAFETY: as above.
                unsafe {
                    match transfer {
                        Transfer::FromSource => shared::store_u32(staged(row), word),
                        Transfer::ToC => {
                            global::store_u32_if(is_row && word_exists, address, word);
                            global::store_u16_if(is_row && low_exists, address, word & 0xffff);
                            global::store_u16_if(is_row && high_exists, address + step, word >> 16);
                        }
                    }
                }
            });
            i += 4;
        }
    }

    /// First row, of a tile's 64, of the TMA store that this thread takes part in.
    #[inline(always)]
    pub(super) fn first_row(&self) -> u32 {
        if Self::BY_WARP {
            self.lane / 32 * 16
        } else {
            0
        }
    }

    /// Whether this thread starts the TMA copies for all threads of its
    /// [`TileStore::sync`]. Computed each time: kept, it would take a register from the
    /// main loop.
    #[inline(always)]
    pub(super) fn sends(&self) -> bool {
        self.lane_here()
            .is_multiple_of(if Self::BY_WARP { 32 } else { WARPGROUP })
    }

    /// A barrier of the threads whose rows one TMA store writes: a warpgroup, or a warp
    /// where a cluster splits K.
    ///
    /// # Safety
    /// All of these threads call this.
    #[inline(always)]
    pub(super) unsafe fn sync(&self) {
        // SAFETY: the caller's duty.
        unsafe {
            if Self::BY_WARP {
                thread::sync_warp();
            } else {
                warpgroup::sync(self.barrier);
            }
        }
    }
}

/// The direction of [`TileStore::copy`].
#[derive(Clone, Copy)]
enum Transfer {
    /// Staged tiles to C.
    ToC,
    /// The source to staged tiles.
    FromSource,
}
