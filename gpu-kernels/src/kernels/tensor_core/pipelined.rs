//! The main loop for GPUs without `cp.async`, sm_75: two stages in shared memory, and one
//! block on its way through registers.

use crate::isa::thread;
use crate::kernel::Arch;
use crate::unroll::unroll;

use super::copy::{Copier, MAX_STAGED};
use super::fragment::{Accumulators, Fragments, Reader, multiply_f16_k8};
use super::main_loop::{Blocking, MainLoop};

/// The main loop with two stages in shared memory, filled through registers; `CTAS` CTAs
/// share an SM, so that one multiplies while another waits at its barrier.
pub struct Pipelined<const CTAS: u32>;

impl<const CTAS: u32> MainLoop for Pipelined<CTAS> {
    const ARCH: Arch = Arch::Sm75;
    const STAGES: u32 = 2;
    const CTAS_PER_SM: u32 = CTAS;
    const SM_SHARED_BYTES: u32 = 64 * 1024;
    const MAX_PASSES: u32 = MAX_STAGED as u32;
    const MMA_CHUNKS: u32 = 1;
    const PARTS: u32 = 1;
    const HAS_BF16_AND_TF32: bool = false;

    #[inline(always)]
    unsafe fn accumulate<S: Blocking>(
        mut a: Copier,
        mut b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators {
        let b_panel = S::A_PANEL.bytes();

        // SAFETY: zeros are plain numbers. An array expression instead of `zeroed`
        // would become a loop of stores to local memory.
        let mut c: Accumulators = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut even: Fragments = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut odd: Fragments = unsafe { core::mem::zeroed() };

        // SAFETY: a stage is written only after the barrier that follows its
        // last read, and read only after the barrier that follows its stores.
        unsafe {
            let (mut read, mut write) = (base, base + S::STAGE_BYTES);
            let (a_whole, b_whole) = (a.is_in_whole_chunks(0), b.is_in_whole_chunks(0));
            a.gather_block(a_whole, 0, read);
            b.gather_block(b_whole, 0, read + b_panel);
            let (a_chunks, b_chunks) = (a.load_chunks(a_whole, 0), b.load_chunks(b_whole, 0));
            a.advance();
            b.advance();
            a.store_chunks(a_whole, &a_chunks, read);
            b.store_chunks(b_whole, &b_chunks, read + b_panel);
            thread::sync_cta();

            let (a_first, b_first) = (a_reader.here(), b_reader.here());
            unroll!(QUAD < 4, {
                a_first.load(&mut even.a, read, 0, QUAD);
                b_first.load(&mut even.b, read + b_panel, 0, QUAD);
            });

            let mut depth = 0;
            while depth < k {
                let next = depth + S::A_PANEL.depth;
                let (a_whole, b_whole) = (a.is_in_whole_chunks(next), b.is_in_whole_chunks(next));
                a.gather_block(a_whole, next, write);
                b.gather_block(b_whole, next, write + b_panel);
                // The loads of the next block are in flight until its stores below.
                let a_chunks = a.load_chunks(a_whole, next);
                let b_chunks = b.load_chunks(b_whole, next);
                a.advance();
                b.advance();
                unroll!(INDEX < 8, {
                    let this_step = INDEX as u32;
                    if this_step < S::STEPS {
                        // The last step's next fragments are the next stage's first.
                        if this_step + 1 == S::STEPS {
                            a.store_chunks(a_whole, &a_chunks, write);
                            b.store_chunks(b_whole, &b_chunks, write + b_panel);
                            thread::sync_cta();
                            (read, write) = (write, read);
                        }
                        let (this, next) = if this_step.is_multiple_of(2) {
                            (&even, &mut odd)
                        } else {
                            (&odd, &mut even)
                        };
                        let step = (this_step + 1) % S::STEPS;
                        let (a_reader, b_reader) = (a_reader.here(), b_reader.here());
                        unroll!(QUAD < 4, {
                            a_reader.load(&mut next.a, read, step, QUAD);
                            b_reader.load(&mut next.b, read + b_panel, step, QUAD);
                            multiply_f16_k8(&mut c, this, S::WARP_TILE, QUAD);
                        });
                    }
                });
                depth = next;
            }
            // Other warps may still read the fragments after the last step.
            thread::sync_cta();
        }
        c
    }
}
