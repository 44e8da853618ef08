//! Global memory → registers → shared memory, for one operand.
//!
//! The path is chosen once a launch, from the operand's strides and alignment:
//! 16-byte vectors along the contiguous direction where every vector is
//! aligned and wholly inside or outside the matrix; single elements otherwise.

use core::marker::PhantomData;

use super::layout::{CopyMap, Place, QUAD, shared_offset};
use crate::dtype::ElementType;
use crate::isa::hint::{KEEPS_INVARIANTS, compute_here, compute_here_u64};
use crate::isa::{global, shared};
use crate::unroll::unroll;

/// The tile that is copied, as constants of a type.
pub trait CopyTile {
    /// BLOCK_M or BLOCK_N.
    const BLOCK_MN: u32;
    /// BLOCK_K.
    const BLOCK_K: u32;
    /// Threads of the CTA.
    const THREADS: u32;
    /// First bit of the operand's path in [`Paths`].
    const PATH_BIT: u32;
}

/// A, or B transposed: element `(mn, k)` lies at
/// `address + (mn · mn_stride + k · k_stride) · bytes`.
#[derive(Clone, Copy)]
pub struct Source {
    /// Address of element (0, 0).
    pub address: u64,
    /// Elements from `(mn, k)` to `(mn + 1, k)`.
    pub mn_stride: u64,
    /// Elements from `(mn, k)` to `(mn, k + 1)`.
    pub k_stride: u64,
    /// M or N.
    pub mn_size: u32,
    /// K.
    pub k_size: u32,
    /// Elements from one matrix of a batch to the next; 0 without a batch.
    pub batch_stride: u64,
}

/// The stored bits that a thread has in flight: at most 16 elements or 4 vectors.
pub type Staged = [u32; 16];

/// How an operand is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Whether the operand is read in 16-byte vectors.
    wide: bool,
    /// Whether vectors, or neighbouring threads' elements, lie along K.
    along_k: bool,
}

impl Path {
    const VECTORS_ALONG_K: Path = Path::new(true, true);
    const VECTORS_ALONG_MN: Path = Path::new(true, false);

    const fn new(wide: bool, along_k: bool) -> Path {
        Path { wide, along_k }
    }

    /// The path for elements of type `T` of `source`.
    #[inline(always)]
    pub fn of<T: ElementType>(source: &Source) -> Path {
        let bytes = T::DTYPE.bytes() as u64;
        // Every vector is aligned, and none straddles the edge of the matrix.
        let wide = |stride: u64, size: u32| {
            (source.address | (stride * bytes) | (source.batch_stride * bytes)).is_multiple_of(16)
                && (size as u64 * bytes).is_multiple_of(16)
        };
        if source.k_stride == 1 && wide(source.mn_stride, source.k_size) {
            Path::VECTORS_ALONG_K
        } else if source.mn_stride == 1 && wide(source.k_stride, source.mn_size) {
            Path::VECTORS_ALONG_MN
        } else {
            // The direction of the smaller stride; loads coalesce where it is 1.
            let along_k = source.mn_stride != 1 && source.k_stride <= source.mn_stride;
            Path::new(false, along_k)
        }
    }
}

/// The index of a thread and the paths of A and B, in one register, because the main loop
/// has no register to spare. For the same reason, values that depend on them are computed
/// where they are needed.
///
/// [`CopyTile::PATH_BIT`] of each operand and the bit above it hold `wide` and `along_k`
/// of its path; bits 4 and up hold the index.
#[derive(Clone, Copy)]
pub struct Paths(u32);

impl Paths {
    /// The index `thread`, with the paths of A and B.
    #[inline(always)]
    pub fn new<A: CopyTile, B: CopyTile>(thread: u32, a: Path, b: Path) -> Self {
        let bits = |path: Path| path.wide as u32 | (path.along_k as u32) << 1;
        Paths(thread << 4 | bits(a) << A::PATH_BIT | bits(b) << B::PATH_BIT)
    }

    /// The index of the thread.
    #[inline(always)]
    pub fn thread(self) -> u32 {
        compute_here(self.0) >> 4
    }

    /// The path of the operand whose tile is `S`.
    #[inline(always)]
    fn path<S: CopyTile>(self) -> Path {
        let bits = compute_here(self.0) >> S::PATH_BIT;
        Path::new(bits & 1 != 0, bits & 2 != 0)
    }
}

/// One thread's share of copying one operand.
pub struct OperandCopy<T, S> {
    source: Source,
    paths: Paths,
    /// First index of the current tile along M or N.
    origin: u32,
    /// Index of the current matrix of the batch, and bytes from the first one to it.
    batch: u32,
    batch_offset: u64,
    marker: PhantomData<(T, S)>,
}

impl<T: ElementType, S: CopyTile> OperandCopy<T, S> {
    const BYTES: u64 = T::DTYPE.bytes() as u64;

    const fn map(path: Path) -> CopyMap {
        CopyMap {
            block_mn: S::BLOCK_MN,
            block_k: S::BLOCK_K,
            threads: S::THREADS,
            vector: if path.wide { 16 / T::DTYPE.bytes() } else { 1 },
            along_k: path.along_k,
        }
    }

    /// A copy of `source`; `paths` has its path.
    #[inline(always)]
    pub fn new(source: Source, paths: Paths) -> Self {
        OperandCopy {
            source,
            paths,
            origin: 0,
            batch: 0,
            batch_offset: 0,
            marker: PhantomData,
        }
    }

    /// First element of this thread's first item in the tile.
    #[inline(always)]
    fn first(&self, path: Path) -> Place {
        Self::map(path).first(self.paths.thread())
    }

    /// Moves to tile `tile` along M or N of matrix `batch`.
    #[inline(always)]
    pub fn seek(&mut self, tile: u32, batch: u32) {
        self.origin = tile * S::BLOCK_MN;
        self.batch = batch;
        self.batch_offset = batch as u64 * self.source.batch_stride * Self::BYTES;
    }

    /// Starts the loads of the k-block that begins at `k`. Elements outside the matrix
    /// are 0.
    ///
    /// # Safety
    /// The source describes a live allocation that no thread writes.
    #[inline(always)]
    pub unsafe fn load(&self, k: u32) -> Staged {
        // SAFETY: the caller's duty; the path was chosen for these strides.
        unsafe {
            match self.paths.path::<S>() {
                Path::VECTORS_ALONG_K => self.load_items::<true>(true, k),
                Path::VECTORS_ALONG_MN => self.load_items::<true>(false, k),
                Path { along_k, .. } => self.load_items::<false>(along_k, k),
            }
        }
    }

    /// # Safety
    /// See [`OperandCopy::load`]; `WIDE` and `along_k` are the path's.
    #[inline(always)]
    unsafe fn load_items<const WIDE: bool>(&self, along_k: bool, k: u32) -> Staged {
        let path = Path::new(WIDE, along_k);
        let map = Self::map(path);
        let step = map.step();
        let first = self.first(path);
        let first_mn = self.origin + first.mn;
        let first_k = k + first.k;
        // Each address is computed from the operand's base address: a pointer that moves
        // from step to step would take two registers, and its step two more.
        let mn_stride = Self::BYTES * compute_here_u64(self.source.mn_stride);
        let k_stride = Self::BYTES * compute_here_u64(self.source.k_stride);
        let offset = if KEEPS_INVARIANTS {
            compute_here(self.batch) as u64 * self.source.batch_stride * Self::BYTES
        } else {
            self.batch_offset
        };
        let matrix = self.source.address + offset;
        let start = matrix + first_mn as u64 * mn_stride + first_k as u64 * k_stride;
        let stride = step.mn as u64 * mn_stride + step.k as u64 * k_stride;
        // SAFETY: zeros are plain integers.
        let mut staged: Staged = unsafe { core::mem::zeroed() };
        unroll!(I < 16, {
            if I < map.items() as usize {
                let i = I as u32;
                let (mn, k) = (first_mn + i * step.mn, first_k + i * step.k);
                let address = start + i as u64 * stride;
                if mn < self.source.mn_size && k < self.source.k_size {
                    // SAFETY: the item is inside the matrix, and aligned if wide.
                    unsafe {
                        if WIDE {
                            let bits = global::load_u32x4(address);
                            unroll!(J < 4, {
                                staged[(4 * I + J) % 16] = bits[J];
                            });
                        } else if Self::BYTES == 4 {
                            staged[I] = global::load_u32(address);
                        } else {
                            staged[I] = global::load_u16(address);
                        }
                    }
                }
            }
        });
        staged
    }

    /// Converts to f32 and writes the tile at `tile` in shared memory.
    ///
    /// # Safety
    /// `tile` is the 1024-byte aligned address of a tile that no thread reads
    /// before the next barrier.
    #[inline(always)]
    pub unsafe fn store(&self, tile: u32, staged: &Staged) {
        // SAFETY: the caller's duty.
        unsafe {
            match self.paths.path::<S>() {
                Path::VECTORS_ALONG_K => self.store_items::<true>(true, tile, staged),
                Path::VECTORS_ALONG_MN => self.store_items::<true>(false, tile, staged),
                Path { along_k, .. } => self.store_items::<false>(along_k, tile, staged),
            }
        }
    }

    /// # Safety
    /// See [`OperandCopy::store`]; `WIDE` and `along_k` are the path's.
    #[inline(always)]
    unsafe fn store_items<const WIDE: bool>(&self, along_k: bool, tile: u32, staged: &Staged) {
        let path = Path::new(WIDE, along_k);
        let map = Self::map(path);
        let step = map.step();
        let first = self.first(path);
        let at = |mn: u32, k: u32| tile + shared_offset(S::BLOCK_MN, Place { mn, k });
        unroll!(I < 16, {
            if I < map.items() as usize {
                let (mn, k) = (first.mn + I as u32 * step.mn, first.k + I as u32 * step.k);
                if WIDE {
                    let values = Self::unpack([
                        staged[4 * I % 16],
                        staged[(4 * I + 1) % 16],
                        staged[(4 * I + 2) % 16],
                        staged[(4 * I + 3) % 16],
                    ]);
                    if along_k {
                        unroll!(J < 8, {
                            if (J as u32) < map.vector {
                                // SAFETY: inside the tile.
                                unsafe { shared::store_f32(at(mn, k + J as u32), values[J]) };
                            }
                        });
                    } else {
                        let [x, y, z, w, ..] = values;
                        // SAFETY: inside the tile; quads are never split by the swizzle.
                        unsafe { shared::store_f32x4(at(mn, k), [x, y, z, w]) };
                        if map.vector == 2 * QUAD {
                            let [.., x, y, z, w] = values;
                            // SAFETY: as above.
                            unsafe { shared::store_f32x4(at(mn + QUAD, k), [x, y, z, w]) };
                        }
                    }
                } else {
                    // SAFETY: inside the tile.
                    unsafe { shared::store_f32(at(mn, k), T::to_f32(staged[I])) };
                }
            }
        });
    }

    /// The elements of one vector: eight of 16 bits, or four of 32 bits and four unused.
    #[inline(always)]
    fn unpack(bits: [u32; 4]) -> [f32; 8] {
        let mut values = [0.0; 8];
        unroll!(I < 4, {
            if Self::BYTES == 4 {
                values[I] = T::to_f32(bits[I]);
            } else {
                values[2 * I] = T::to_f32(bits[I] & 0xffff);
                values[2 * I + 1] = T::to_f32(bits[I] >> 16);
            }
        });
        values
    }
}
