//! Orders of events: a seed gives the same order each time, and seeds reach many orders.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use gpu_kernels::isa::{flag, mbarrier, shared, thread};
use tilewise_emulator::{Check, Fault, Instruction, Memory, Options};

use crate::{LaunchConfig, cluster, cta, run_with, set_up, shared as at, tid};

/// The order in which the warps' first lanes arrive at an mbarrier.
fn arrivals(seed: u64) -> Vec<u32> {
    let order = std::sync::Mutex::new(Vec::new());
    let kernel = || {
        // SAFETY: all threads set up; the mbarrier is initialised.
        unsafe {
            set_up(at(0), 4);
            if tid().is_multiple_of(32) {
                mbarrier::arrive_if(true, at(0));
                order.lock().unwrap().push(tid() / 32);
                mbarrier::wait(at(0), 0);
            }
        }
    };
    let options = Options {
        seed,
        ..Options::default()
    };
    run_with(&mut Memory::new(), cta(128), &options, kernel).unwrap();
    order.into_inner().unwrap()
}

#[test]
fn a_seed_replays_and_seeds_differ() {
    let orders: BTreeSet<_> = (0..20).map(arrivals).collect();
    assert!(orders.len() > 5, "{orders:?}");
    for seed in 0..20 {
        assert_eq!(arrivals(seed), arrivals(seed));
    }
    let report = |seed| {
        let options = Options {
            seed,
            ..Options::default()
        };
        // SAFETY: emulated; the kernel has a race, which every order shows.
        let kernel = || unsafe { shared::store_u32(at(0), 1) };
        run_with(&mut Memory::new(), cta(64), &options, kernel).unwrap_err()
    };
    assert_eq!(report(5), report(5));
    assert_eq!(report(5)[0].seed, 5);
}

#[test]
fn what_goes_wrong_in_some_orders_is_found_in_one() {
    // A wait for the wrong phase: where the arrivals come first, it waits for ever.
    let result = |seed| {
        let options = Options {
            seed,
            ..Options::default()
        };
        let kernel = || {
            // SAFETY: emulated.
            unsafe {
                set_up(at(0), 1);
                if tid() == 32 {
                    mbarrier::arrive_if(true, at(0));
                }
                if tid() == 0 {
                    mbarrier::wait(at(0), 1);
                }
            }
        };
        let reports = run_with(&mut Memory::new(), cta(64), &options, kernel).err();
        reports.map(|reports| reports[0].check)
    };
    let found: BTreeSet<_> = (0..30).map(result).collect();
    assert_eq!(found, BTreeSet::from([None, Some(Check::Deadlock)]));
}

#[test]
fn every_cta_runs_once_on_any_number_of_workers() {
    for (slots, workers) in [(1, 1), (3, 2), (7, 4), (100, 100)] {
        let (ran, sum) = (AtomicU32::new(0), AtomicU32::new(0));
        let options = Options {
            slots,
            workers,
            ..Options::default()
        };
        let config = LaunchConfig {
            ctas: 25,
            ..cta(32)
        };
        let kernel = || {
            if tid() == 0 {
                ran.fetch_add(1, SeqCst);
                sum.fetch_add(thread::cta_position().x, SeqCst);
            }
        };
        run_with(&mut Memory::new(), config, &options, kernel).unwrap();
        assert_eq!((ran.into_inner(), sum.into_inner()), (25, 300));
    }
}

#[test]
fn flags_that_nobody_raises_are_a_deadlock_of_each_cta_that_waits() {
    for (slots, workers) in [(1, 1), (2, 2), (4, 2)] {
        let mut memory = Memory::new();
        let up = memory.allocate(4);
        memory.write(up, &[0; 4]).unwrap();
        let options = Options {
            slots,
            workers,
            ..Options::default()
        };
        let config = LaunchConfig { ctas: 6, ..cta(32) };
        let kernel = || {
            if tid() == 0 && !thread::cta_position().x.is_multiple_of(3) {
                // SAFETY: emulated; the test checks the report of a flag that no thread
                // raises.
                unsafe { flag::wait(up) };
            }
        };
        let reports = run_with(&mut memory, config, &options, kernel).unwrap_err();
        let found: Vec<_> = reports.iter().map(|r| (r.cta, r.check)).collect();
        assert_eq!(found, [1, 2, 4, 5].map(|cta| (cta, Check::Deadlock)));
    }
}

#[test]
fn faults_change_and_drop_instructions() {
    let kernel = || {
        if tid() == 0 {
            // SAFETY: emulated.
            unsafe {
                shared::store_u32(at(0), 1);
                shared::store_u32(at(4), 2);
            }
        }
    };
    let run = |change| {
        let options = Options {
            faults: vec![Fault {
                instruction: Instruction::StoreShared,
                change,
            }],
            ..Options::default()
        };
        let counts = run_with(&mut Memory::new(), cta(32), &options, kernel);
        counts.map_err(|reports| reports[0].check)
    };
    let moved = run(|site, arguments| {
        arguments[0] += u64::from(2 * site.occurrence);
        true
    });
    assert_eq!(moved.unwrap_err(), Check::Misaligned);
    assert!(run(|_, _| false).is_ok());
}

#[test]
fn counts_are_those_of_the_kernel() {
    let kernel = || {
        // SAFETY: each thread has its own word.
        unsafe {
            shared::store_u32(at(128 * tid()), 1);
            thread::sync_cta();
            shared::load_u32(at(128 * tid()));
        }
    };
    let counts = run_with(&mut Memory::new(), cta(32), &Options::default(), kernel).unwrap();
    let executed = [
        Instruction::StoreShared,
        Instruction::LoadShared,
        Instruction::SyncCta,
        Instruction::LoadGlobal,
    ];
    assert_eq!(executed.map(|i| counts.executed(i)), [32, 32, 32, 0]);
    assert_eq!((counts.shared_accesses, counts.bank_conflicts), (2, 62));
}

/// Lanes run one after the other from barrier to barrier, so one is ahead of the others.
#[test]
fn accesses_of_lanes_belong_together_however_far_a_lane_is_ahead() {
    let kernel = || {
        for line in 0..300 {
            // 16 bytes a lane, of another line each time, which is turned by some chunks.
            let chunk = (tid() + line) % 32;
            // SAFETY: no lane writes another's chunk; the barriers are for the emulator alone.
            unsafe {
                shared::store_u32x4(at(16 * (32 * (line % 50) + chunk)), [0; 4]);
                if line % 50 == 49 {
                    thread::sync_warp();
                }
            }
        }
    };
    let counts = run_with(&mut Memory::new(), cta(32), &Options::default(), kernel).unwrap();
    assert_eq!(
        (counts.shared_accesses, counts.bank_conflicts),
        (4 * 300, 0)
    );
}

#[test]
fn launches_of_many_threads_wait_for_each_other() {
    // 16,384 threads each, of which two launches would have more stacks than Linux maps.
    let launch = || {
        let ran = AtomicU32::new(0);
        let config = LaunchConfig {
            ctas: 32,
            ..cluster(8, 512)
        };
        let kernel = || {
            ran.fetch_add(1, SeqCst);
        };
        run_with(&mut Memory::new(), config, &Options::default(), kernel).unwrap();
        assert_eq!(ran.into_inner(), 32 * 512);
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(launch);
        }
    });
}
