//! The main loop of a consumer: it multiplies the stages of a tile, and hands the accumulators to the
//! epilogue.
//!
//! ```text
//! for each k-block     wait full[s], wgmma of every m64 tile, release the stage before
//! at the end           wait for the last wgmma, release its stage, or stage C in it
//! ```
//!
//! A consumer has its rows of the tile and all columns, or all rows and half of the columns
//! ([`KernelTraits::DIVIDES_COLUMNS`]): then it multiplies all m64 tiles of A by its columns of B.

use super::epilogue::TileStore;
use super::origin::Origin;
use super::pipeline::{Consumer, Peers, PipelineState};
use super::shared_memory::{M64_TILE_BYTES, OperandTile, SharedMemory};
use super::traits::{Accumulators, KernelTraits};
use crate::dtype::Contiguous;
use crate::isa::wgmma;
use crate::isa::wgmma::Accumulator as _;
use crate::unroll::unroll;

/// Accumulators with undefined contents: the first multiply of a tile overwrites them.
#[inline(always)]
pub fn undefined<K: KernelTraits>() -> Accumulators<K> {
    let first = K::Accumulator::undefined();
    let next = |tile: u32| {
        if tile < K::M64_TILES {
            K::Accumulator::undefined()
        } else {
            first
        }
    };
    // Written out: LLVM would leave a long array that a loop fills in memory.
    [first, next(1), next(2)]
}

/// Multiplies stages, from tile to tile.
pub struct MainLoop<K, P> {
    pub(super) smem: SharedMemory<K>,
    pub(super) peers: P,
    pub(super) consumer: Consumer,
    pub(super) state: PipelineState,
}

impl<K: KernelTraits, P: Peers> MainLoop<K, P> {
    /// The main loop of `consumer`, which reads stages that `peers` fill.
    #[inline(always)]
    pub fn new(smem: SharedMemory<K>, peers: P, consumer: Consumer) -> Self {
        MainLoop {
            smem,
            peers,
            consumer,
            state: PipelineState::CONSUMER_START,
        }
    }

    /// Skips `k_blocks` stages, which the other consumer reads.
    #[inline(always)]
    pub fn skip(&mut self, k_blocks: u32) {
        self.state = self.state.skip::<K>(k_blocks);
    }

    /// What this consumer multiplies of A in `stage`: its rows, or all where consumers divide columns.
    #[inline(always)]
    pub(super) fn a(&self, stage: u32) -> OperandTile {
        let first = self.consumer.first_m64::<K>();
        self.smem.a(stage, 0).m64(first)
    }

    /// What this consumer multiplies of B in `stage`: all columns, or its own.
    #[inline(always)]
    pub(super) fn b(&self, stage: u32) -> OperandTile {
        let first = self.consumer.first_col::<K>();
        self.smem.b(stage, 0).columns::<K>(first)
    }

    /// The descriptors of [`MainLoop::a`] and [`MainLoop::b`].
    #[inline(always)]
    pub(super) fn descriptors(&self, stage: u32) -> (u64, u64) {
        let (a, b) = (self.a(stage), self.b(stage));
        (
            wgmma::descriptor(K::A::MAJOR, a.address()),
            wgmma::descriptor(K::B::MAJOR, b.address()),
        )
    }

    /// All k-blocks of a tile, from the first multiply to accumulators that can be read.
    ///
    /// # Safety
    /// See [`MainLoop::multiply`].
    #[inline(always)]
    pub unsafe fn multiply_tile(&mut self, accumulators: &mut Accumulators<K>, k_blocks: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            if K::PARTS > 1 {
                self.multiply_parts(accumulators, k_blocks);
            } else if K::A_IN_REGISTERS {
                let last = self.multiply_registers(accumulators, k_blocks);
                self.finish(accumulators, last);
            } else {
                let last = self.multiply(accumulators, k_blocks);
                self.finish(accumulators, last);
            }
        }
    }

    /// Multiplies `k_blocks` stages. One group of multiplies stays in flight, so a stage
    /// is released one k-block after its multiplies were issued. Returns the last stage,
    /// for [`MainLoop::finish`] to release.
    ///
    /// # Safety
    /// The whole warpgroup calls this together; the producer fills `k_blocks` stages, and
    /// `k_blocks` is at least 1.
    #[inline(always)]
    pub unsafe fn multiply(&mut self, accumulators: &mut Accumulators<K>, k_blocks: u32) -> u32 {
        let mut previous = self.state.stage;
        let mut k_block = 0;
        // A loop that tests its condition first might not run at all. The accumulators
        // would then have a second definition, and ptxas would serialise every wgmma
        // (C7515).
        loop {
            let PipelineState { stage, parity } = self.state;
            // SAFETY: the stage has landed; the warpgroup is together.
            unsafe {
                self.smem.full(stage).wait(parity);
                let (a, b) = self.descriptors(stage);
                wgmma::fence();
                // The first multiply of a tile overwrites the accumulators.
                multiply_atom::<K>(accumulators, a, b, (k_block != 0) as u32);
                if K::ATOMS > 1 {
                    let next = (SharedMemory::<K>::ATOM_BYTES >> 4) as u64;
                    multiply_atom::<K>(accumulators, a + next, b + next, 1);
                }
                wgmma::commit();
                if k_block != 0 {
                    wgmma::wait::<1>();
                    self.peers.release(self.smem, previous, self.consumer.lane);
                }
            }
            previous = stage;
            self.state = self.state.next::<K>();
            k_block += 1;
            if k_block >= k_blocks {
                break;
            }
        }
        previous
    }

    /// Waits until all multiplies are finished, so that the accumulators can be read, and
    /// releases `last`, the last stage, unless C is staged in it.
    ///
    /// # Safety
    /// The whole warpgroup calls this together.
    #[inline(always)]
    pub unsafe fn finish(&self, accumulators: &mut Accumulators<K>, last: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            unroll!(TILE < 3, {
                if TILE < K::M64_TILES as usize {
                    accumulators[TILE].finish();
                }
            });
            if !SharedMemory::<K>::STAGES_C_IN_OPERANDS {
                self.peers.release(self.smem, last, self.consumer.lane);
            }
        }
    }

    /// Stores this consumer's rows of the tile of [`MainLoop::multiply_tile`], from `origin` on.
    /// Where C is staged in the tile's last stage, that stage is released behind them.
    ///
    /// # Safety
    /// The whole warpgroup calls this together, once after each `multiply_tile`.
    #[inline(always)]
    pub unsafe fn store(
        &self,
        store: &mut TileStore<K>,
        accumulators: &mut Accumulators<K>,
        origin: Origin,
    ) {
        let last = self.state.previous_stage::<K>();
        // SAFETY: the caller's duty. The consumer's rows of A, or its columns of B, in the last stage
        // are read by no other consumer; a barrier of the warpgroup stands between its multiplies and
        // the first write to them (`TileStore::begin`), and no peer loads them before they are
        // released.
        unsafe {
            if SharedMemory::<K>::STAGES_C_IN_OPERANDS {
                let read_alone = match K::DIVIDES_COLUMNS {
                    true => self.b(last),
                    false => self.a(last),
                };
                store.stage_in(read_alone.staging());
            }
            store.tile(accumulators, origin);
            if SharedMemory::<K>::STAGES_C_IN_OPERANDS {
                store.wait_all_read();
                self.peers.release(self.smem, last, self.consumer.lane);
            }
        }
    }
}

/// Issues the multiplies of one swizzle atom: four along K, for every m64 tile.
///
/// # Safety
/// See [`wgmma::Accumulator::multiply`].
#[inline(always)]
pub(super) unsafe fn multiply_atom<K: KernelTraits>(
    accumulators: &mut Accumulators<K>,
    a: u64,
    b: u64,
    accumulate: u32,
) {
    // SAFETY: the caller's duty.
    unsafe {
        multiply_k::<K>(accumulators, a, b, 0, accumulate);
        multiply_k::<K>(accumulators, a, b, 1, 1);
        multiply_k::<K>(accumulators, a, b, 2, 1);
        multiply_k::<K>(accumulators, a, b, 3, 1);
    }
}

/// Issues one wgmma for every m64 tile, over 32 bytes of K: number `index` of the four
/// in a swizzle atom.
///
/// # Safety
/// See [`wgmma::Accumulator::multiply`].
#[inline(always)]
unsafe fn multiply_k<K: KernelTraits>(
    accumulators: &mut Accumulators<K>,
    a: u64,
    b: u64,
    index: u64,
    accumulate: u32,
) {
    let a = a + index * wgmma::descriptor_step(K::A::MAJOR);
    let b = b + index * wgmma::descriptor_step(K::B::MAJOR);
    // SAFETY: the caller's duty.
    unsafe {
        unroll!(TILE < 3, {
            if TILE < K::M64_TILES as usize {
                let a = a + TILE as u64 * (M64_TILE_BYTES >> 4) as u64;
                accumulators[TILE].multiply::<K::Element, K::A, K::B>(a, b, accumulate);
            }
        });
    }
}
