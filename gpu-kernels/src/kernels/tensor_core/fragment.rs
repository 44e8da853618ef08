//! Shared memory to registers, and the multiplication of what is there.

use crate::isa::{convert, mma, shared};
use crate::kernel::Major;
use crate::kernels::tensor_core::layout::Panel;
use crate::kernels::tensor_core::unroll;
use crate::problem::DType;

/// Quads of one operand of one warp and step: at most 64 along M or N.
pub const MAX_QUADS: usize = 4;

/// The f32 accumulators of one warp: `[quad of A][n8 tile]`.
pub type Accumulators = [[[f32; 4]; 2 * MAX_QUADS]; MAX_QUADS];

/// One operand's fragments of one step.
pub type Quads = [[u32; 4]; MAX_QUADS];

/// Loads the quads of step `step` of a warp tile `extent` wide.
///
/// # Safety
/// `lane_offset` is this lane's [`Panel::lane_offset`], `address` that of a
/// complete panel; all lanes execute it.
#[inline(always)]
pub unsafe fn load(
    quads: &mut Quads,
    panel: Panel,
    extent: u32,
    address: u32,
    lane_offset: u32,
    step: u32,
) {
    unroll!(QUAD in [0, 1, 2, 3] {
        if 16 * QUAD < extent {
            // SAFETY: the quad lies inside the panel; the rest is the caller's duty.
            quads[QUAD as usize] = unsafe {
                if panel.scalar_fragments() {
                    let word = |register| {
                        let offset = panel.quad_offset(lane_offset, QUAD, step, register);
                        shared::load_f32(address + offset).to_bits()
                    };
                    [word(0), word(1), word(2), word(3)]
                } else {
                    let row = address + panel.quad_offset(lane_offset, QUAD, step, 0);
                    match panel.major {
                        Major::K => mma::load_matrices(row),
                        Major::Mn => mma::load_matrices_transposed(row),
                    }
                }
            };
        }
    });
}

/// Rounds quad `quad` of f32 fragments to TF32 (the tensor core would
/// truncate); nothing for 16-bit types and past the warp tile's `extent`.
#[inline(always)]
fn round(quads: &mut Quads, dtype: DType, extent: u32, quad: u32) {
    if matches!(dtype, DType::Tf32) && 16 * quad < extent {
        let [x, y, z, w] = quads[quad as usize];
        let round = |bits| convert::tf32_from_f32(f32::from_bits(bits));
        quads[quad as usize] = [round(x), round(y), round(z), round(w)];
    }
}

/// The fragments of both operands for one step.
#[derive(Clone, Copy)]
pub struct Fragments {
    /// A's.
    pub a: Quads,
    /// B's.
    pub b: Quads,
}

impl Fragments {
    /// Rounds what was loaded, for a `warp_m`×`warp_n` tile of `dtype`.
    #[inline(always)]
    pub fn round(&mut self, dtype: DType, warp_m: u32, warp_n: u32) {
        unroll!(QUAD in [0, 1, 2, 3] {
            round(&mut self.a, dtype, warp_m, QUAD);
            round(&mut self.b, dtype, warp_n, QUAD);
        });
    }
}

/// One step: accumulators of a `warp_m`×`warp_n` tile += A · B of `this`.
/// Between the rows of products it rounds `next`, so that neither the tensor
/// core nor the arithmetic units wait for the other.
///
/// # Safety
/// All lanes execute it.
#[inline(always)]
pub unsafe fn multiply(
    c: &mut Accumulators,
    this: &Fragments,
    next: &mut Fragments,
    dtype: DType,
    warp_m: u32,
    warp_n: u32,
) {
    unroll!(I in [0, 1, 2, 3] {
        unroll!(J in [0, 1, 2, 3, 4, 5, 6, 7] {
            if 16 * I < warp_m && 8 * J < warp_n {
                let quad = this.b[J as usize / 2];
                let b = if J % 2 == 0 { [quad[0], quad[1]] } else { [quad[2], quad[3]] };
                let (c, a) = (&mut c[I as usize][J as usize], this.a[I as usize]);
                // SAFETY: the caller's duty.
                unsafe {
                    match dtype {
                        DType::F16 => mma::multiply_f16(c, a, b),
                        DType::Bf16 => mma::multiply_bf16(c, a, b),
                        DType::Tf32 => mma::multiply_tf32(c, a, b),
                        // Excluded by the kernel's checks.
                        DType::F32 => {}
                    }
                }
            }
        });
        round(&mut next.a, dtype, warp_m, I);
        round(&mut next.b, dtype, warp_n, I);
    });
}
