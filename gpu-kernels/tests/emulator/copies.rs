//! TMA: expected bytes, tensor maps, and waits at the end.

use gpu_kernels::isa::{mbarrier, shared, tma};
use tilewise_emulator::{Check, Memory};

use crate::{BOX_BYTES, NORMAL, cta, matrix, run, set_up, shared as at, tid};

/// Offset of the mbarrier.
const BARRIER: u32 = 16 << 10;

/// The check that fails if thread 0 expects `expected` bytes of a load of a box at
/// (`x`, `y`).
fn load_at((x, y): (i32, i32), expected: u32, waits: bool) -> Option<Check> {
    let (mut memory, _, map) = matrix();
    let kernel = || {
        // SAFETY: emulated; here and below, the test checks that the emulator reports
        // the violations.
        unsafe {
            set_up(at(BARRIER), 1);
            if tid() == 0 {
                mbarrier::arrive_expecting(at(BARRIER), expected);
                tma::load(at(0), map, (x as u32, y as u32), at(BARRIER), NORMAL);
                if waits {
                    mbarrier::wait(at(BARRIER), 0);
                }
            }
        }
    };
    run(&mut memory, cta(32), kernel).map(|report| report.check)
}

/// [`load_at`] for the box at the first element.
fn load(expected: u32, waits: bool) -> Option<Check> {
    load_at((0, 0), expected, waits)
}

#[test]
fn the_bytes_expected_are_those_that_land() {
    assert_eq!(load(BOX_BYTES, true), None);
    assert_eq!(load(BOX_BYTES + 16, true), Some(Check::ByteCount));
    assert_eq!(load(BOX_BYTES - 16, true), Some(Check::ByteCount));
}

#[test]
fn bytes_of_two_loads_may_land_in_any_order() {
    let (mut memory, _, map) = matrix();
    let kernel = || {
        // SAFETY: emulated.
        unsafe {
            set_up(at(BARRIER), 1);
            if tid() == 0 {
                tma::load(at(0), map, (0, 0), at(BARRIER), NORMAL);
                tma::load(at(BOX_BYTES), map, (0, 0), at(BARRIER), NORMAL);
                mbarrier::arrive_expecting(at(BARRIER), 2 * BOX_BYTES);
            }
            mbarrier::wait(at(BARRIER), 0);
            assert_eq!(shared::load_u32(at(2 * BOX_BYTES - 4)), 0x3c00_3c00);
        }
    };
    assert_eq!(run(&mut memory, cta(32), kernel), None);
}

#[test]
fn a_cta_waits_for_what_lands_in_its_memory() {
    assert_eq!(load(BOX_BYTES, false), Some(Check::PeerGone));
}

/// The check that fails if thread 0 stores a box at (`x`, `y`).
fn store((x, y): (i32, i32), waits: bool) -> Option<Check> {
    let (mut memory, _, map) = matrix();
    let kernel = || {
        if tid() == 0 {
            // SAFETY: emulated.
            unsafe {
                for chunk in 0..BOX_BYTES / 16 {
                    shared::store_u32x4(at(16 * chunk), [0; 4]);
                }
                tma::fence_shared();
                tma::store_if(true, map, at(0), x as u32, y as u32);
                tma::commit_stores_if(true);
                if waits {
                    tma::wait_stores_read_if::<0>(true);
                }
            }
        }
    };
    run(&mut memory, cta(32), kernel).map(|report| report.check)
}

#[test]
fn a_thread_waits_for_its_stores_to_read_shared_memory() {
    assert_eq!(store((0, 0), true), None);
    assert_eq!(store((0, 0), false), Some(Check::PeerGone));
}

#[test]
fn stores_start_inside_the_tensor_or_behind_it() {
    assert_eq!(store((64, 0), true), None);
    assert_eq!(store((-8, 0), true), Some(Check::InvalidArgument));
    assert_eq!(store((0, -1), true), Some(Check::InvalidArgument));
}

#[test]
fn loads_may_start_before_the_tensor() {
    assert_eq!(load_at((-8, -1), BOX_BYTES, true), None);
}

#[test]
fn boxes_start_at_16_bytes_of_a_line() {
    assert_eq!(load_at((8, 1), BOX_BYTES, true), None);
    assert_eq!(store((8, 1), true), None);
    for x in [-7, 1, 4, 63] {
        let refused = Some(Check::InvalidArgument);
        assert_eq!(load_at((x, 0), BOX_BYTES, true), refused, "load at {x}");
        assert_eq!(store((x, 0), true), refused, "store at {x}");
    }
}

#[test]
fn boxes_lie_inside_shared_memory_and_aligned() {
    let (mut memory, _, map) = matrix();
    let mut load_to = |offset: u32| {
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                set_up(at(0), 1);
                if tid() == 0 {
                    mbarrier::arrive_expecting(at(0), BOX_BYTES);
                    tma::load(at(offset), map, (0, 0), at(0), NORMAL);
                    mbarrier::wait(at(0), 0);
                }
            }
        };
        run(&mut memory, cta(32), kernel).map(|report| report.check)
    };
    assert_eq!(load_to(1024), None);
    assert_eq!(load_to(64), Some(Check::Misaligned));
    assert_eq!(load_to((64 << 10) - 4096), Some(Check::OutOfBounds));
}

#[test]
fn maps_are_maps() {
    let mut memory = Memory::new();
    let map = memory.allocate(128);
    memory.write(map, &[1; 128]).unwrap();
    let kernel = || {
        if tid() == 0 {
            // SAFETY: emulated.
            unsafe { tma::prefetch_map(map) };
        }
    };
    let report = run(&mut memory, cta(32), kernel).unwrap();
    assert_eq!(report.check, Check::InvalidArgument);
    assert!(report.detail.contains("no tensor map"), "{}", report.detail);
}
