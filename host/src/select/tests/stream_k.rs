//! Kernels for stream-K and split-K, and when they are chosen.

use gpu_kernels::Cluster;

use super::*;
use crate::select::grid::{parts, stream_k_tiles};

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
        assert_eq!(choice.reduce, None, "the catalog has no kernel for split-K");
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

const REDUCES: &[KernelInfo] = &[TWINS[0], TWINS[1], reduce((128, 256))];

const fn reduce((m, n): (u32, u32)) -> KernelInfo {
    kernel("reduce", Family::Reduce, Arch::Sm90a, DType::F32, (m, n))
}

fn split(catalog: Catalog, problem: &Problem) -> Result<Choice, Error> {
    let request = Request {
        schedule: Some(Schedule::SplitK),
        ..Request::default()
    };
    choose(catalog, problem, &H200, &request)
}

#[test]
fn split_k_gives_each_tile_as_many_ctas() {
    let catalog = Catalog {
        kernels: REDUCES,
        ..CATALOG
    };
    let choice = split(catalog, &problem(DType::F16, 512, 1024, 6400)).unwrap();
    // 16 tiles.
    assert_eq!(choice.kernel.name, "shared");
    assert!(choice.stream_k_ctas >= 32 && choice.stream_k_ctas.is_multiple_of(16));
    assert_eq!(choice.reduce.unwrap().name, "reduce");
    assert_eq!(ctas(&choice, 132), (choice.stream_k_ctas, 1));
    assert_eq!(stream_k_tiles(&choice, ctas(&choice, 132)), 16);
    // Nothing to cut: one k-block, or more tiles than CTAs run at once. A CTA stores its tile.
    for whole in [
        problem(DType::F16, 512, 1024, 64),
        problem(DType::F16, 4096, 4096, 640),
    ] {
        let choice = split(catalog, &whole).unwrap();
        assert_eq!(choice.stream_k_ctas, choice.tiles());
        assert_eq!(
            (choice.reduce, ctas(&choice, 132).0),
            (None, choice.tiles())
        );
        assert_eq!(stream_k_tiles(&choice, ctas(&choice, 132)), 0);
    }
    // Both schedules of a kernel are worth measuring.
    let problem = problem(DType::F16, 512, 1024, 6400);
    let open = Request::default();
    let schedules: Vec<_> = choices(catalog, &problem, &H200, &open)
        .unwrap()
        .filter(|choice| choice.kernel.name == "shared")
        .map(|choice| choice.schedule)
        .collect();
    assert!(schedules.contains(&Schedule::SplitK) && schedules.contains(&Schedule::StreamK));
}

#[test]
fn split_k_needs_a_kernel_that_adds_and_pairs_in_one_launch() {
    let plain = problem(DType::F16, 512, 1024, 6400);
    let reason = |found: Result<Choice, Error>| match found {
        Err(Error::NoKernel { rejected, .. }) => {
            let of_shared = rejected.iter().find(|rejected| rejected.kernel == "shared");
            of_shared.unwrap().reason
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(split(CATALOG, &plain)), Rejection::NotBuilt);
}

const PARALLEL: &[KernelInfo] = &[
    TWINS[0],
    KernelInfo {
        cluster: Cluster { m: 2, n: 1, k: 1 },
        stream_k_bytes: 256 * 128 * 4 + 128,
        leaves_sums: true,
        fused: false,
        ..hopper("parallel", (128, 128), K, Mn)
    },
    reduce((256, 128)),
];

#[test]
fn clusters_that_leave_their_sums_split_deep_products() {
    let catalog = Catalog {
        kernels: PARALLEL,
        ..CATALOG
    };
    let open = Request::default();
    // 8 cluster tiles of 128 k-blocks, and 66 clusters.
    let deep = choose(catalog, &problem(DType::F16, 512, 512, 8192), &H200, &open).unwrap();
    assert_eq!(
        (deep.kernel.name, deep.schedule),
        ("parallel", Schedule::SplitK)
    );
    assert_eq!(deep.tiles(), 8);
    assert!(deep.stream_k_ctas > 8 && deep.stream_k_ctas.is_multiple_of(8));
    assert_eq!(deep.reduce.unwrap().name, "reduce");
    // CTAs of all clusters, and as many parts as clusters.
    assert_eq!(ctas(&deep, 132), (2 * deep.stream_k_ctas, 1));
    assert_ne!(stream_k_tiles(&deep, ctas(&deep, 132)), 0);
    let shallow = problem(DType::F16, 512, 512, 128);
    let shallow = choose(catalog, &shallow, &H200, &open).unwrap();
    assert_eq!(shallow.kernel.name, "whole");
}

#[test]
fn clusters_share_all_tiles_where_these_do_not_divide_them() {
    let catalog = Catalog {
        kernels: PARALLEL,
        ..CATALOG
    };
    let open = Request {
        kernel: Some("parallel".into()),
        ..Request::default()
    };
    // 50 cluster tiles for 66 clusters.
    let choice = choose(
        catalog,
        &problem(DType::F16, 12800, 128, 8192),
        &H200,
        &open,
    )
    .unwrap();
    assert_eq!((choice.tiles(), choice.stream_k_ctas), (50, 66));
    assert_eq!(ctas(&choice, 132), (132, 1));
    // A part for each cluster, and one more for each tile.
    assert_eq!(parts(&choice), 116);
    // In several columns, and in more than four waves, all tiles are cut likewise.
    for (n, tiles) in [(256, 100), (768, 300)] {
        let choice = choose(catalog, &problem(DType::F16, 12800, n, 8192), &H200, &open).unwrap();
        assert_eq!(choice.tiles(), tiles);
        assert!(choice.stream_k_ctas.is_multiple_of(tiles));
        assert_eq!(parts(&choice), choice.stream_k_ctas);
    }
}

#[test]
fn clusters_that_leave_their_sums_have_no_other_schedule() {
    let catalog = Catalog {
        kernels: PARALLEL,
        ..CATALOG
    };
    let forced = |problem: &Problem, schedule| {
        let request = Request {
            kernel: Some("parallel".to_owned()),
            schedule,
            ..Request::default()
        };
        choose(catalog, problem, &H200, &request)
    };
    // One part a tile where nothing is to be cut: another launch stores C all the same.
    for whole in [
        problem(DType::F16, 512, 512, 64),
        problem(DType::F16, 8192, 8192, 640),
    ] {
        let choice = forced(&whole, None).unwrap();
        assert_eq!(choice.schedule, Schedule::SplitK);
        assert_eq!(choice.reduce.unwrap().name, "reduce");
        assert!(choice.stream_k_ctas >= choice.tiles());
        let mut alone = choice;
        alone.kernel.cluster = Cluster::NONE;
        for ctas in [choice.tiles(), choice.stream_k_ctas, 132] {
            assert_eq!(stream_k_tiles(&alone, (ctas, 1)), alone.tiles(), "{ctas}");
        }
    }
    for schedule in [Schedule::StreamK, Schedule::Persistent, Schedule::Grid1d] {
        let refused = forced(&problem(DType::F16, 512, 512, 8192), Some(schedule));
        let Err(Error::KernelCannotRun { reason, .. }) = refused else {
            panic!("{schedule:?}: {refused:?}");
        };
        assert_eq!(reason, Rejection::Schedule { schedule });
    }
    // Without the kernel that adds, it computes nothing.
    let alone = Catalog {
        kernels: &PARALLEL[..2],
        ..CATALOG
    };
    let request = Request {
        kernel: Some("parallel".to_owned()),
        ..Request::default()
    };
    let deep = problem(DType::F16, 512, 512, 8192);
    let refused = choose(alone, &deep, &H200, &request);
    let Err(Error::KernelCannotRun { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, Rejection::NotBuilt);
}
