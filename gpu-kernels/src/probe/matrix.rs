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

/// The words of the row of shared memory with the number of this lane.
///
/// # Safety
/// Its 16 bytes are written, and a barrier stands behind.
#[inline(always)]
unsafe fn row_of_this_lane() -> [u32; 4] {
    let row = shared::base() + 16 * thread::thread_index();
    // SAFETY: the caller's duty.
    [0, 4, 8, 12].map(|offset| unsafe { shared::load_u32(row + offset) })
}

/// A lane reads four registers from A, and from B the number of the 16-byte row whose
/// address it gives (each lane a different row). The warp stores with `stmatrix.x4`, then with
/// `stmatrix.x4.trans`, and each lane copies its row of shared memory to C after each.
pub struct StoreMatrices;

impl Kernel for StoreMatrices {
    const INFO: KernelInfo = probe(DType::F16, LANES, MATRIX_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        // SAFETY: the operands have a record for each CTA; rows are below 32.
        unsafe {
            let registers = global::load_u32x4(share(params.a.address, 16));
            let named = global::load_u32(share(params.b.address, 4));
            let address = shared::base() + 16 * named;
            let place = share(params.c.address, 32);
            warpgroup::store_matrices(address, registers);
            thread::sync_warp();
            global::store_u32x4(place, row_of_this_lane());
            thread::sync_warp();
            warpgroup::store_matrices_transposed(address, registers);
            thread::sync_warp();
            global::store_u32x4(place + 16, row_of_this_lane());
        }
    }
}
