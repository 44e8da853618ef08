//! The consumers' last step: from accumulators to C.
//!
//! C leaves in slabs of 64 rows × 128 bytes (64 columns of a 16-bit type, 32 of
//! f32), each staged in shared memory in the 128-byte swizzle:
//!
//! ```text
//! take      what was last in these buffers has been read     (wait, barrier)
//! fill      convert, stmatrix or 8-byte stores               (all lanes)
//! send      one thread starts TMA stores, or all copy        (barrier before)
//! ```
//!
//! A 16-bit C goes in batches of [`Shape::BATCH`] slabs, f32 slab by slab. The
//! buffers take turns, also from one tile to the next, so that one batch is
//! filled while the one before it is still on its way. While both consumers do
//! this the tensor cores wait, so its length counts: with buffers for a whole
//! row of slabs no consumer waits for the copy engine.
//!
//! Where a cluster splits K, each warp takes, fills and sends its 16 rows by
//! itself: some of its warpgroup have none to store.

use core::marker::PhantomData;

use super::device::Slab;
use super::{ROW_BYTES, SLAB_BYTES, Shape, WARPGROUP, store_rows};
use crate::element::Element;
use crate::epilogue::pack;
use crate::isa::hint::{compute_here, compute_here_u64};
use crate::isa::wgmma::{Accumulator, VisitColumns};
use crate::isa::{global, shared, thread, tma, warpgroup};
use crate::problem::{GemmParams, OutputType};

/// Stores the rows of one consumer warpgroup.
pub(super) struct SlabStore<'a, S> {
    params: &'a GemmParams,
    /// Index of the thread in its warpgroup.
    lane: u32,
    /// The named barrier of the warpgroup.
    barrier: u32,
    /// Shared address of this consumer's buffers.
    staging: u32,
    /// Index of the first buffer of the batch to fill.
    first: u32,
    shape: PhantomData<S>,
}

impl<'a, S: Shape> SlabStore<'a, S> {
    /// Whether warps store by themselves.
    const BY_WARP: bool = store_rows(S::CLUSTER) == 16;

    /// `staging` is the shared address of all consumers' buffers.
    #[inline(always)]
    pub(super) fn new(params: &'a GemmParams, consumer: u32, lane: u32, staging: u32) -> Self {
        SlabStore {
            params,
            lane,
            barrier: 1 + consumer,
            staging: staging + consumer * (S::STAGING_SLABS * SLAB_BYTES),
            first: 0,
            shape: PhantomData,
        }
    }

    /// The named barrier of the warpgroup.
    #[inline(always)]
    pub(super) fn barrier(&self) -> u32 {
        self.barrier
    }

    /// Whether this thread starts stores, for those it [`sync`]s with. Found anew each
    /// time: kept, it would take a register from the main loop.
    #[inline(always)]
    fn sends(&self) -> bool {
        compute_here(self.lane).is_multiple_of(if Self::BY_WARP { 32 } else { WARPGROUP })
    }

    /// Stores 64 rows of C from `row`, as many columns as `sums` has from `col`;
    /// where a cluster splits K, those 16 of the 64 that are the warp's.
    ///
    /// # Safety
    /// The accumulator is finished; the warpgroup is together, or the warp.
    #[inline(always)]
    pub(super) unsafe fn rows(&mut self, sums: &Slab<S>, row: u32, col: u32) {
        // Where a lane's part of a slab stands is found anew for each tile: found once
        // and for all, it would take up to 34 registers from the main loop.
        let lane = compute_here(self.lane);
        // SAFETY: the caller's duty.
        unsafe {
            match self.params.output {
                _ if S::STORES_BY_TMA_ONLY => sums.columns(&mut Narrow {
                    store: self,
                    lane,
                    row,
                    col,
                }),
                OutputType::Input if S::Element::DTYPE.bytes() == 2 => sums.columns(&mut Narrow {
                    store: self,
                    lane,
                    row,
                    col,
                }),
                _ => sums.columns(&mut Wide {
                    store: self,
                    lane,
                    row,
                    col,
                }),
            }
        }
    }

    /// Waits until no copy reads shared memory any more.
    #[inline(always)]
    pub(super) fn finish(&self) {
        tma::wait_stores_if(self.sends());
    }

    /// First of the rows that this thread helps to store at once, of a slab's 64.
    #[inline(always)]
    fn first_row(&self) -> u32 {
        if Self::BY_WARP {
            self.lane / 32 * 16
        } else {
            0
        }
    }

    /// Waits until the copy engine has read what was in the next `batch` buffers.
    ///
    /// # Safety
    /// By all threads that [`sync`] together.
    #[inline(always)]
    unsafe fn take(&self, batch: u32) {
        // SAFETY: the warpgroup is together.
        unsafe {
            // The other batches may still be on their way.
            match S::STAGING_SLABS / batch {
                1 => tma::wait_stores_read_if::<0>(self.sends()),
                2 => tma::wait_stores_read_if::<1>(self.sends()),
                3 => tma::wait_stores_read_if::<2>(self.sends()),
                _ => tma::wait_stores_read_if::<3>(self.sends()),
            }
            sync::<S>(self.barrier);
        }
    }

    /// Shared address of buffer `slab` of the batch.
    #[inline(always)]
    fn buffer(&self, slab: u32) -> u32 {
        self.staging + (self.first + slab) * SLAB_BYTES
    }

    /// Shared address of 16-byte chunk `chunk` (of 8) in row `row` (of 64) of
    /// buffer `slab`: the 128-byte swizzle XORs the chunk with the row.
    #[inline(always)]
    fn chunk(&self, slab: u32, row: u32, chunk: u32) -> u32 {
        self.buffer(slab) + row * 128 + ((chunk ^ (row % 8)) * 16)
    }

    /// Sends the filled batch to C(row.., col..), and turns to the next one.
    ///
    /// # Safety
    /// By all threads that [`sync`] together; each has filled its part.
    #[inline(always)]
    unsafe fn send(&mut self, batch: u32, row: u32, col: u32, bytes: u32) {
        let width = 128 / bytes;
        // SAFETY: all have written their part before the barrier.
        unsafe {
            if S::STORES_BY_TMA_ONLY || self.params.store_by_tma != 0 {
                tma::fence_shared();
                sync::<S>(self.barrier);
                let map = self.params.tensor_map(2);
                let first = self.first_row();
                let mut slab = 0;
                while slab < batch {
                    let box_of_c = self.buffer(slab) + first * ROW_BYTES;
                    let column = col + slab * width;
                    tma::store_if(self.sends(), map, box_of_c, column, row + first);
                    slab += 1;
                }
                tma::commit_stores_if(self.sends());
            } else {
                sync::<S>(self.barrier);
                let mut slab = 0;
                while slab < batch {
                    self.copy(slab, row, col + slab * width, bytes);
                    slab += 1;
                }
            }
        }
        self.first += batch;
        if self.first == S::STAGING_SLABS {
            self.first = 0;
        }
    }

    /// Copies buffer `slab` to C element by element: any strides, any edge. A warp
    /// copies 16 rows, one 128-byte row at a time.
    ///
    /// # Safety
    /// After a barrier that follows the last write to the buffer.
    #[inline(always)]
    unsafe fn copy(&self, slab: u32, row: u32, col: u32, bytes: u32) {
        let c = &self.params.c;
        // Here, or this and the strides would be computed once and for all before the
        // main loop, which has no registers to keep them in.
        let lane = compute_here(self.lane);
        let (first, word) = (lane / 32 * 16, lane % 32);
        let col = col + word * 4 / bytes;
        let start = c.address + bytes as u64 * (col as u64 * c.col_stride);
        let pitch = bytes as u64 * compute_here_u64(c.row_stride);
        let step = 2 * compute_here_u64(c.col_stride);
        // Two 16-bit elements as one word, where that is an aligned access.
        let packed = step == 2 && (c.address | pitch) & 3 == 0;
        let mut i = first;
        while i < first + 16 && row + i < self.params.m {
            let address = start + (row + i) as u64 * pitch;
            // SAFETY: masked to the rows and columns of C.
            unsafe {
                let value = shared::load_u32(self.chunk(slab, i, word / 4) + word % 4 * 4);
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
}

/// A barrier of the threads whose rows one TMA store writes: a warpgroup, or a
/// warp where a cluster splits K.
///
/// # Safety
/// By all of them; `barrier` is the warpgroup's.
#[inline(always)]
unsafe fn sync<S: Shape>(barrier: u32) {
    // SAFETY: the caller's duty.
    unsafe {
        if SlabStore::<S>::BY_WARP {
            thread::sync_warp();
        } else {
            warpgroup::sync(barrier);
        }
    }
}

/// Fills slabs of a 16-bit type: 64 columns, four groups of 16.
struct Narrow<'s, 'a, S> {
    store: &'s mut SlabStore<'a, S>,
    lane: u32,
    row: u32,
    col: u32,
}

impl<S: Shape> VisitColumns for Narrow<'_, '_, S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        let lane = self.lane;
        // SAFETY: taken before it is filled, sent when it is full.
        unsafe {
            let slab = group / 4 % S::BATCH;
            if group.is_multiple_of(4 * S::BATCH) {
                self.store.take(S::BATCH);
            }
            // Lane l of a warp addresses row l % 16 of the warp's 16, and the
            // chunk of 8 columns that its half of the lanes stands for.
            let row = lane / 32 * 16 + lane % 16;
            let chunk = group % 4 * 2 + lane % 32 / 16;
            warpgroup::store_matrices(
                self.store.chunk(slab, row, chunk),
                [
                    pack::<S::Element>(a, b),
                    pack::<S::Element>(c, d),
                    pack::<S::Element>(e, f),
                    pack::<S::Element>(g, h),
                ],
            );
            if (group + 1).is_multiple_of(4 * S::BATCH) {
                let col = self.col + (group + 1 - 4 * S::BATCH) * 16;
                self.store
                    .send(S::BATCH, self.row, col, S::Element::DTYPE.bytes());
            }
        }
    }
}

/// Fills slabs of f32: 32 columns, two groups of 16.
struct Wide<'s, 'a, S> {
    store: &'s mut SlabStore<'a, S>,
    lane: u32,
    row: u32,
    col: u32,
}

impl<S: Shape> VisitColumns for Wide<'_, '_, S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        let lane = self.lane;
        // SAFETY: taken before it is filled, sent when it is full.
        unsafe {
            if group.is_multiple_of(2) {
                self.store.take(1);
            }
            // Columns 2·(l % 4) of a group of 16: half a chunk, and eight
            // columns further the same half two chunks on.
            let row = lane / 32 * 16 + lane % 32 / 4;
            let chunk = group % 2 * 4 + lane % 4 / 2;
            let half = lane % 2 * 8;
            shared::store_f32x2(self.store.chunk(0, row, chunk) + half, [a, b]);
            shared::store_f32x2(self.store.chunk(0, row + 8, chunk) + half, [c, d]);
            shared::store_f32x2(self.store.chunk(0, row, chunk + 2) + half, [e, f]);
            shared::store_f32x2(self.store.chunk(0, row + 8, chunk + 2) + half, [g, h]);
            if group % 2 == 1 {
                self.store.send(1, self.row, self.col + group / 2 * 32, 4);
            }
        }
    }
}

const _: () = assert!(WARPGROUP == 128, "four warps of 16 rows fill a slab");
