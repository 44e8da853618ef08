//! Conflicts between ordinary accesses and accesses of TMA and wgmma.

use gpu_kernels::isa::{mbarrier, shared, thread, tma};
use tilewise_emulator::Check;

use crate::accumulators::{operands, product};
use crate::{BOX_BYTES, NORMAL, cta, matrix, run, set_up, shared as at, tid};

#[test]
fn tma_reads_behind_a_proxy_fence_of_the_writers() {
    #[derive(Clone, Copy, PartialEq)]
    enum Fence {
        None,
        BeforeBarrier,
        AfterBarrier,
    }
    let (mut memory, _, map) = matrix();
    let mut store = |fence: Fence| {
        let kernel = || {
            // SAFETY: emulated; the test checks that the emulator reports the violations.
            unsafe {
                for chunk in 0..BOX_BYTES / 16 / 64 {
                    shared::store_u32x4(at(16 * (64 * chunk + tid())), [0; 4]);
                }
                if fence == Fence::BeforeBarrier {
                    tma::fence_shared();
                }
                thread::sync_cta();
                if tid() == 0 {
                    if fence == Fence::AfterBarrier {
                        tma::fence_shared();
                    }
                    tma::store_if(true, map, at(0), 0, 0);
                    tma::commit_stores_if(true);
                    tma::wait_stores_if(true);
                }
            }
        };
        run(&mut memory, cta(64), kernel).map(|report| report.check)
    };
    assert_eq!(store(Fence::BeforeBarrier), None);
    assert_eq!(store(Fence::None), Some(Check::MissingProxyFence));
    // The writes of all threads are ordered before the barrier, and so before the fence.
    assert_eq!(store(Fence::AfterBarrier), None);
}

#[test]
fn wgmma_reads_behind_a_proxy_fence() {
    let multiply = |fence: bool| {
        crate::verdict(cta(128), move || {
            // SAFETY: emulated.
            unsafe {
                operands();
                if fence {
                    tma::fence_shared();
                }
                thread::sync_cta();
                product();
            }
        })
    };
    assert_eq!(multiply(true), None);
    assert_eq!(multiply(false), Some(Check::MissingProxyFence));
}

#[test]
fn a_load_is_waited_for_before_it_is_read() {
    let (mut memory, _, map) = matrix();
    let mut load = |wait: bool| {
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                set_up(at(16 << 10), 1);
                if tid() == 0 {
                    mbarrier::arrive_expecting(at(16 << 10), BOX_BYTES);
                    tma::load(at(0), map, (0, 0), at(16 << 10), NORMAL);
                }
                if wait {
                    mbarrier::wait(at(16 << 10), 0);
                }
                shared::load_u32(at(4 * tid()));
                mbarrier::wait(at(16 << 10), 0);
            }
        };
        run(&mut memory, cta(64), kernel).map(|report| report.check)
    };
    assert_eq!((load(true), load(false)), (None, Some(Check::DataRace)));
}

#[test]
fn staging_is_refilled_after_a_store_has_read_it() {
    let (mut memory, _, map) = matrix();
    let mut refill = |wait: bool| {
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                for chunk in 0..BOX_BYTES / 16 / 64 {
                    shared::store_u32x4(at(16 * (64 * chunk + tid())), [0; 4]);
                }
                tma::fence_shared();
                thread::sync_cta();
                if tid() == 0 {
                    tma::store_if(true, map, at(0), 0, 0);
                    tma::commit_stores_if(true);
                    if wait {
                        tma::wait_stores_read_if::<0>(true);
                    }
                }
                thread::sync_cta();
                shared::store_u32(at(4 * tid()), 1);
                if tid() == 0 {
                    tma::wait_stores_if(true);
                }
            }
        };
        run(&mut memory, cta(64), kernel).map(|report| report.check)
    };
    assert_eq!((refill(true), refill(false)), (None, Some(Check::DataRace)));
}
