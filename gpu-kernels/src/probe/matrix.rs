//! `ldmatrix` and `stmatrix`: four matrices whose rows lie in any order.

use super::probe;
use crate::dtype::DType;
use crate::isa::{global, mma, shared, thread, warpgroup};
use crate::kernel::{Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// Bytes of four 8×8 matrices of 16-bit elements.
pub const MATRIX_BYTES: u32 = 4 * 8 * 16;

/// Lanes of a warp, and rows of four matrices.
const LANES: u32 = 32;

/// Address of this lane's share of record `cta` of an operand, `bytes` a lane.
#[inline(always)]
fn share(operand: u64, bytes: u32) -> u64 {
    let index = thread::cta_position().x * LANES + thread::thread_index();
    operand + index as u64 * bytes as u64
}

/// Copies [`MATRIX_BYTES`] of A to shared memory. A lane reads one word of B, the
/// number of the 16-byte row whose address it gives, and writes eight words to C: the
/// results of `ldmatrix.x4` and of `ldmatrix.x4.trans`.
pub struct LoadMatrices;

impl Kernel for LoadMatrices {
    const INFO: KernelInfo = probe(DType::F16, LANES, MATRIX_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the operands have a record for each CTA; rows are below 32.
        unsafe {
            let row = global::load_u32x4(share(params.a.address, 16));
            shared::store_u32x4(shared::base() + 16 * thread::thread_index(), row);
            let named = global::load_u32(share(params.b.address, 4));
            thread::sync_warp();
            let place = share(params.c.address, 32);
            let address = shared::base() + 16 * named;
            global::store_u32x4(place, mma::load_matrices(address));
            global::store_u32x4(place + 16, mma::load_matrices_transposed(address));
        }
    }
}

/// A lane reads four registers from A, and from B the number of the 16-byte row whose
/// address it gives (each lane a different row). The warp stores with `stmatrix.x4`, and
/// copies the [`MATRIX_BYTES`] of shared memory to C.
pub struct StoreMatrices;

impl Kernel for StoreMatrices {
    const INFO: KernelInfo = probe(DType::F16, LANES, MATRIX_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the operands have a record for each CTA; rows are below 32.
        unsafe {
            let registers = global::load_u32x4(share(params.a.address, 16));
            let named = global::load_u32(share(params.b.address, 4));
            warpgroup::store_matrices(shared::base() + 16 * named, registers);
            thread::sync_warp();
            let row = shared::base() + 16 * thread::thread_index();
            let words = [
                shared::load_u32(row),
                shared::load_u32(row + 4),
                shared::load_u32(row + 8),
                shared::load_u32(row + 12),
            ];
            global::store_u32x4(share(params.c.address, 16), words);
        }
    }
}
