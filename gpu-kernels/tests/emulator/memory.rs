//! Bounds, alignment, and reads of unwritten memory.

use gpu_kernels::isa::{convert, global, mbarrier, mma, shared, tma, warpgroup};
use tilewise_emulator::{Address, Check, Memory};

use crate::{BOX_BYTES, cta, matrix, run, shared as at, tid, verdict};

/// The check that fails for a kernel that thread 0 runs with the address of 64 bytes, the
/// first 32 of them written.
fn on_64_bytes(body: impl Fn(u64) + Sync) -> Option<Check> {
    let mut memory = Memory::new();
    let address = memory.allocate(64);
    memory.write(address, &[1; 32]).unwrap();
    let kernel = || {
        if tid() == 0 {
            body(address);
        }
    };
    run(&mut memory, cta(32), kernel).map(|report| report.check)
}

#[test]
fn global_accesses_stay_inside_an_allocation() {
    let load = |offset| {
        on_64_bytes(move |a| {
            // SAFETY: emulated; here and below, the test checks that the emulator reports
            // the violations.
            unsafe { global::load_u32(a + offset) };
        })
    };
    assert_eq!(load(28), None);
    assert_eq!(load(64), Some(Check::OutOfBounds));
    // SAFETY: as above.
    let store = |offset| on_64_bytes(move |a| unsafe { global::store_u32x4(a + offset, [7; 4]) });
    assert_eq!(store(48), None);
    assert_eq!(store(64), Some(Check::OutOfBounds));
    // SAFETY: as above.
    let null = on_64_bytes(|_| unsafe {
        global::load_u16(0);
    });
    assert_eq!(null, Some(Check::OutOfBounds));
}

#[test]
fn global_accesses_are_aligned_to_their_size() {
    let load = |offset| {
        on_64_bytes(move |a| {
            // SAFETY: emulated.
            unsafe { global::load_u32x4(a + offset) };
        })
    };
    assert_eq!(load(16), None);
    assert_eq!(load(8), Some(Check::Misaligned));
    // SAFETY: emulated.
    let store = |offset| on_64_bytes(move |a| unsafe { global::store_u32(a + offset, 7) });
    assert_eq!((store(4), store(2)), (None, Some(Check::Misaligned)));
}

#[test]
fn reports_say_who_and_where() {
    let mut memory = Memory::new();
    let address = memory.allocate(64);
    let kernel = || {
        if tid() == 5 {
            // SAFETY: emulated.
            unsafe { global::store_u32(address + 64, 0) };
        }
    };
    let report = run(&mut memory, cta(32), kernel).unwrap();
    assert_eq!((report.cta, report.thread), (0, Some(5)));
    assert_eq!(report.address, Some(Address::Global(address + 64)));
    let text = report.to_string();
    for part in ["OutOfBounds in micro", "thread 5", "st.global", "seed 0"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn global_memory_is_written_before_it_is_read() {
    let load = |offset| {
        on_64_bytes(move |a| {
            // SAFETY: emulated.
            unsafe { global::load_u32(a + offset) };
        })
    };
    assert_eq!((load(28), load(32)), (None, Some(Check::Uninitialized)));
}

#[test]
fn shared_accesses_stay_inside_and_aligned() {
    let store = |offset| {
        verdict(cta(32), move || {
            if tid() == 0 {
                // SAFETY: emulated.
                unsafe { shared::store_f32x4(at(offset), [0.0; 4]) };
            }
        })
    };
    assert_eq!(store((64 << 10) - 16), None);
    assert_eq!(store(64 << 10), Some(Check::OutOfBounds));
    assert_eq!(store(8), Some(Check::Misaligned));
    assert_eq!(store(0_u32.wrapping_sub(1024)), Some(Check::OutOfBounds));
}

/// The check that fails for a thread that uses a word of shared memory, written before or
/// not.
fn on_a_word(written: bool, uses: impl Fn(u32) + Sync) -> Option<Check> {
    verdict(cta(32), || {
        if tid() == 0 {
            // SAFETY: emulated.
            unsafe {
                if written {
                    shared::store_u32(at(0), 0x3f80_0000);
                }
                uses(shared::load_u32(at(0)));
            }
        }
    })
}

#[test]
fn shared_memory_is_written_before_what_is_read_is_used() {
    let unused = |_| {};
    assert_eq!(on_a_word(false, unused), None, "a pipeline may load ahead");
    // SAFETY: emulated.
    let store = |word| unsafe { shared::store_u32(at(64), word) };
    assert_eq!(on_a_word(true, store), None);
    assert_eq!(on_a_word(false, store), Some(Check::Uninitialized));
    let cvt = |word| {
        convert::f16x2_from_f32(0.0, f32::from_bits(word));
    };
    assert_eq!(on_a_word(true, cvt), None);
    assert_eq!(on_a_word(false, cvt), Some(Check::Uninitialized));
}

#[test]
fn fragments_are_written_before_they_are_multiplied() {
    let multiply = |rows_written: u32| {
        verdict(cta(32), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() < rows_written {
                    shared::store_u32x4(at(16 * tid()), [0; 4]);
                }
                gpu_kernels::isa::thread::sync_warp();
                let a = mma::load_matrices(at(16 * tid()));
                let mut c = [0.0; 4];
                mma::multiply_f16(&mut c, a, [0; 2]);
            }
        })
    };
    assert_eq!(multiply(32), None);
    assert_eq!(multiply(31), Some(Check::Uninitialized));
}

#[test]
fn matrices_are_stored_to_aligned_rows() {
    let store = |offset| {
        verdict(cta(32), move || {
            // SAFETY: emulated.
            unsafe { warpgroup::store_matrices(at(16 * tid() + offset), [0; 4]) };
        })
    };
    assert_eq!((store(0), store(8)), (None, Some(Check::Misaligned)));
}

#[test]
fn mbarriers_are_initialised_before_use() {
    let arrive = |initialise| {
        verdict(cta(32), move || {
            if tid() == 0 {
                // SAFETY: emulated.
                unsafe {
                    if initialise {
                        mbarrier::init(at(0), 1);
                    }
                    mbarrier::arrive_if(true, at(0));
                }
            }
        })
    };
    assert_eq!(
        (arrive(true), arrive(false)),
        (None, Some(Check::Uninitialized))
    );
}

#[test]
fn boxes_are_written_before_they_are_stored() {
    let (mut memory, _, map) = matrix();
    let mut store = |bytes: u32| {
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    for chunk in 0..bytes / 16 {
                        shared::store_u32x4(at(16 * chunk), [0; 4]);
                    }
                    tma::fence_shared();
                    tma::store_if(true, map, at(0), 0, 0);
                    tma::commit_stores_if(true);
                    tma::wait_stores_if(true);
                }
            }
        };
        run(&mut memory, cta(32), kernel).map(|report| report.check)
    };
    assert_eq!(store(BOX_BYTES), None);
    assert_eq!(store(BOX_BYTES - 16), Some(Check::Uninitialized));
}
