//! The main loop for elements in two parts ([`f16x3`]): three products of f16 for each product
//! of f32, and sums that leave the tensor cores after every k-block.
//!
//! ```text
//! stage                   A low, B low
//! stage + 1               A high, B high
//! products                = high·high          of this k-block
//! corrections            += low·high + high·low of all k-blocks, 2¹¹ times too large
//! sums                   += products            f32 additions, while the corrections multiply
//! the end                 sums += corrections · 2⁻¹¹
//! ```
//!
//! The tensor cores never wait for the additions, because the corrections of a k-block follow its
//! products, and the products of the next k-block are issued before they are finished. Each
//! tile that lands is read by one or two of the three products, so an SM loads four tiles where
//! three separate products would load six. The three accumulators of a 128×128 tile take 192
//! registers of a thread.

use super::main_loop::{MainLoop, multiply_atom, undefined};
use super::pipeline::{Peers, PipelineState};
use super::traits::{Accumulators, KernelTraits};
use crate::f16x3;
use crate::isa::wgmma;
use crate::isa::wgmma::Accumulator as _;
use crate::unroll::unroll;

impl<K: KernelTraits, P: Peers> MainLoop<K, P> {
    /// All k-blocks of a tile, to `sums`.
    ///
    /// # Safety
    /// See [`MainLoop::multiply`]; the producer fills two stages for each k-block.
    #[inline(always)]
    pub(super) unsafe fn multiply_parts(&mut self, sums: &mut Accumulators<K>, k_blocks: u32) {
        // SAFETY: the registers hold no multiply's result yet.
        unsafe {
            unroll!(GROUP < 16, {
                if 16 * (GROUP as u32) < K::BLOCK_N {
                    sums[0].set(GROUP, [0.0; 8]);
                }
            });
        }
        let mut products = undefined::<K>();
        let mut corrections = undefined::<K>();
        let mut previous = self.state;
        let mut k_block = 0;
        // See `MainLoop::multiply` for the form of the loop.
        loop {
            let low = self.state;
            let high = low.next::<K>();
            // SAFETY: the stages have landed; the warpgroup is together.
            unsafe {
                self.smem.full(low.stage).wait(low.parity);
                self.smem.full(high.stage).wait(high.parity);
                let (low_a, low_b) = self.descriptors(low.stage);
                let (high_a, high_b) = self.descriptors(high.stage);
                wgmma::fence();
                multiply_atom::<K>(&mut products, high_a, high_b, 0);
                wgmma::commit();
                if k_block != 0 {
                    // The corrections of the previous k-block are finished.
                    wgmma::wait::<1>();
                    self.release_parts(previous);
                }
                // ptxas wants a fence on every way to these registers, and else adds one (C7519).
                wgmma::fence();
                multiply_atom::<K>(&mut corrections, low_a, high_b, (k_block != 0) as u32);
                multiply_atom::<K>(&mut corrections, high_a, low_b, 1);
                wgmma::commit();
                products[0].finish_but::<1>();
                unroll!(GROUP < 16, {
                    if 16 * (GROUP as u32) < K::BLOCK_N {
                        sums[0].add(GROUP, products[0].columns(GROUP));
                    }
                });
            }
            previous = low;
            self.state = high.next::<K>();
            k_block += 1;
            if k_block >= k_blocks {
                break;
            }
        }
        // SAFETY: the warpgroup is together.
        unsafe {
            corrections[0].finish();
            self.release_parts(previous);
            unroll!(GROUP < 16, {
                if 16 * (GROUP as u32) < K::BLOCK_N {
                    let corrections = corrections[0].columns(GROUP);
                    sums[0].add(GROUP, corrections.map(f16x3::correction));
                }
            });
        }
    }

    /// Releases the stage of the low parts, and the next one.
    ///
    /// # Safety
    /// See [`Peers::release`].
    #[inline(always)]
    unsafe fn release_parts(&self, low: PipelineState) {
        let (smem, lane) = (self.smem, self.consumer.lane);
        // SAFETY: the caller's duty.
        unsafe {
            self.peers.release(smem, low.stage, lane);
            self.peers.release(smem, low.next::<K>().stage, lane);
        }
    }
}
