//! The consumers' last step: from accumulators to C.
//!
//! C leaves in tiles of 64 rows × 128 bytes (64 columns of a 16-bit type, 32 of f32),
//! each staged in shared memory in the 128-byte swizzle:
//!
//! ```text
//! acquire   wait until earlier stores have read the buffers  (wait, barrier)
//! fill      epilogue, convert, stmatrix or 8-byte stores     (all lanes)
//! send      one thread starts TMA stores, or all copy        (barrier before)
//! ```
//!
//! A 16-bit C leaves in batches of `TileStore::BATCH` tiles, an f32 C tile by tile. The
//! buffers alternate, also from one tile of C to the next, so that one batch is filled
//! while the TMA stores of the batch before it are still in flight. The tensor cores idle
//! while both consumers of a cooperative kernel are in the epilogue, so its length counts:
//! with buffers for a whole row of tiles no consumer waits for the copy engine.
//!
//! Where a cluster splits K, each warp acquires, fills and sends its 16 rows by itself,
//! because some warps of its warpgroup have no rows to store.

use core::marker::PhantomData;

use super::pipeline::Consumer;
use super::shared_memory::{SharedMemory, StagedTile, Staging};
use super::traits::{Accumulators, KernelTraits, Origin};
use crate::epilogue::{Epilogue, pack_pair};
use crate::isa::hint::{compute_here, compute_here_u64};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{global, shared, thread, tma, warpgroup};
use crate::kernel::Cluster;
use crate::problem::{GemmParams, MapAddress, MapOf};
use crate::unroll::unroll;

/// Rows of C that one TMA store writes: the 64 rows of a warpgroup, or the 16 rows of a
/// warp where the CTAs of a cluster split K and each CTA stores the rows of some warps.
pub const fn store_rows(cluster: Cluster) -> u32 {
    if cluster.k > 1 { 16 } else { 64 }
}

/// Stores the rows of one consumer warpgroup.
pub struct TileStore<'a, K: KernelTraits> {
    params: &'a GemmParams,
    maps: MapAddress,
    /// Index of the thread in its warpgroup.
    lane: u32,
    /// The named barrier of the warpgroup.
    barrier: u32,
    staging: Staging,
    /// Index of the first buffer of the batch to fill.
    first: u32,
    kernel: PhantomData<K>,
}

impl<'a, K: KernelTraits> TileStore<'a, K> {
    /// Whether warps store by themselves.
    const BY_WARP: bool = store_rows(K::CLUSTER) == 16;

    /// Buffers that a consumer has.
    const BUFFERS: u32 = SharedMemory::<K>::STAGING_TILES;

    /// Tiles of a 16-bit C that are filled and sent together, so that they share one
    /// barrier and one fence: a row of tiles where there is room, else half a row.
    const BATCH: u32 = {
        let row = K::BLOCK_N / 64;
        if Self::BUFFERS.is_multiple_of(row) {
            row
        } else if 2 * Self::BUFFERS == row {
            Self::BUFFERS
        } else {
            1
        }
    };

    /// The store of `consumer`.
    #[inline(always)]
    pub fn new(
        params: &'a GemmParams,
        maps: MapAddress,
        smem: SharedMemory<K>,
        consumer: Consumer,
    ) -> Self {
        TileStore {
            params,
            maps,
            lane: consumer.lane,
            barrier: consumer.barrier(),
            staging: smem.staging(consumer.index),
            first: 0,
            kernel: PhantomData,
        }
    }

    /// Stores a consumer's rows of a tile of C, from `row` and `col` on; where a cluster
    /// splits K, each warp stores its 16 of the 64 rows.
    ///
    /// # Safety
    /// The accumulators are finished; the whole warpgroup calls this together, or the
    /// whole warp where a cluster splits K.
    #[inline(always)]
    pub unsafe fn tile(&mut self, accumulators: &Accumulators<K>, origin: Origin) {
        // SAFETY: the caller's duty.
        unsafe {
            self.m64_tile(&accumulators[0], origin);
            if K::M64_TILES > 1 {
                self.m64_tile(&accumulators[1], origin.down(64));
            }
        }
    }

    /// Waits until no copy reads shared memory any more.
    #[inline(always)]
    pub fn finish(&self) {
        tma::wait_stores_if(self.sends());
    }

    /// # Safety
    /// See [`TileStore::tile`].
    #[inline(always)]
    unsafe fn m64_tile(
        &mut self,
        accumulator: &K::Accumulator,
        Origin { row, col, batch }: Origin,
    ) {
        let _ = batch;
        // The addresses of a lane's part of a tile are computed anew for each tile: kept
        // from tile to tile, they would take up to 34 registers from the main loop.
        let lane = compute_here(self.lane);
        // SAFETY: the caller's duty.
        unsafe {
            if K::STORES_BY_TMA_ONLY || self.params.form.output.bytes() == 2 {
                self.store_16_bit(accumulator, lane, row, col)
            } else {
                self.store_32_bit(accumulator, lane, row, col)
            }
        }
    }

    /// C of a 16-bit type: tiles of 64 columns, four groups of 16 each.
    ///
    /// # Safety
    /// See [`TileStore::tile`].
    #[inline(always)]
    unsafe fn store_16_bit(&mut self, accumulator: &K::Accumulator, lane: u32, row: u32, col: u32) {
        // Lane l of a warp addresses row l % 16 of the warp's 16 rows. In each group of 16
        // columns, lanes 0..16 address the first chunk of 8 and lanes 16..32 the second.
        let (staged_row, half) = (lane / 32 * 16 + lane % 16, lane % 32 / 16);
        // SAFETY: acquired before it is filled, sent when it is full.
        unsafe {
            unroll!(TILE < 4, {
                let tile = TILE as u32;
                let buffer = tile % Self::BATCH;
                if tile < K::BLOCK_N / 64 {
                    if buffer == 0 {
                        self.acquire(Self::BATCH);
                    }
                    unroll!(GROUP < 4, {
                        let group = GROUP as u32;
                        let values = accumulator.columns(4 * TILE + GROUP);
                        let values = self.apply(values, lane, row, col + 64 * tile + 16 * group);
                        warpgroup::store_matrices(
                            self.buffer(buffer).chunk(staged_row, 2 * group + half),
                            values.map(|[x, y]| pack_pair(self.params.form.output, x, y)),
                        );
                    });
                    if buffer == Self::BATCH - 1 {
                        let col = col + (tile - buffer) * 64;
                        self.send(Self::BATCH, row, col, 2);
                    }
                }
            });
        }
    }

    /// C of f32: tiles of 32 columns, two groups of 16 each.
    ///
    /// # Safety
    /// See [`TileStore::tile`].
    #[inline(always)]
    unsafe fn store_32_bit(&mut self, accumulator: &K::Accumulator, lane: u32, row: u32, col: u32) {
        unroll!(TILE < 8, {
            if (TILE as u32) < K::BLOCK_N / 32 {
                let col = col + 32 * TILE as u32;
                // SAFETY: acquired before it is filled, sent when it is full.
                unsafe {
                    self.acquire(1);
                    unroll!(GROUP < 2, {
                        let values = accumulator.columns(2 * TILE + GROUP);
                        let col = col + 16 * GROUP as u32;
                        let [ab, cd, ef, gh] = self.apply(values, lane, row, col);
                        // Columns 2·(l % 4) of a group of 16 are half a chunk; eight
                        // columns further is the same half, two chunks on.
                        let staged_row = lane / 32 * 16 + lane % 32 / 4;
                        let chunk = GROUP as u32 * 4 + lane % 4 / 2;
                        let half = lane % 2 * 8;
                        let tile = self.buffer(0);
                        shared::store_f32x2(tile.chunk(staged_row, chunk) + half, ab);
                        shared::store_f32x2(tile.chunk(staged_row + 8, chunk) + half, cd);
                        shared::store_f32x2(tile.chunk(staged_row, chunk + 2) + half, ef);
                        shared::store_f32x2(tile.chunk(staged_row + 8, chunk + 2) + half, gh);
                    });
                    self.send(1, row, col, 4);
                }
            }
        });
    }

    /// Applies the epilogue to this lane's values of 16 columns, from `col` on, of the m64
    /// tile at `row`. The values are pairs of neighbouring columns: one pair in each of two
    /// rows eight apart, then the same two rows eight columns further
    /// ([`wgmma::Accumulator::columns`](crate::isa::wgmma)).
    #[inline(always)]
    fn apply(&self, values: [f32; 8], lane: u32, row: u32, col: u32) -> [[f32; 2]; 4] {
        let [a, b, c, d, e, f, g, h] = values;
        let row = row + lane / 32 * 16 + lane % 32 / 4;
        let col = col + lane % 4 * 2;
        let epilogue = Epilogue::new(self.params, 0);
        // SAFETY: the caller's duty.
        unsafe {
            [
                epilogue.apply([a, b], row, col),
                epilogue.apply([c, d], row + 8, col),
                epilogue.apply([e, f], row, col + 8),
                epilogue.apply([g, h], row + 8, col + 8),
            ]
        }
    }

    /// Waits until the copy engine has read the last contents of the next `batch` buffers.
    ///
    /// # Safety
    /// All threads that [`TileStore::sync`] together call this.
    #[inline(always)]
    unsafe fn acquire(&self, batch: u32) {
        // The stores of the other batches may still be in flight.
        match Self::BUFFERS / batch {
            1 => tma::wait_stores_read_if::<0>(self.sends()),
            2 => tma::wait_stores_read_if::<1>(self.sends()),
            3 => tma::wait_stores_read_if::<2>(self.sends()),
            _ => tma::wait_stores_read_if::<3>(self.sends()),
        }
        // SAFETY: the caller's duty.
        unsafe { self.sync() };
    }

    /// Sends the filled batch to C(row.., col..), and goes on to the next one.
    ///
    /// # Safety
    /// All threads that [`TileStore::sync`] together call this; each has filled its part.
    #[inline(always)]
    unsafe fn send(&mut self, batch: u32, row: u32, col: u32, bytes: u32) {
        let width = 128 / bytes;
        // SAFETY: all threads have written their part before the barrier.
        unsafe {
            if K::STORES_BY_TMA_ONLY || self.params.store_by_tma != 0 {
                tma::fence_shared();
                self.sync();
                let map = self.maps.of(MapOf::C);
                let first_row = self.first_row();
                let mut tile = 0;
                while tile < batch {
                    let source = self.buffer(tile).row(first_row);
                    let col = col + tile * width;
                    tma::store_if(self.sends(), map, source, col, row + first_row);
                    tile += 1;
                }
                tma::commit_stores_if(self.sends());
            } else {
                self.sync();
                let mut tile = 0;
                while tile < batch {
                    self.copy(tile, row, col + tile * width, bytes);
                    tile += 1;
                }
            }
        }
        self.first += batch;
        if self.first == Self::BUFFERS {
            self.first = 0;
        }
    }

    /// Copies buffer `tile` of the batch to C element by element, for any strides and any
    /// edge. A warp copies 16 rows, one 128-byte row at a time.
    ///
    /// # Safety
    /// A barrier separates the last write to the buffer from this call.
    #[inline(always)]
    unsafe fn copy(&self, tile: u32, row: u32, col: u32, bytes: u32) {
        let c = &self.params.c;
        // Without `compute_here` LLVM would compute the lane and the strides once, before
        // the main loop, which has no registers to keep them in.
        let lane = compute_here(self.lane);
        let (first, word) = (lane / 32 * 16, lane % 32);
        let col = col + word * 4 / bytes;
        let start = c.address + bytes as u64 * (col as u64 * c.col_stride);
        let pitch = bytes as u64 * compute_here_u64(c.row_stride);
        let step = 2 * compute_here_u64(c.col_stride);
        // Two 16-bit elements are stored as one word where that access is aligned.
        let packed = step == 2 && (c.address | pitch) & 3 == 0;
        let mut i = first;
        while i < first + 16 && row + i < self.params.m {
            let address = start + (row + i) as u64 * pitch;
            // SAFETY: masked to the rows and columns of C.
            unsafe {
                let staged = self.buffer(tile).chunk(i, word / 4) + word % 4 * 4;
                let value = shared::load_u32(staged);
                if bytes == 4 {
                    if col < self.params.n {
                        global::store_u32(address, value);
                    }
                } else if packed && col + 1 < self.params.n {
                    global::store_u32(address, value);
                } else {
                    if col < self.params.n {
                        global::store_u16(address, value & 0xffff);
                    }
                    if col + 1 < self.params.n {
                        global::store_u16(address + step, value >> 16);
                    }
                }
            }
            i += 1;
        }
    }

    /// Buffer `tile` of the batch.
    #[inline(always)]
    fn buffer(&self, tile: u32) -> StagedTile {
        self.staging.tile(self.first + tile)
    }

    /// First row, of a tile's 64, of the TMA store that this thread takes part in.
    #[inline(always)]
    fn first_row(&self) -> u32 {
        if Self::BY_WARP {
            self.lane / 32 * 16
        } else {
            0
        }
    }

    /// Whether this thread starts the TMA stores for all threads of its
    /// [`TileStore::sync`]. Computed each time: kept, it would take a register from the
    /// main loop.
    #[inline(always)]
    fn sends(&self) -> bool {
        compute_here(self.lane).is_multiple_of(if Self::BY_WARP { 32 } else { WARPGROUP })
    }

    /// A barrier of the threads whose rows one TMA store writes: a warpgroup, or a warp
    /// where a cluster splits K.
    ///
    /// # Safety
    /// All of these threads call this.
    #[inline(always)]
    unsafe fn sync(&self) {
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

const _: () = assert!(WARPGROUP == 128, "four warps of 16 rows fill a tile");
