//! TMA: one box, loaded or stored, at any position in its tensor.

use super::probe;
use crate::dtype::DType;
use crate::isa::{global, mbarrier, shared, thread, tma};
use crate::kernel::{Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress, MapOf};

/// Bytes of shared memory in which a box lies.
pub const BOX_AREA_BYTES: u32 = 32 * 1024;

/// The value of every word of the area before a load.
pub const UNTOUCHED: u32 = 0xa5a5_a5a5;

/// Offset of the area: after the barrier, at the swizzle's alignment.
const AREA: u32 = 1024;

/// Threads of the CTA.
const THREADS: u32 = 128;

/// Loads the box at (`m`, `n`) of the tensor that map A describes, of `k` bytes, to
/// byte `stream_k_ctas` of the area, and copies all of the area to C.
pub struct LoadBox;

impl Kernel for LoadBox {
    const INFO: KernelInfo = probe(DType::F16, THREADS, AREA + BOX_AREA_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, maps: MapAddress) {
        let (barrier, area) = (shared::base(), shared::base() + AREA);
        let first = 16 * thread::thread_index();
        // SAFETY: the box fits the area, whose writes are fenced before the copy.
        unsafe {
            if thread::thread_index() == 0 {
                mbarrier::init(barrier, 1);
                mbarrier::fence_init();
            }
            let mut at = first;
            while at < BOX_AREA_BYTES {
                shared::store_u32x4(area + at, [UNTOUCHED; 4]);
                at += 16 * THREADS;
            }
            tma::fence_shared();
            thread::sync_cta();
            if thread::thread_index() == 0 {
                mbarrier::arrive_expecting(barrier, params.k);
                tma::load(
                    area + params.stream_k_ctas,
                    maps.of(MapOf::A),
                    (params.m, params.n),
                    barrier,
                    tma::CachePolicy::EVICT_NORMAL,
                );
            }
            mbarrier::wait(barrier, 0);
            let mut at = first;
            while at < BOX_AREA_BYTES {
                let words = [
                    shared::load_u32(area + at),
                    shared::load_u32(area + at + 4),
                    shared::load_u32(area + at + 8),
                    shared::load_u32(area + at + 12),
                ];
                global::store_u32x4(params.c.address + at as u64, words);
                at += 16 * THREADS;
            }
        }
    }
}

/// Copies A to the area, and stores the box at byte `stream_k_ctas` of it to (`m`, `n`) of
/// the tensor that map C describes.
pub struct StoreBox;

impl Kernel for StoreBox {
    const INFO: KernelInfo = probe(DType::F16, THREADS, AREA + BOX_AREA_BYTES);

    #[inline(always)]
    unsafe fn run(params: &GemmParams, maps: MapAddress) {
        let area = shared::base() + AREA;
        let mut at = 16 * thread::thread_index();
        // SAFETY: A has the bytes of the area, which is complete and fenced before
        // the copy.
        unsafe {
            while at < BOX_AREA_BYTES {
                let words = global::load_u32x4(params.a.address + at as u64);
                shared::store_u32x4(area + at, words);
                at += 16 * THREADS;
            }
            tma::fence_shared();
            thread::sync_cta();
            if thread::thread_index() == 0 {
                let map = maps.of(MapOf::C);
                tma::store_if(true, map, area + params.stream_k_ctas, params.m, params.n);
                tma::commit_stores_if(true);
                tma::wait_stores_if(true);
            }
        }
    }
}
