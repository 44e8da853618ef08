//! Conflicting accesses that nothing orders.

use gpu_kernels::isa::{cp_async, flag, global, mbarrier, shared, thread, warpgroup};
use tilewise_emulator::{Check, Memory};

use crate::{LaunchConfig, cta, run, set_up, shared as at, tid, verdict};

/// The check that fails if thread 0 writes a word, all threads call `order`, and thread 33
/// reads the word.
fn write_then_read(order: impl Fn() + Sync) -> Option<Check> {
    verdict(cta(64), || {
        // SAFETY: emulated; here and below, the test checks that the emulator reports
        // the violations.
        unsafe {
            if tid() == 0 {
                shared::store_u32(at(0), 1);
            }
            order();
            if tid() == 33 {
                shared::load_u32(at(0));
            }
        }
    })
}

#[test]
fn a_barrier_of_both_threads_orders_them() {
    // SAFETY: emulated.
    assert_eq!(write_then_read(|| unsafe { thread::sync_cta() }), None);
    assert_eq!(write_then_read(|| {}), Some(Check::DataRace));
    // A warp's barrier does not order the other warp.
    // SAFETY: emulated.
    let warps = write_then_read(|| unsafe { thread::sync_warp() });
    assert_eq!(warps, Some(Check::DataRace));
}

#[test]
fn reads_are_ordered_before_the_next_write() {
    let read_then_write = |barrier: bool| {
        verdict(cta(64), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 40 {
                    shared::store_u32(at(0), 1);
                }
                thread::sync_cta();
                shared::load_u32(at(0));
                if barrier {
                    thread::sync_cta();
                }
                if tid() == 40 {
                    shared::store_u32(at(0), 2);
                }
            }
        })
    };
    assert_eq!(read_then_write(true), None);
    assert_eq!(read_then_write(false), Some(Check::DataRace));
}

#[test]
fn threads_of_a_warp_race_too() {
    let neighbours = |barrier: bool| {
        verdict(cta(32), move || {
            // SAFETY: emulated.
            unsafe {
                shared::store_u32(at(4 * tid()), tid());
                if barrier {
                    thread::sync_warp();
                }
                shared::load_u32(at(4 * (tid() ^ 1)));
            }
        })
    };
    assert_eq!(neighbours(true), None);
    // The first thread reads an unwritten word, and does not use it.
    assert_eq!(neighbours(false), Some(Check::DataRace));
}

#[test]
fn named_barriers_order_those_who_meet_there() {
    let read_by = |reader: u32| {
        verdict(cta(256), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    shared::store_u32(at(0), 1);
                }
                warpgroup::sync(1 + tid() / 128);
                if tid() == reader {
                    shared::load_u32(at(0));
                }
            }
        })
    };
    assert_eq!((read_by(100), read_by(200)), (None, Some(Check::DataRace)));
}

#[test]
fn an_mbarrier_orders_arrivals_before_waits() {
    let handed_over = |waits: bool| {
        verdict(cta(64), move || {
            // SAFETY: emulated.
            unsafe {
                set_up(at(512), 1);
                if tid() == 0 {
                    shared::store_u32(at(0), 1);
                    mbarrier::arrive_if(true, at(512));
                }
                if tid() == 63 {
                    if waits {
                        mbarrier::wait(at(512), 0);
                    }
                    shared::load_u32(at(0));
                }
            }
        })
    };
    assert_eq!(
        (handed_over(true), handed_over(false)),
        (None, Some(Check::DataRace))
    );
}

#[test]
fn what_follows_an_arrival_is_not_ordered_by_it() {
    let late = verdict(cta(64), || {
        // SAFETY: emulated.
        unsafe {
            set_up(at(512), 1);
            if tid() == 0 {
                mbarrier::arrive_if(true, at(512));
                shared::store_u32(at(0), 1);
            }
            if tid() == 63 {
                mbarrier::wait(at(512), 0);
                shared::load_u32(at(0));
            }
        }
    });
    assert_eq!(late, Some(Check::DataRace));
}

#[test]
fn an_mbarrier_is_used_after_its_initialisation() {
    let arrive = |barrier: bool| {
        verdict(cta(64), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    mbarrier::init(at(0), 1);
                }
                if barrier {
                    thread::sync_cta();
                }
                if tid() == 0 {
                    mbarrier::arrive_if(true, at(0));
                }
                if tid() == 32 && barrier {
                    mbarrier::wait(at(0), 0);
                }
            }
        })
    };
    assert_eq!(arrive(true), None);
    let early = verdict(cta(32), || {
        // SAFETY: emulated.
        unsafe {
            if tid() == 0 {
                mbarrier::init(at(0), 1);
            }
            // `shfl.sync` brings the lanes together, and orders no memory.
            thread::broadcast(0);
            if tid() == 1 {
                mbarrier::arrive_if(true, at(0));
            }
        }
    });
    assert_eq!(early, Some(Check::DataRace));
}

#[test]
fn asynchronous_copies_are_waited_for_and_then_handed_on() {
    let copy = |wait: bool, barrier: bool| {
        let mut memory = Memory::new();
        let source = memory.allocate(16 * 64);
        memory.write(source, &[3; 16 * 64]).unwrap();
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                shared::store_u32x4(at(16 * tid()), [0; 4]);
                thread::sync_cta();
                cp_async::copy_16_if(true, at(16 * tid()), source + 16 * u64::from(tid()));
                cp_async::commit_group();
                if wait {
                    cp_async::wait_all();
                }
                if barrier {
                    thread::sync_cta();
                }
                shared::load_u32(at(16 * (63 - tid())));
                cp_async::wait_all();
            }
        };
        run(&mut memory, cta(64), kernel).map(|report| report.check)
    };
    assert_eq!(copy(true, true), None);
    assert_eq!(copy(true, false), Some(Check::DataRace));
    assert_eq!(copy(false, true), Some(Check::DataRace));
}

#[test]
fn constant_loads_are_of_memory_that_nobody_writes() {
    let load = |constant: bool| {
        let mut memory = Memory::new();
        let address = memory.allocate(16);
        memory.write(address, &[0; 16]).unwrap();
        let kernel = || {
            if tid() == 0 {
                // SAFETY: emulated.
                unsafe {
                    global::store_u32(address, 1);
                    if constant {
                        global::load_u32(address);
                    } else {
                        global::load_f32x4(address);
                    }
                }
            }
        };
        run(&mut memory, cta(32), kernel).map(|report| report.check)
    };
    assert_eq!((load(false), load(true)), (None, Some(Check::DataRace)));
}

#[test]
fn a_flag_orders_the_stores_of_one_cta_before_the_loads_of_another() {
    let handed_over = |raise_first: bool| {
        let mut memory = Memory::new();
        let (data, up) = (memory.allocate(16), memory.allocate(4));
        memory.write(data, &[0; 16]).unwrap();
        memory.write(up, &[0; 4]).unwrap();
        let config = LaunchConfig { ctas: 2, ..cta(32) };
        let kernel = || {
            if tid() != 0 {
                return;
            }
            // SAFETY: emulated.
            unsafe {
                if thread::cta_position().x == 0 {
                    if raise_first {
                        flag::raise_if(true, up);
                    }
                    global::store_f32x4(data, [1.0; 4]);
                    if !raise_first {
                        flag::raise_if(true, up);
                    }
                } else {
                    flag::wait(up);
                    global::load_f32x4(data);
                    flag::lower(up);
                }
            }
        };
        let mut reports = Vec::new();
        for seed in [0, 1] {
            let options = tilewise_emulator::Options {
                seed,
                ..Default::default()
            };
            let result = crate::run_with(&mut memory, config, &options, kernel);
            reports.extend(result.err().into_iter().flatten());
        }
        reports.first().map(|report| report.check)
    };
    assert_eq!(
        (handed_over(false), handed_over(true)),
        (None, Some(Check::DataRace))
    );
}
