//! The main loop of one tile: it copies STAGES − 1 blocks ahead, loads fragments
//! one step ahead, and multiplies.

use crate::dtype::Contiguous;
use crate::dtype::ElementType;
use crate::isa::{cp_async, thread};
use crate::unroll::unroll;

use super::TensorCore;
use super::copy::Copier;
use super::fragment::{Accumulators, Fragments, Reader, multiply};

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    const STAGES: u32,
> TensorCore<T, A, B, BM, BN, BK, WM, WN, STAGES>
{
    /// Runs the pipeline of one tile, and returns this lane's accumulators after
    /// all of `k`. Before and after, shared memory is free and no copy is pending.
    ///
    /// # Safety
    /// All threads of the CTA execute it; `base` is the address of
    /// `PIPELINE_BYTES` of shared memory; the copiers describe live operands.
    #[inline(always)]
    pub(super) unsafe fn accumulate(
        mut a: Copier,
        mut b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators {
        let next_stage = |address: u32| {
            if address + Self::STAGE_BYTES < base + Self::PIPELINE_BYTES {
                address + Self::STAGE_BYTES
            } else {
                base
            }
        };
        let b_panel = Self::A_PANEL.bytes();

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
            while copied < (STAGES - 1) * BK {
                let (whole_a, whole_b) = (a.is_whole(copied), b.is_whole(copied));
                a.copy_edge(whole_a, copied, write);
                b.copy_edge(whole_b, copied, write + b_panel);
                a.start_whole(whole_a, write, 0, 1);
                b.start_whole(whole_b, write + b_panel, 0, 1);
                cp_async::commit_group();
                a.advance();
                b.advance();
                write += Self::STAGE_BYTES;
                copied += BK;
            }
            cp_async::wait_for_oldest::<STAGES>();
            thread::sync_cta();

            let mut read = base;
            let (a_first, b_first) = (a_reader.here(), b_reader.here());
            unroll!(QUAD < 4, {
                a_first.load(&mut even.a, read, 0, QUAD);
                b_first.load(&mut even.b, read + b_panel, 0, QUAD);
                a_reader.round(&mut even.a, T::DTYPE, QUAD);
                b_reader.round(&mut even.b, T::DTYPE, QUAD);
            });

            let mut depth = 0;
            while depth < k {
                let copied = depth + (STAGES - 1) * BK;
                let (whole_a, whole_b) = (a.is_whole(copied), b.is_whole(copied));
                a.copy_edge(whole_a, copied, write);
                b.copy_edge(whole_b, copied, write + b_panel);
                unroll!(INDEX < 8, {
                    let this_step = INDEX as u32;
                    if this_step < Self::STEPS {
                        // The last step's next fragments are the next stage's first.
                        if this_step + 1 == Self::STEPS {
                            cp_async::commit_group();
                            cp_async::wait_for_oldest::<STAGES>();
                            thread::sync_cta();
                            read = next_stage(read);
                        } else {
                            a.start_whole(whole_a, write, this_step, Self::STEPS - 1);
                            b.start_whole(whole_b, write + b_panel, this_step, Self::STEPS - 1);
                        }
                        let (this, next) = if this_step.is_multiple_of(2) {
                            (&even, &mut odd)
                        } else {
                            (&odd, &mut even)
                        };
                        let step = (this_step + 1) % Self::STEPS;
                        let (a_reader, b_reader) = (a_reader.here(), b_reader.here());
                        unroll!(QUAD < 4, {
                            a_reader.load(&mut next.a, read, step, QUAD);
                            b_reader.load(&mut next.b, read + b_panel, step, QUAD);
                            multiply(&mut c, this, T::DTYPE, (WM, WN), QUAD);
                            a_reader.round(&mut next.a, T::DTYPE, QUAD);
                            b_reader.round(&mut next.b, T::DTYPE, QUAD);
                        });
                    }
                });
                a.advance();
                b.advance();
                write = next_stage(write);
                depth += BK;
            }
            // No copy may be in flight into memory that is used again.
            cp_async::wait_all();
            thread::sync_cta();
        }
        c
    }
}
