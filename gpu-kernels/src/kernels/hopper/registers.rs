//! The main loop for TF32 where A is contiguous along M.
//!
//! `wgmma` reads 4-byte elements from shared memory only if they are contiguous along K, but it
//! takes A from registers, too. So the consumers load A from the stage to registers, each thread
//! the elements that the instruction expects of it; TMA has rounded them to TF32 on the way into the
//! stage. B stays in shared memory.
//!
//! ```text
//! stage                boxes of 32 rows of A: a line of 128 bytes for each k, 128-byte swizzle
//! wait full[s]
//! first half of K      load, fence, multiply           while the second half of s − 1 multiplies
//!                      wait for that half, release s − 1
//! second half          load, fence, multiply           while the first half multiplies
//!                      wait for the first half
//! ```
//!
//! The tensor cores have one half in flight while the elements of the other are loaded. Each half
//! has registers of its own, which are loaded again when its multiplies are complete.

use super::main_loop::MainLoop;
use super::pipeline::{Peers, PipelineState};
use super::traits::{Accumulators, KernelTraits, ROW_BYTES};
use crate::dtype::Major;
use crate::isa::hint::compute_here;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{shared, thread, wgmma};

/// Elements along K of one multiply.
const STEP: u32 = 8;

impl<K: KernelTraits, P: Peers> MainLoop<K, P> {
    /// [`MainLoop::multiply`] with A through registers.
    ///
    /// # Safety
    /// See [`MainLoop::multiply`].
    #[inline(always)]
    pub(super) unsafe fn multiply_registers(
        &mut self,
        accumulators: &mut Accumulators<K>,
        k_blocks: u32,
    ) -> u32 {
        let accumulator = &mut accumulators[0];
        // Computed anew for each tile: kept, the offsets would take registers from the epilogue.
        let place = Place::new(compute_here(self.consumer.lane));
        let step = wgmma::descriptor_step(Major::K);
        let mut previous = self.state.stage;
        let mut k_block = 0;
        // See `MainLoop::multiply` for the form of the loop.
        loop {
            let PipelineState { stage, parity } = self.state;
            // SAFETY: the stage has landed; the warpgroup is together; a wait stands between the
            // multiplies that read registers and the next loads to them.
            unsafe {
                self.smem.full(stage).wait(parity);
                let a = self.a(stage).address();
                let b = wgmma::descriptor(Major::K, self.b(stage).address());
                let first = [place.load(a, 0), place.load(a, 1)];
                wgmma::fence();
                accumulator.multiply_registers(first[0], b, (k_block != 0) as u32);
                accumulator.multiply_registers(first[1], b + step, 1);
                wgmma::commit();
                if k_block != 0 {
                    wgmma::wait::<1>();
                    self.peers.release(self.smem, previous, self.consumer.lane);
                }
                let second = [place.load(a, 2), place.load(a, 3)];
                wgmma::fence();
                accumulator.multiply_registers(second[0], b + 2 * step, 1);
                accumulator.multiply_registers(second[1], b + 3 * step, 1);
                wgmma::commit();
                // All lanes have loaded their elements when one of them releases the stage.
                thread::sync_warp();
                wgmma::wait::<1>();
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
}

/// Where a lane's elements of A lie in an m64 tile: offsets of the elements in its upper row of
/// (k, k + 4), then in its lower row, for the k of the first multiply.
///
/// In one load of a warp, the lanes of the upper four rows take k and the others k + 4, and in the
/// next load the other way round. With the swizzle, the 32 elements of a load then lie in
/// different banks; if all lanes took k together, each bank would have two of them.
#[derive(Clone, Copy)]
struct Place {
    offsets: [u32; 4],
    /// Whether the lane takes k + 4 first.
    is_turned: bool,
}

impl Place {
    /// The place of the elements of `lane` of a warpgroup.
    #[inline(always)]
    fn new(lane: u32) -> Self {
        let row = lane / 32 * 16 + lane % 32 / 4;
        let is_turned = lane % 32 / 16 != 0;
        let k = lane % 4 + if is_turned { 4 } else { 0 };
        let upper = offset(row, k);
        // The lower row is eight further on, two chunks, and k ± 4 changes one bit of the line and
        // one of the chunk.
        let (lower, turned) = (32, 4 * ROW_BYTES + 64);
        Place {
            offsets: [upper, upper ^ turned, upper ^ lower, upper ^ lower ^ turned],
            is_turned,
        }
    }

    /// This lane's elements for multiply `index` of a k-block, from the m64 tile at shared address
    /// `tile`, in the order of
    /// [`multiply_registers`](crate::isa::wgmma::Accumulator::multiply_registers).
    ///
    /// # Safety
    /// The stage has landed.
    #[inline(always)]
    unsafe fn load(self, tile: u32, index: u32) -> [u32; 4] {
        let step = index * (STEP * ROW_BYTES);
        // SAFETY: the caller's duty.
        let [a, b, c, d] = self
            .offsets
            .map(|offset| unsafe { shared::load_u32(tile + offset + step) });
        if self.is_turned {
            [b, d, a, c]
        } else {
            [a, c, b, d]
        }
    }
}

/// The offset of the element (`row` of 64, `k`) of an m64 tile, in two boxes of 32 rows and 32 k.
#[inline(always)]
const fn offset(row: u32, k: u32) -> u32 {
    let (box_, in_box) = (row / 32, row % 32);
    let line = box_ * 32 + k;
    line * ROW_BYTES + ((in_box / 4) ^ (k % 8)) * 16 + in_box % 4 * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_finds_the_elements_that_wgmma_expects() {
        for lane in 0..128 {
            let place = Place::new(lane);
            let row = lane / 32 * 16 + lane % 32 / 4;
            let [a, b, c, d] = place.offsets;
            let found = match place.is_turned {
                true => [b, d, a, c],
                false => [a, c, b, d],
            };
            let k = lane % 4;
            let expected = [(row, k), (row + 8, k), (row, k + 4), (row + 8, k + 4)];
            assert_eq!(
                found,
                expected.map(|(row, k)| offset(row, k)),
                "lane {lane}"
            );
        }
    }

    #[test]
    fn the_lanes_of_a_warp_load_from_different_banks() {
        for warp in 0..4_u32 {
            for load in 0..4 {
                let bank = |lane: u32| Place::new(32 * warp + lane).offsets[load] / 4 % 32;
                let mut banks: Vec<u32> = (0..32).map(bank).collect();
                banks.sort_unstable();
                assert_eq!(banks, (0..32).collect::<Vec<_>>(), "load {load} of {warp}");
            }
        }
    }
}
