//! Threads that must meet, and threads that never come.

use gpu_kernels::isa::{mbarrier, thread, warpgroup};
use tilewise_emulator::Check;

use crate::{cta, run, set_up, shared as at, tid, verdict};

#[test]
fn all_threads_come_to_the_ctas_barrier() {
    let meet = |threads: u32| {
        verdict(cta(64), move || {
            if tid() < threads {
                // SAFETY: emulated; here and below, the test checks that the emulator
                // reports the violations.
                unsafe { thread::sync_cta() };
            }
        })
    };
    assert_eq!((meet(64), meet(32)), (None, Some(Check::BarrierDivergence)));
}

#[test]
fn threads_come_to_the_same_barrier() {
    let meet = |barrier: u32| {
        verdict(cta(128), move || {
            // SAFETY: emulated.
            unsafe { warpgroup::sync(if tid() < 64 { 1 } else { barrier }) };
        })
    };
    assert_eq!((meet(1), meet(2)), (None, Some(Check::BarrierDivergence)));
}

#[test]
fn a_warp_is_together_where_it_must_be() {
    let together = |lanes: u32| {
        verdict(cta(32), move || {
            if tid() < lanes {
                // SAFETY: emulated.
                unsafe { thread::broadcast(1) };
            }
        })
    };
    assert_eq!(
        (together(32), together(31)),
        (None, Some(Check::BarrierDivergence))
    );
    let different = verdict(cta(32), || {
        // SAFETY: emulated.
        unsafe {
            if tid() < 16 {
                thread::broadcast(1);
            } else {
                thread::sync_warp();
            }
        }
    });
    assert_eq!(different, Some(Check::BarrierDivergence));
}

#[test]
fn what_never_happens_is_a_deadlock_that_names_who_waits() {
    let mut memory = tilewise_emulator::Memory::new();
    let kernel = || {
        // SAFETY: emulated.
        unsafe {
            set_up(at(0), 2);
            if tid() == 0 {
                mbarrier::arrive_if(true, at(0));
            }
            if tid().is_multiple_of(2) {
                mbarrier::wait(at(0), 0);
            }
        }
    };
    let report = run(&mut memory, cta(32), kernel).unwrap();
    assert_eq!(report.check, Check::Deadlock);
    let waits = "parity 0 of mbarrier 0x400, which is in phase 0 and lacks 1 arrivals";
    assert!(report.detail.contains(waits), "{}", report.detail);
}

#[test]
fn a_phase_takes_no_more_arrivals_than_it_expects() {
    let twice = verdict(cta(32), || {
        // SAFETY: emulated.
        unsafe {
            set_up(at(0), 1);
            if tid() == 0 {
                mbarrier::arrive_expecting(at(0), 16);
                mbarrier::arrive_if(true, at(0));
            }
        }
    });
    assert_eq!(twice, Some(Check::InvalidArgument));
}

#[test]
fn registers_are_claimed_after_others_release_them() {
    let claim = |release: bool| {
        verdict(cta(384), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() >= 128 {
                    warpgroup::claim_registers::<232>();
                } else if release {
                    warpgroup::release_registers::<40>();
                }
            }
        })
    };
    assert_eq!((claim(true), claim(false)), (None, Some(Check::Deadlock)));
}

#[test]
fn a_trap_and_a_panic_end_the_kernel() {
    let trap = verdict(cta(32), || {
        if tid() == 3 {
            thread::trap();
        }
    });
    assert_eq!(trap, Some(Check::Trap));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let panic = verdict(cta(32), || assert_ne!(tid(), 3));
    std::panic::set_hook(quiet);
    assert_eq!(panic, Some(Check::Trap));
}
