//! The consumers' last step: from accumulators to C.
//!
//! C leaves in slabs of 64 rows × 128 bytes (64 columns of a 16-bit type, 32 of
//! f32), each staged in shared memory in the 128-byte swizzle:
//!
//! ```text
//! take      the buffer's last slab has been read          (wait, barrier)
//! fill      convert, stmatrix or 8-byte stores            (all lanes)
//! send      one thread starts a TMA store, or all copy    (barrier before)
//! ```
//!
//! Where a cluster splits K, each warp takes, fills and sends its 16 rows by
//! itself: some of its warpgroup have none to store.
//!
//! Two buffers take turns, also from one tile to the next, so that a slab is
//! filled while the one before it is still on its way.

use core::marker::PhantomData;

use super::device::Slab;
use super::{ROW_BYTES, SLAB_BYTES, STAGING_SLABS, Shape, WARPGROUP, store_rows};
use crate::element::Element;
use crate::epilogue::pack;
use crate::isa::hint::compute_here_u64;
use crate::isa::wgmma::{Accumulator, VisitColumns};
use crate::isa::{global, shared, thread, tma, warpgroup};
use crate::problem::{GemmParams, OutputType};

/// Stores the rows of one consumer warpgroup.
pub(super) struct SlabStore<'a, S> {
    params: &'a GemmParams,
    /// Index of the thread in its warpgroup.
    lane: u32,
    /// Whether this thread starts stores, for those it [`sync`]s with.
    sends: bool,
    /// The named barrier of the warpgroup.
    barrier: u32,
    /// The buffer to fill next: the two differ in one address bit.
    buffer: u32,
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
            sends: lane % if Self::BY_WARP { 32 } else { WARPGROUP } == 0,
            barrier: 1 + consumer,
            buffer: staging + consumer * (STAGING_SLABS * SLAB_BYTES),
            shape: PhantomData,
        }
    }

    /// Stores 64 rows of C from `row`, as many columns as `sums` has from `col`;
    /// where a cluster splits K, those 16 of the 64 that are the warp's.
    ///
    /// # Safety
    /// The accumulator is finished; the warpgroup is together, or the warp.
    #[inline(always)]
    pub(super) unsafe fn rows(&mut self, sums: &Slab<S>, row: u32, col: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            match self.params.output {
                OutputType::Input if S::Element::DTYPE.bytes() == 2 => sums.columns(&mut Narrow {
                    store: self,
                    row,
                    col,
                }),
                _ => sums.columns(&mut Wide {
                    store: self,
                    row,
                    col,
                }),
            }
        }
    }

    /// Waits until no copy reads shared memory any more.
    #[inline(always)]
    pub(super) fn finish(&self) {
        if self.sends {
            tma::wait_stores();
        }
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

    /// Waits until the buffer's last slab has been read by all.
    ///
    /// # Safety
    /// By all threads that [`sync`] together.
    #[inline(always)]
    unsafe fn take(&self) {
        // SAFETY: the warpgroup is together.
        unsafe {
            if self.sends {
                tma::wait_stores_read::<{ STAGING_SLABS - 1 }>();
            }
            sync::<S>(self.barrier);
        }
    }

    /// Shared address of 16-byte chunk `chunk` (of 8) in row `row` (of 64) of
    /// the buffer: the 128-byte swizzle XORs the chunk with the row.
    #[inline(always)]
    fn chunk(&self, row: u32, chunk: u32) -> u32 {
        self.buffer + row * 128 + ((chunk ^ (row % 8)) * 16)
    }

    /// Sends the filled buffer to C(row.., col..), and turns to the other one.
    ///
    /// # Safety
    /// By all threads that [`sync`] together; each has filled its part.
    #[inline(always)]
    unsafe fn send(&mut self, row: u32, col: u32, bytes: u32) {
        // SAFETY: all have written their part before the barrier.
        unsafe {
            if self.params.store_by_tma != 0 {
                tma::fence_shared();
                sync::<S>(self.barrier);
                if self.sends {
                    let first = self.first_row();
                    let box_of_c = self.buffer + first * ROW_BYTES;
                    tma::store(self.params.tensor_map(2), box_of_c, col, row + first);
                    tma::commit_stores();
                }
            } else {
                sync::<S>(self.barrier);
                self.copy(row, col, bytes);
            }
        }
        self.buffer ^= SLAB_BYTES;
    }

    /// Copies the buffer to C element by element: any strides, any edge. A warp
    /// copies 16 rows, one 128-byte row at a time.
    ///
    /// # Safety
    /// After a barrier that follows the last write to the buffer.
    #[inline(always)]
    unsafe fn copy(&self, row: u32, col: u32, bytes: u32) {
        let c = &self.params.c;
        let (first, word) = (self.lane / 32 * 16, self.lane % 32);
        let col = col + word * 4 / bytes;
        let start = c.address + bytes as u64 * (col as u64 * c.col_stride);
        // Here, or these would be computed once and for all before the main
        // loop, which has no registers to keep them in.
        let pitch = bytes as u64 * compute_here_u64(c.row_stride);
        let step = 2 * compute_here_u64(c.col_stride);
        // Two 16-bit elements as one word, where that is an aligned access.
        let packed = step == 2 && (c.address | pitch) & 3 == 0;
        let mut i = first;
        while i < first + 16 && row + i < self.params.m {
            let address = start + (row + i) as u64 * pitch;
            // SAFETY: masked to the rows and columns of C.
            unsafe {
                let value = shared::load_u32(self.chunk(i, word / 4) + word % 4 * 4);
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
    row: u32,
    col: u32,
}

impl<S: Shape> VisitColumns for Narrow<'_, '_, S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        let lane = self.store.lane;
        // SAFETY: taken before it is filled, sent when it is full.
        unsafe {
            if group.is_multiple_of(4) {
                self.store.take();
            }
            // Lane l of a warp addresses row l % 16 of the warp's 16, and the
            // chunk of 8 columns that its half of the lanes stands for.
            let row = lane / 32 * 16 + lane % 16;
            let chunk = group % 4 * 2 + lane % 32 / 16;
            warpgroup::store_matrices(
                self.store.chunk(row, chunk),
                [
                    pack::<S::Element>(a, b),
                    pack::<S::Element>(c, d),
                    pack::<S::Element>(e, f),
                    pack::<S::Element>(g, h),
                ],
            );
            if group % 4 == 3 {
                self.store.send(
                    self.row,
                    self.col + group / 4 * 64,
                    S::Element::DTYPE.bytes(),
                );
            }
        }
    }
}

/// Fills slabs of f32: 32 columns, two groups of 16.
struct Wide<'s, 'a, S> {
    store: &'s mut SlabStore<'a, S>,
    row: u32,
    col: u32,
}

impl<S: Shape> VisitColumns for Wide<'_, '_, S> {
    #[inline(always)]
    unsafe fn visit(&mut self, group: u32, values: [f32; 8]) {
        let [a, b, c, d, e, f, g, h] = values;
        let lane = self.store.lane;
        // SAFETY: taken before it is filled, sent when it is full.
        unsafe {
            if group.is_multiple_of(2) {
                self.store.take();
            }
            // Columns 2·(l % 4) of a group of 16: half a chunk, and eight
            // columns further the same half two chunks on.
            let row = lane / 32 * 16 + lane % 32 / 4;
            let chunk = group % 2 * 4 + lane % 4 / 2;
            let half = lane % 2 * 8;
            shared::store_f32x2(self.store.chunk(row, chunk) + half, [a, b]);
            shared::store_f32x2(self.store.chunk(row + 8, chunk) + half, [c, d]);
            shared::store_f32x2(self.store.chunk(row, chunk + 2) + half, [e, f]);
            shared::store_f32x2(self.store.chunk(row + 8, chunk + 2) + half, [g, h]);
            if group % 2 == 1 {
                self.store.send(self.row, self.col + group / 2 * 32, 4);
            }
        }
    }
}

const _: () = assert!(WARPGROUP == 128, "four warps of 16 rows fill a slab");
