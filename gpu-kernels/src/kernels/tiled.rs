//! Step 2, `tiled`: shared-memory tiles and register tiles on the CUDA cores.
//!
//! The classic SGEMM (as in Volkov and Demmel 2008, MAGMA, maxas, CUTLASS
//! SIMT). A CTA computes BLOCK_M×BLOCK_N of C in k-blocks of BLOCK_K:
//!
//! 1. *copy*: the tiles of A and B go from global memory through registers into
//!    shared memory, converted to f32 on the way, so that one inner loop serves
//!    every element type and every layout;
//! 2. *multiply*: each thread reads 8 elements of A and 8 of B and does 64 fused
//!    multiply-adds for each k, so that one 128-bit shared load serves 16 of them.
//!
//! The two phases overlap: the loads of the next k-block are in flight while the
//! current k-block is multiplied, and shared memory holds two stages, so that one
//! barrier a k-block is enough.

pub mod layout;

mod copy;

use core::marker::PhantomData;

use self::layout::Threads;
use crate::dtype::ElementType;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// The tiled kernel for elements of type `T` and a block of BM×BN×BK.
pub struct Tiled<T, const BM: u32, const BN: u32, const BK: u32>(PhantomData<T>);

impl<T, const BM: u32, const BN: u32, const BK: u32> Tiled<T, BM, BN, BK> {
    /// The thread block. A shape that the kernel cannot run does not compile.
    pub const THREADS: Threads = {
        let threads = Threads {
            block_m: BM,
            block_n: BN,
            block_k: BK,
        };
        threads.check();
        threads
    };

    /// Bytes of the A tile in shared memory.
    const A_BYTES: u32 = BM * BK * 4;
    /// Bytes of one stage: the A tile, then the B tile.
    const STAGE_BYTES: u32 = Self::A_BYTES + BN * BK * 4;
}

impl<T: ElementType, const BM: u32, const BN: u32, const BK: u32> Kernel for Tiled<T, BM, BN, BK> {
    const INFO: KernelInfo = KernelInfo {
        // 16 warps an SM, with 128 registers a thread.
        ctas_per_sm: if Self::THREADS.count() < 512 {
            512 / Self::THREADS.count()
        } else {
            1
        },
        stages: 2,
        shared_bytes: 2 * Self::STAGE_BYTES,
        ..KernelInfo::new(
            Family::Tiled,
            Arch::Sm75,
            T::DTYPE,
            Block {
                m: BM,
                n: BN,
                k: BK,
            },
            Self::THREADS.count(),
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the caller's duty.
        unsafe { device::run::<T, BM, BN, BK>(params) }
    }
}

mod device {
    use super::Tiled;
    use super::copy::{CopyTile, OperandCopy, Path, Paths, Source};
    use super::layout::{QUAD, swizzle};
    use crate::dtype::ElementType;
    use crate::epilogue::{self, Epilogue};
    use crate::form::Planes;
    use crate::isa::arithmetic::fma;
    use crate::isa::hint::KEEPS_INVARIANTS;
    use crate::isa::{shared, thread};
    use crate::problem::GemmParams;
    use crate::schedule::TileScheduler;
    use crate::unroll::unroll;

    /// The tile of A in shared memory.
    struct TileA<const BM: u32, const BN: u32, const BK: u32>;
    /// The tile of B in shared memory.
    struct TileB<const BM: u32, const BN: u32, const BK: u32>;

    impl<const BM: u32, const BN: u32, const BK: u32> CopyTile for TileA<BM, BN, BK> {
        const BLOCK_MN: u32 = BM;
        const BLOCK_K: u32 = BK;
        const THREADS: u32 = Tiled::<(), BM, BN, BK>::THREADS.count();
        const PATH_BIT: u32 = 0;
    }

    impl<const BM: u32, const BN: u32, const BK: u32> CopyTile for TileB<BM, BN, BK> {
        const BLOCK_MN: u32 = BN;
        const BLOCK_K: u32 = BK;
        const THREADS: u32 = Tiled::<(), BM, BN, BK>::THREADS.count();
        const PATH_BIT: u32 = 2;
    }

    /// A thread's part of C. A thread with fewer rows leaves the last unused.
    type Accumulators = [[f32; 8]; 8];

    /// # Safety
    /// See [`crate::kernel::Kernel::run`].
    #[inline(always)]
    pub unsafe fn run<T: ElementType, const BM: u32, const BN: u32, const BK: u32>(
        params: &GemmParams,
    ) {
        let batched = matches!(params.form.planes, Planes::Batch);
        let a = Source {
            address: params.a.address,
            mn_stride: params.a.row_stride,
            k_stride: params.a.col_stride,
            mn_size: params.m,
            k_size: params.k,
            batch_stride: if batched { params.a.batch_stride } else { 0 },
        };
        let b = Source {
            address: params.b.address,
            mn_stride: params.b.col_stride,
            k_stride: params.b.row_stride,
            mn_size: params.n,
            k_size: params.k,
            batch_stride: if batched { params.b.batch_stride } else { 0 },
        };
        let paths = Paths::new::<TileA<BM, BN, BK>, TileB<BM, BN, BK>>(
            thread::thread_index(),
            Path::of::<T>(&a),
            Path::of::<T>(&b),
        );
        let mut copy_a = OperandCopy::<T, TileA<BM, BN, BK>>::new(a, paths);
        let mut copy_b = OperandCopy::<T, TileB<BM, BN, BK>>::new(b, paths);

        let base = shared::base();
        let position = thread::cta_position();
        let mut tiles = TileScheduler::new(params.raster, params.batches(), position);
        while let Some(tile) = tiles.next() {
            // SAFETY: zeros are plain f32.
            let mut accumulators: Accumulators = unsafe { core::mem::zeroed() };
            copy_a.seek(tile.m, tile.batch);
            copy_b.seek(tile.n, tile.batch);
            // SAFETY: operands describe live allocations; all threads that read
            // this stage have passed the barrier that ended its k-block; all
            // threads of a CTA run the same tiles and k-blocks, so all reach
            // every barrier.
            unsafe {
                copy_a.store(base, &copy_a.load(0));
                copy_b.store(base + Tiled::<T, BM, BN, BK>::A_BYTES, &copy_b.load(0));
                thread::sync_cta();
            }
            let mut k = 0;
            while k < params.k {
                let parity = k / BK % 2;
                let stage = base + parity * Tiled::<T, BM, BN, BK>::STAGE_BYTES;
                let other = base + (1 - parity) * Tiled::<T, BM, BN, BK>::STAGE_BYTES;
                // SAFETY: as above. After the last k-block the loads are outside
                // the matrix and bring zeros that no thread multiplies.
                unsafe {
                    let next_a = copy_a.load(k + BK);
                    let next_b = copy_b.load(k + BK);
                    multiply::<T, BM, BN, BK>(stage, paths.thread(), &mut accumulators);
                    copy_a.store(other, &next_a);
                    copy_b.store(other + Tiled::<T, BM, BN, BK>::A_BYTES, &next_b);
                    thread::sync_cta();
                }
                k += BK;
            }
            // SAFETY: C describes a live allocation, masked inside.
            unsafe {
                let threads = Tiled::<T, BM, BN, BK>::THREADS;
                let (row, col) = threads.register_tile(paths.thread());
                let origin = (tile.m * BM + row, tile.n * BN + col);
                store::<T, BM, BN, BK>(params, tile.batch, origin, &accumulators);
            }
            if KEEPS_INVARIANTS {
                let position = thread::cta_position_here();
                let batches = params.batches();
                tiles = tiles.renewed(TileScheduler::new(params.raster, batches, position));
            }
        }
    }

    /// Adds the product of one stage to the accumulators.
    ///
    /// # Safety
    /// `stage` holds a stage, complete for every thread.
    #[inline(always)]
    unsafe fn multiply<T, const BM: u32, const BN: u32, const BK: u32>(
        stage: u32,
        thread: u32,
        accumulators: &mut Accumulators,
    ) {
        let threads = Tiled::<T, BM, BN, BK>::THREADS;
        let (row, col) = threads.register_tile(thread);
        let a_tile = stage + row * 4;
        let b_tile = stage + Tiled::<T, BM, BN, BK>::A_BYTES + col * 4;
        let mut k_outer = 0;
        while k_outer < BK {
            unroll!(K < 16, {
                let k = k_outer + K as u32;
                // The XOR works on the whole address, because stages are aligned
                // to 1024 bytes and the swizzle permutes within 128.
                let a_line = (a_tile ^ (swizzle(K as u32) * 4)) + k * BM * 4;
                let b_line = (b_tile ^ (swizzle(K as u32) * 4)) + k * BN * 4;
                // SAFETY: inside the stage, aligned to 16 bytes.
                let (a, b) = unsafe {
                    (
                        fragment(a_line, threads.quad_step_m(), threads.register_m()),
                        fragment(b_line, threads.quad_step_n(), threads.register_n()),
                    )
                };
                unroll!(I < 8, {
                    if (I as u32) < threads.register_m() {
                        unroll!(J < 8, {
                            accumulators[I][J] = fma(a[I], b[J], accumulators[I][J]);
                        });
                    }
                });
            });
            k_outer += 16;
        }
    }

    /// Loads a thread's elements of one line: one quad, or two quads `step` elements
    /// apart.
    ///
    /// # Safety
    /// [`shared::load_f32x4`] is safe for every quad.
    #[inline(always)]
    unsafe fn fragment(address: u32, step: u32, elements: u32) -> [f32; 8] {
        // SAFETY: the caller's duty.
        unsafe {
            let [x0, x1, x2, x3] = shared::load_f32x4(address);
            let [x4, x5, x6, x7] = if elements > QUAD {
                shared::load_f32x4(address + step * 4)
            } else {
                [0.0; 4]
            };
            [x0, x1, x2, x3, x4, x5, x6, x7]
        }
    }

    /// Writes a thread's accumulators to C of product `batch`, from `row` and `col` on.
    ///
    /// # Safety
    /// See [`epilogue::store_4x4`].
    #[inline(always)]
    unsafe fn store<T, const BM: u32, const BN: u32, const BK: u32>(
        params: &GemmParams,
        batch: u32,
        (row, col): (u32, u32),
        accumulators: &Accumulators,
    ) {
        let epilogue = Epilogue::new(params, batch);
        let c = epilogue::c_of(params, batch);
        let threads = Tiled::<T, BM, BN, BK>::THREADS;
        unroll!(I < 2, {
            if I as u32 * QUAD < threads.register_m() {
                unroll!(J < 2, {
                    let row = row + I as u32 * threads.quad_step_m();
                    let col = col + J as u32 * threads.quad_step_n();
                    // SAFETY: zeros are plain f32.
                    let mut piece: [[f32; 4]; 4] = unsafe { core::mem::zeroed() };
                    unroll!(R < 4, {
                        let mut quad = [0.0; 4];
                        unroll!(S < 4, {
                            quad[S] = accumulators[4 * I + R][4 * J + S];
                        });
                        // SAFETY: the caller's duty.
                        piece[R] = unsafe { epilogue.apply(quad, row + R as u32, col) };
                    });
                    // SAFETY: the caller's duty.
                    unsafe { epilogue::store_4x4(params, &c, row, col, &piece) };
                });
            }
        });
    }
}
