//! Kernels for stream-K, and when they are chosen.

use super::*;
use crate::select::grid::stream_k_tiles;

const TWINS: &[KernelInfo] = &[
    hopper("whole", (128, 256), K, Mn),
    KernelInfo {
        stream_k_bytes: 128 * 256 * 4 + 128,
        ..hopper("shared", (128, 256), K, Mn)
    },
];

const CATALOG: Catalog = Catalog {
    kernels: TWINS,
    is_built: |_| true,
};

fn listed(m: u32, n: u32, k: u32) -> Vec<Choice> {
    let problem = problem(DType::F16, m, n, k);
    let request = Request::default();
    choices(CATALOG, &problem, &H200, &request)
        .unwrap()
        .collect()
}

fn forced(schedule: Schedule, kernel: Option<&str>) -> Result<Choice, Error> {
    let request = Request {
        schedule: Some(schedule),
        kernel: kernel.map(str::to_owned),
        ..Request::default()
    };
    let problem = problem(DType::F16, 512, 1024, 640);
    choose(CATALOG, &problem, &H200, &request)
}

#[test]
fn is_chosen_where_the_last_wave_is_short() {
    // 2 waves and 24 tiles.
    let list = listed(3072, 3072, 8192);
    assert_eq!(list[0].kernel.name, "shared");
    assert_eq!(list[0].schedule, Schedule::StreamK);
    assert!(list.iter().any(|choice| choice.kernel.name == "whole"));
    assert!((48..=132).contains(&list[0].stream_k_ctas));
    assert_eq!(ctas(&list[0], 132), (132, 1));
    assert_eq!(stream_k_tiles(&list[0], (132, 1)), 24);
    for choice in list {
        assert!(choice.kernel.runs_under(choice.schedule), "{choice:?}");
        assert_eq!(
            choice.stream_k_ctas > 0,
            choice.schedule == Schedule::StreamK
        );
    }
}

#[test]
fn is_measured_only_where_tiles_are_left_over() {
    let is_listed = |m, n| listed(m, n, 4096).iter().any(|c| c.kernel.name == "shared");
    // 132 + 130 tiles: a choice, but not the rule's.
    assert!(is_listed(128 * 131, 512));
    assert_eq!(listed(128 * 131, 512, 4096)[0].kernel.name, "whole");
    // Two waves.
    assert!(!is_listed(128 * 132, 512));
    // Fewer tiles than CTAs; the rule's where they are deep.
    assert!(is_listed(1024, 1024));
    assert_eq!(listed(128, 512, 4096 * 4)[0].kernel.name, "shared");
    assert_eq!(listed(128, 512, 512)[0].kernel.name, "whole");
}

#[test]
fn is_forced_by_schedule_or_name() {
    // 16 tiles of 10 k-blocks, all of them shared.
    let choice = forced(Schedule::StreamK, None).unwrap();
    assert_eq!(choice.kernel.name, "shared");
    assert!((32..=132).contains(&choice.stream_k_ctas));
    assert_eq!(ctas(&choice, 132), (choice.stream_k_ctas, 1));
    assert_eq!(stream_k_tiles(&choice, ctas(&choice, 132)), 16);
    for (schedule, kernel) in [
        (Schedule::StreamK, "whole"),
        (Schedule::Persistent, "shared"),
        (Schedule::Grid1d, "shared"),
        (Schedule::Grid2d, "shared"),
    ] {
        let Err(Error::KernelCannotRun { reason, .. }) = forced(schedule, Some(kernel)) else {
            panic!("{kernel} under {schedule:?}");
        };
        assert_eq!(reason, Rejection::Schedule { schedule });
    }
    assert_eq!(forced(Schedule::Grid1d, None).unwrap().kernel.name, "whole");
}

#[test]
fn steps_are_counted_in_32_bits() {
    // A multiple of 8, for TMA.
    let deep = gpu_kernels::GemmParams::MAX_DIM as u32 / 8 * 8;
    let problem = problem(DType::F16, 128, 256, deep);
    let request = Request {
        schedule: Some(Schedule::StreamK),
        ..Request::default()
    };
    let error = choose(CATALOG, &problem, &H200, &request).unwrap_err();
    assert!(matches!(
        error,
        Error::TooManyTiles {
            schedule: Schedule::StreamK,
            ..
        }
    ));
}
