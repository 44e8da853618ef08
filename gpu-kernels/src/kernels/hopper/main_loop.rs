//! The consumers' main loop: from stages to accumulators.

use super::device::{Cta, Slab};
use super::ring::RingPosition;
use super::{SLAB_BYTES, Shape};
use crate::isa::hint::compute_here;
use crate::isa::wgmma::Accumulator;
use crate::isa::{mbarrier, wgmma};
use crate::kernel::Contiguous;

impl<S: Shape> Cta<'_, S> {
    /// The main loop, over `steps` stages. One group of multiplies stays in
    /// flight: a stage is released one step after its multiplies were issued.
    ///
    /// # Safety
    /// By the whole warpgroup together; the producer fills as many stages.
    #[inline(always)]
    pub(super) unsafe fn multiply(
        &self,
        sums: &mut [Slab<S>; 2],
        steps: u32,
        mut position: RingPosition,
        consumer: u32,
        lane: u32,
    ) -> RingPosition {
        let mut previous = position.stage;
        let mut step = 0;
        // K is at least 1. A loop that might not run would give the accumulators
        // a second definition, and ptxas would serialise every wgmma (C7515).
        loop {
            // SAFETY: the stage has landed; the warpgroup is together.
            unsafe {
                mbarrier::wait(self.full(position.stage), position.parity);
                let tile = self.a_tile(position.stage);
                let a = tile + Self::share(consumer) * (S::SLABS * SLAB_BYTES);
                let a = wgmma::descriptor(S::A::MAJOR, a);
                let b = wgmma::descriptor(S::B::MAJOR, tile + S::A_BYTES);
                wgmma::fence();
                // The first multiply of a tile overwrites the accumulator.
                multiply_layer::<S>(sums, a, b, (step != 0) as u32);
                if S::LAYERS > 1 {
                    let next = (S::LAYER_BYTES >> 4) as u64;
                    multiply_layer::<S>(sums, a + next, b + next, 1);
                }
                wgmma::commit();
                if step != 0 {
                    wgmma::wait::<1>();
                    self.release(previous, lane);
                }
            }
            previous = position.stage;
            position = position.next::<S>();
            step += 1;
            if step >= steps {
                break;
            }
        }
        // SAFETY: the warpgroup is together.
        unsafe {
            if S::PING_PONG {
                // Not before this consumer has seen its last stage land: a barrier
                // tells a round from the next, but not from the one after that.
                mbarrier::arrive_if(compute_here(lane) == 0, self.turn(1 - consumer));
            }
            sums[0].finish();
            if S::SLABS > 1 {
                sums[1].finish();
            }
            self.release(previous, lane);
        }
        position
    }

    /// Tells every producer that writes to `stage` that this consumer has read
    /// it: those of our row and column of the cluster, one thread each.
    ///
    /// # Safety
    /// By the whole warpgroup; the multiplies that read `stage` have finished.
    #[inline(always)]
    unsafe fn release(&self, stage: u32, lane: u32) {
        // SAFETY: peers stay until the cluster barrier at the end.
        unsafe {
            if S::CLUSTER.sharing() > 1 {
                let (down, across) = self.place();
                let peer = (lane % S::CLUSTER.m, lane / S::CLUSTER.m);
                // Without `||` and `&&`, which would be branches.
                let reads = (peer.0 == down) | (peer.1 == across);
                let exists = lane < S::CLUSTER.sharing();
                mbarrier::arrive_at_if(exists & reads, self.empty(stage), lane);
            } else {
                // Compared here: kept, the answer would take a register.
                mbarrier::arrive_if(compute_here(lane) == 0, self.empty(stage));
            }
        }
    }
}

/// Issues the multiplies of one layer of a stage, for every slab of the consumer.
///
/// # Safety
/// See [`Accumulator::multiply`].
#[inline(always)]
unsafe fn multiply_layer<S: Shape>(sums: &mut [Slab<S>; 2], a: u64, b: u64, accumulate: u32) {
    // SAFETY: the caller's duty.
    unsafe {
        multiply_step::<S>(sums, a, b, 0, accumulate);
        multiply_step::<S>(sums, a, b, 1, 1);
        multiply_step::<S>(sums, a, b, 2, 1);
        multiply_step::<S>(sums, a, b, 3, 1);
    }
}

/// Issues the multiplies of a quarter of a layer, for every slab of the consumer.
///
/// # Safety
/// See [`Accumulator::multiply`].
#[inline(always)]
unsafe fn multiply_step<S: Shape>(
    sums: &mut [Slab<S>; 2],
    a: u64,
    b: u64,
    quarter: u64,
    accumulate: u32,
) {
    let a = a + quarter * wgmma::descriptor_step(S::A::MAJOR);
    let b = b + quarter * wgmma::descriptor_step(S::B::MAJOR);
    // SAFETY: the caller's duty.
    unsafe {
        sums[0].multiply::<S::Element, S::A, S::B>(a, b, accumulate);
        if S::SLABS > 1 {
            let a = a + (SLAB_BYTES >> 4) as u64;
            sums[1].multiply::<S::Element, S::A, S::B>(a, b, accumulate);
        }
    }
}
