//! The main loop for `cp.async`, sm_80: it copies STAGES − 1 blocks ahead, loads fragments
//! one step ahead, and multiplies.

use crate::kernel::Arch;
use crate::unroll::unroll;

use super::copy::Copier;
use super::fragment::{Accumulators, Fragments, Reader, multiply};
use super::main_loop::{Blocking, MainLoop};
use super::ring::Ring;

/// The main loop with `STAGES` stages in shared memory, filled by `cp.async`.
pub struct Multistage<const STAGES: u32>;

impl<const STAGES: u32> MainLoop for Multistage<STAGES> {
    const ARCH: Arch = Arch::Sm80;
    const STAGES: u32 = STAGES;
    const CTAS_PER_SM: u32 = 1;
    const SM_SHARED_BYTES: u32 = 163 * 1024;
    const MAX_PASSES: u32 = 16;
    const MMA_CHUNKS: u32 = 2;
    const PARTS: u32 = 1;
    const HAS_BF16_AND_TF32: bool = true;

    #[inline(always)]
    unsafe fn accumulate<S: Blocking>(
        a: Copier,
        b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators {
        // SAFETY: zeros are plain numbers. An array expression instead of `zeroed`
        // would become a loop of stores to local memory.
        let mut c: Accumulators = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut even: Fragments = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut odd: Fragments = unsafe { core::mem::zeroed() };

        // SAFETY: a stage is written only after the barrier that follows its
        // last read, and read only after the wait and the barrier that follow
        // its copies.
        unsafe {
            let mut ring = Ring::<S, STAGES>::fill(a, b, base);
            let [a_panel, b_panel] = ring.panels();
            let (a_first, b_first) = (a_reader.here(), b_reader.here());
            unroll!(QUAD < 4, {
                a_first.load(&mut even.a, a_panel, 0, QUAD);
                b_first.load(&mut even.b, b_panel, 0, QUAD);
                a_reader.round(&mut even.a, S::DTYPE, QUAD);
                b_reader.round(&mut even.b, S::DTYPE, QUAD);
            });

            let mut depth = 0;
            while depth < k {
                let whole = ring.copy_edges(depth + (STAGES - 1) * S::A_PANEL.depth);
                unroll!(INDEX < 8, {
                    let this_step = INDEX as u32;
                    if this_step < S::STEPS {
                        // The last step's next fragments are the next stage's first.
                        if this_step + 1 == S::STEPS {
                            ring.wait_for_next();
                        } else {
                            ring.start_whole(whole, this_step, S::STEPS - 1);
                        }
                        let (this, next) = if this_step.is_multiple_of(2) {
                            (&even, &mut odd)
                        } else {
                            (&odd, &mut even)
                        };
                        let step = (this_step + 1) % S::STEPS;
                        let [a_panel, b_panel] = ring.panels();
                        let (a_reader, b_reader) = (a_reader.here(), b_reader.here());
                        unroll!(QUAD < 4, {
                            a_reader.load(&mut next.a, a_panel, step, QUAD);
                            b_reader.load(&mut next.b, b_panel, step, QUAD);
                            multiply(&mut c, this, S::DTYPE, S::WARP_TILE, QUAD);
                            a_reader.round(&mut next.a, S::DTYPE, QUAD);
                            b_reader.round(&mut next.b, S::DTYPE, QUAD);
                        });
                    }
                });
                ring.advance();
                depth += S::A_PANEL.depth;
            }
            ring.finish();
        }
        c
    }
}
