//! The main loop for `cp.async`, sm_80: it copies STAGES − 1 blocks ahead, loads fragments
//! one step ahead, and multiplies.

use crate::isa::{cp_async, thread};
use crate::kernel::Arch;
use crate::unroll::unroll;

use super::copy::Copier;
use super::fragment::{Accumulators, Fragments, Reader, multiply};
use super::main_loop::{Blocking, MainLoop};

/// The main loop with `STAGES` stages in shared memory, filled by `cp.async`.
pub struct Multistage<const STAGES: u32>;

impl<const STAGES: u32> MainLoop for Multistage<STAGES> {
    const ARCH: Arch = Arch::Sm80;
    const STAGES: u32 = STAGES;
    const CTAS_PER_SM: u32 = 1;
    const SM_SHARED_BYTES: u32 = 163 * 1024;
    const MAX_PASSES: u32 = 16;
    const MMA_CHUNKS: u32 = 2;
    const HAS_BF16_AND_TF32: bool = true;

    #[inline(always)]
    unsafe fn accumulate<S: Blocking>(
        mut a: Copier,
        mut b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators {
        let next_stage = |address: u32| {
            if address + S::STAGE_BYTES < base + STAGES * S::STAGE_BYTES {
                address + S::STAGE_BYTES
            } else {
                base
            }
        };
        let b_panel = S::A_PANEL.bytes();
        let block_k = S::A_PANEL.depth;

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
            // Fill all stages but one.
            let mut write = base;
            let mut copied = 0;
            while copied < (STAGES - 1) * block_k {
                let (whole_a, whole_b) = (a.is_whole(copied), b.is_whole(copied));
                a.copy_edge(whole_a, copied, write);
                b.copy_edge(whole_b, copied, write + b_panel);
                a.start_whole(whole_a, write, 0, 1);
                b.start_whole(whole_b, write + b_panel, 0, 1);
                cp_async::commit_group();
                a.advance();
                b.advance();
                write += S::STAGE_BYTES;
                copied += block_k;
            }
            cp_async::wait_for_oldest::<STAGES>();
            thread::sync_cta();

            let mut read = base;
            let (a_first, b_first) = (a_reader.here(), b_reader.here());
            unroll!(QUAD < 4, {
                a_first.load(&mut even.a, read, 0, QUAD);
                b_first.load(&mut even.b, read + b_panel, 0, QUAD);
                a_reader.round(&mut even.a, S::DTYPE, QUAD);
                b_reader.round(&mut even.b, S::DTYPE, QUAD);
            });

            let mut depth = 0;
            while depth < k {
                let copied = depth + (STAGES - 1) * block_k;
                let (whole_a, whole_b) = (a.is_whole(copied), b.is_whole(copied));
                a.copy_edge(whole_a, copied, write);
                b.copy_edge(whole_b, copied, write + b_panel);
                unroll!(INDEX < 8, {
                    let this_step = INDEX as u32;
                    if this_step < S::STEPS {
                        // The last step's next fragments are the next stage's first.
                        if this_step + 1 == S::STEPS {
                            cp_async::commit_group();
                            cp_async::wait_for_oldest::<STAGES>();
                            thread::sync_cta();
                            read = next_stage(read);
                        } else {
                            a.start_whole(whole_a, write, this_step, S::STEPS - 1);
                            b.start_whole(whole_b, write + b_panel, this_step, S::STEPS - 1);
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
                            multiply(&mut c, this, S::DTYPE, S::WARP_TILE, QUAD);
                            a_reader.round(&mut next.a, S::DTYPE, QUAD);
                            b_reader.round(&mut next.b, S::DTYPE, QUAD);
                        });
                    }
                });
                a.advance();
                b.advance();
                write = next_stage(write);
                depth += block_k;
            }
            // No copy may be in flight into memory that is used again.
            cp_async::wait_all();
            thread::sync_cta();
        }
        c
    }
}
