//! CTAs that reach into each other's shared memory.

use gpu_kernels::isa::{cluster, dependency, global, mbarrier, shared, thread};
use tilewise_emulator::{Check, Memory, Options};

use crate::{cluster as config, cta, run_with, shared as at, tid, verdict};

/// Rank 0 stores into rank 1's memory, between cluster barriers, and rank 1 reads it.
fn exchange(release: bool, last_barrier: bool) -> Option<Check> {
    verdict(config(2, 32), move || {
        // SAFETY: emulated; here and below, the test checks that the emulator reports
        // the violations.
        unsafe {
            cluster::arrive_relaxed();
            cluster::wait();
            if cluster::rank() == 0 && tid() == 0 {
                cluster::store_f32x4(cluster::address_in(at(0), 1), [1.0; 4]);
            }
            if last_barrier {
                if release {
                    cluster::arrive();
                } else {
                    cluster::arrive_relaxed();
                }
                cluster::wait();
                if cluster::rank() == 1 {
                    assert_eq!(shared::load_f32(at(4)), 1.0);
                }
            }
        }
    })
}

#[test]
fn a_released_store_is_seen_behind_the_clusters_barrier() {
    assert_eq!(exchange(true, true), None);
    assert_eq!(exchange(false, true), Some(Check::DataRace));
}

#[test]
fn a_cta_stays_while_its_peers_use_its_memory() {
    assert_eq!(exchange(true, false), Some(Check::PeerGone));
}

#[test]
fn remote_arrivals_are_part_of_that() {
    // What a CTA does before it ends: nothing, wait at a relaxed or a releasing cluster barrier, or
    // there and for the arrival.
    let arrive = |end: &'static str| {
        verdict(config(2, 32), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    mbarrier::init(at(0), 1);
                    mbarrier::fence_init();
                }
                cluster::arrive_relaxed();
                cluster::wait();
                if tid() == 0 {
                    mbarrier::arrive_at_if(true, at(0), 1 - cluster::rank());
                }
                match end {
                    "nothing" => return,
                    "releasing" => cluster::arrive(),
                    _ => cluster::arrive_relaxed(),
                }
                cluster::wait();
                if end == "arrival" {
                    mbarrier::wait(at(0), 0);
                }
            }
        })
    };
    // A relaxed barrier orders no arrival: it may still be on its way.
    for end in ["nothing", "relaxed"] {
        assert_eq!(arrive(end), Some(Check::PeerGone), "{end}");
    }
    for end in ["releasing", "arrival"] {
        assert_eq!(arrive(end), None, "{end}");
    }
}

#[test]
fn mbarriers_of_peers_are_initialised_behind_a_fence() {
    let arrive = |fence: bool| {
        verdict(config(2, 32), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    mbarrier::init(at(0), 1);
                    if fence {
                        mbarrier::fence_init();
                    }
                }
                cluster::arrive_relaxed();
                cluster::wait();
                if tid() == 0 {
                    mbarrier::arrive_at_if(true, at(0), 1 - cluster::rank());
                }
                cluster::arrive();
                cluster::wait();
            }
        })
    };
    assert_eq!((arrive(true), arrive(false)), (None, Some(Check::DataRace)));
}

#[test]
fn arrivals_and_waits_alternate() {
    let twice = verdict(config(2, 32), || {
        // SAFETY: emulated.
        unsafe {
            cluster::arrive();
            cluster::arrive();
        }
    });
    assert_eq!(twice, Some(Check::BarrierDivergence));
}

#[test]
fn ranks_are_those_of_the_cluster() {
    let reach = |rank: u32| {
        verdict(config(2, 32), move || {
            // SAFETY: emulated.
            unsafe {
                if tid() == 0 {
                    cluster::store_f32x4(cluster::address_in(at(16 * tid()), rank), [0.0; 4]);
                }
                cluster::arrive();
                cluster::wait();
            }
        })
    };
    // Both CTAs store to rank 1's memory.
    assert_eq!(reach(1), Some(Check::DataRace));
    assert_eq!(reach(2), Some(Check::InvalidArgument));
}

#[test]
fn an_earlier_grid_is_waited_for() {
    let mut memory = Memory::new();
    let address = memory.allocate(4);
    memory.write(address, &[0; 4]).unwrap();
    let overlapping = Options {
        overlaps: true,
        ..Options::default()
    };
    let mut load = |waits: bool, options: &Options| {
        let kernel = || {
            if waits {
                dependency::wait();
            }
            if thread::thread_index() == 0 {
                // SAFETY: emulated.
                unsafe { global::load_u32(address) };
            }
        };
        let reports = run_with(&mut memory, cta(32), options, kernel).err();
        reports.map(|reports| reports[0].check)
    };
    assert_eq!(load(true, &overlapping), None);
    assert_eq!(load(false, &overlapping), Some(Check::DependencyNotAwaited));
    assert_eq!(load(false, &Options::default()), None);
}
