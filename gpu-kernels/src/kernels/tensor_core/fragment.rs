//! Shared memory to registers, and the multiplication of the fragments there.
//!
//! Everything works on one quad (what one `ldmatrix` loads) or on one row (16 along M, one
//! `mma` deep) at a time: the kernel alternately loads a quad of the next step and multiplies
//! a row of this one, which keeps both units busy and few registers alive.

use crate::dtype::DType;
use crate::dtype::Major;
use crate::isa::{convert, hint::compute_here, mma, shared};

use super::layout::{MAX_QUADS, Panel, pair, register};
use crate::unroll::unroll;

/// The f32 accumulators of one warp: `[row of 16][n8 tile]`.
pub type Accumulators = [[[f32; 4]; 8]; 4];

/// One operand's fragments of one step.
pub type Quads = [[u32; 4]; MAX_QUADS];

/// The fragments of both operands for one step.
#[derive(Clone, Copy)]
pub struct Fragments {
    /// Fragments of A.
    pub a: Quads,
    /// Fragments of B.
    pub b: Quads,
}

/// One warp's part of one operand's panels, as one lane reads it.
#[derive(Clone, Copy)]
pub struct Reader {
    panel: Panel,
    /// WARP_M or WARP_N.
    extent: u32,
    lane_offset: u32,
}

impl Reader {
    /// The reader of `lane` for the `extent` elements from `origin` on.
    #[inline(always)]
    pub fn new(panel: Panel, origin: u32, extent: u32, lane: u32) -> Self {
        Reader {
            panel,
            extent,
            lane_offset: panel.lane_offset(origin, lane),
        }
    }

    /// The same reader, with its addresses computed from here on. LLVM would
    /// otherwise compute the addresses of all quads and steps before the loop,
    /// which takes more registers than a thread has; here each costs an addition.
    #[inline(always)]
    pub fn here(self) -> Self {
        Reader {
            lane_offset: compute_here(self.lane_offset),
            ..self
        }
    }

    /// Loads quad `quad` of step `step` from the panel at `address`; does nothing
    /// for a quad past the warp tile.
    ///
    /// # Safety
    /// All lanes execute it; `address` is the address of a complete panel; `quad`
    /// is a constant below `MAX_QUADS`.
    #[inline(always)]
    pub unsafe fn load(&self, quads: &mut Quads, address: u32, step: u32, quad: usize) {
        if self.panel.quad_extent() * quad as u32 >= self.extent {
            return;
        }
        let offset = |register| {
            self.panel
                .quad_offset(self.lane_offset, quad as u32, step, register)
        };
        // SAFETY: the quad lies inside the panel; the rest is the caller's duty.
        quads[quad] = unsafe {
            if self.panel.scalar_fragments() {
                let word = |register| shared::load_f32(address + offset(register)).to_bits();
                [word(0), word(1), word(2), word(3)]
            } else {
                match self.panel.major {
                    Major::K => mma::load_matrices(address + offset(0)),
                    Major::Mn => mma::load_matrices_transposed(address + offset(0)),
                }
            }
        };
    }

    /// Rounds quad `quad` of f32 fragments to TF32, because the tensor core would
    /// truncate them; does nothing for 16-bit types and past the warp tile.
    #[inline(always)]
    pub fn round(&self, quads: &mut Quads, dtype: DType, quad: usize) {
        if matches!(dtype, DType::Tf32) && 16 * (quad as u32) < self.extent {
            let [x, y, z, w] = quads[quad];
            let round = |bits| convert::tf32_from_f32(f32::from_bits(bits));
            quads[quad] = [round(x), round(y), round(z), round(w)];
        }
    }
}

/// Multiplies row `row` of one step: adds A · B to its 16×WARP_N accumulators; does nothing
/// past the warp tile.
///
/// # Safety
/// All lanes execute it; `row` is a constant below 4.
#[inline(always)]
pub unsafe fn multiply(
    c: &mut Accumulators,
    fragments: &Fragments,
    dtype: DType,
    (warp_m, warp_n): (u32, u32),
    row: usize,
) {
    unroll!(J < 8, {
        if 16 * (row as u32) < warp_m && 8 * (J as u32) < warp_n {
            let (a, b) = (fragments.a[row], pair(&fragments.b, J));
            let c = &mut c[row][J];
            // SAFETY: the caller's duty.
            unsafe {
                match dtype {
                    DType::F16 | DType::F16x3 => mma::multiply_f16(c, a, b),
                    DType::Bf16 => mma::multiply_bf16(c, a, b),
                    DType::Tf32 => mma::multiply_tf32(c, a, b),
                    // The kernel's checks exclude f32.
                    DType::F32 => {}
                }
            }
        }
    });
}

/// [`multiply`] for f16 by the `mma` of sm_75, whose steps are one chunk deep.
///
/// # Safety
/// See [`multiply`].
#[inline(always)]
pub unsafe fn multiply_f16_k8(
    c: &mut Accumulators,
    fragments: &Fragments,
    (warp_m, warp_n): (u32, u32),
    row: usize,
) {
    unroll!(J < 8, {
        if 16 * (row as u32) < warp_m && 8 * (J as u32) < warp_n {
            let (a, b) = (pair(&fragments.a, row), register(&fragments.b, J));
            // SAFETY: the caller's duty.
            unsafe { mma::multiply_f16_k8(&mut c[row][J], a, b) };
        }
    });
}
