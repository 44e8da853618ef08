//! [`Multistage`] for elements in two parts ([`f16x3`]): three products of f16
//! for each product of f32.
//!
//! ```text
//! corrections  += low·high + high·low     2¹¹ times too large, all of K in the tensor cores
//! sums         += high·high               an f32 addition for each `mma`, 16 of K
//! the end      sums += corrections · 2⁻¹¹
//! ```
//!
//! A product of high parts stays in registers for one `mma` only, so a thread has two
//! accumulators for each element of its tile and not three. For each three `mma`, a thread
//! executes four additions.

use crate::f16x3;
use crate::isa::mma;
use crate::kernel::Arch;
use crate::unroll::unroll;

use super::copy::Copier;
use super::fragment::{Accumulators, Fragments, Reader};
use super::layout::pair;
use super::main_loop::{Blocking, MainLoop};
use super::multistage::Multistage;
use super::ring::Ring;

/// The main loop with `STAGES` stages in shared memory, filled by `cp.async`, each with the
/// panels of both parts.
pub struct MultistageParts<const STAGES: u32>;

/// The fragments of both parts for one step.
#[derive(Clone, Copy)]
struct Parts {
    low: Fragments,
    high: Fragments,
}

impl<const STAGES: u32> MainLoop for MultistageParts<STAGES> {
    const ARCH: Arch = Multistage::<STAGES>::ARCH;
    const STAGES: u32 = STAGES;
    const CTAS_PER_SM: u32 = Multistage::<STAGES>::CTAS_PER_SM;
    const SM_SHARED_BYTES: u32 = Multistage::<STAGES>::SM_SHARED_BYTES;
    const MAX_PASSES: u32 = Multistage::<STAGES>::MAX_PASSES;
    const MMA_CHUNKS: u32 = Multistage::<STAGES>::MMA_CHUNKS;
    const PARTS: u32 = 2;
    const HAS_BF16_AND_TF32: bool = Multistage::<STAGES>::HAS_BF16_AND_TF32;

    #[inline(always)]
    unsafe fn accumulate<S: Blocking>(
        a: Copier,
        b: Copier,
        a_reader: Reader,
        b_reader: Reader,
        base: u32,
        k: u32,
    ) -> Accumulators {
        // SAFETY: zeros are plain numbers. See `Multistage` for `zeroed`.
        let mut sums: Accumulators = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut corrections: Accumulators = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut even: Parts = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut odd: Parts = unsafe { core::mem::zeroed() };
        let load = |to: &mut Parts, panels: [u32; 2], step: u32, quad: usize| {
            let [a, b] = panels;
            let (a_high, b_high) = (a + S::A_PANEL.bytes(), b + S::B_PANEL.bytes());
            // SAFETY: all lanes execute it; the panels are complete.
            unsafe {
                a_reader.here().load(&mut to.low.a, a, step, quad);
                a_reader.here().load(&mut to.high.a, a_high, step, quad);
                b_reader.here().load(&mut to.low.b, b, step, quad);
                b_reader.here().load(&mut to.high.b, b_high, step, quad);
            }
        };

        // SAFETY: a stage is written only after the barrier that follows its
        // last read, and read only after the wait and the barrier that follow
        // its copies.
        unsafe {
            let mut ring = Ring::<S, STAGES>::fill(a, b, base);
            unroll!(QUAD < 4, { load(&mut even, ring.panels(), 0, QUAD) });
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
                        unroll!(QUAD < 4, {
                            load(next, ring.panels(), step, QUAD);
                            multiply(&mut sums, &mut corrections, this, S::WARP_TILE, QUAD);
                        });
                    }
                });
                ring.advance();
                depth += S::A_PANEL.depth;
            }
            ring.finish();
        }
        unroll!(I < 4, {
            unroll!(J < 8, {
                let corrections = corrections[I][J].map(f16x3::correction);
                add(&mut sums[I][J], corrections);
            });
        });
        sums
    }
}

/// Multiplies row `row` of one step: adds the products of high parts to its 16×WARP_N sums, and
/// the products of a low and a high part to its corrections; does nothing past the warp tile.
///
/// # Safety
/// All lanes execute it; `row` is a constant below 4.
#[inline(always)]
unsafe fn multiply(
    sums: &mut Accumulators,
    corrections: &mut Accumulators,
    parts: &Parts,
    (warp_m, warp_n): (u32, u32),
    row: usize,
) {
    let (low, high) = (&parts.low, &parts.high);
    unroll!(J < 8, {
        if 16 * (row as u32) < warp_m && 8 * (J as u32) < warp_n {
            let mut product = [0.0; 4];
            // SAFETY: the caller's duty.
            unsafe {
                mma::multiply_f16(&mut product, high.a[row], pair(&high.b, J));
                mma::multiply_f16(&mut corrections[row][J], low.a[row], pair(&high.b, J));
                mma::multiply_f16(&mut corrections[row][J], high.a[row], pair(&low.b, J));
            }
            add(&mut sums[row][J], product);
        }
    });
}

/// Adds to the registers of an accumulator.
#[inline(always)]
fn add(sums: &mut [f32; 4], terms: [f32; 4]) {
    unroll!(I < 4, {
        sums[I] += terms[I];
    });
}
