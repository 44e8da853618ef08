//! Tests of the list of configurations that are worth measuring.

use super::*;

fn of(problem: &Problem, target: &Target, request: &Request) -> Vec<Choice> {
    choices(CATALOG, problem, target, request)
        .unwrap()
        .collect()
}

fn open(problem: &Problem, target: &Target) -> Vec<Choice> {
    of(problem, target, &Request::default())
}

/// Kernels, each once, in the order of the list.
fn kernels(choices: &[Choice]) -> Vec<&'static str> {
    let mut names: Vec<_> = choices.iter().map(|choice| choice.kernel.name).collect();
    names.dedup();
    names
}

#[test]
fn the_head_is_what_is_chosen_and_nothing_is_listed_twice() {
    let mut layouts = Vec::new();
    for (m, n, k) in [
        (4096, 4096, 4096),
        (512, 1024, 64),
        (16, 4096, 512),
        (1, 1, 1),
    ] {
        for input in [DType::F32, DType::Tf32, DType::F16] {
            let straight = problem(input, m, n, k);
            let mut turned = straight;
            turned.c = Strides::new(1, m.into());
            layouts.extend([straight, turned, straight.transposed()]);
        }
    }
    for problem in layouts {
        for target in [H200, A100, T4] {
            let Ok(chosen) = choose(CATALOG, &problem, &target, &Request::default()) else {
                continue;
            };
            let list = open(&problem, &target);
            assert_eq!(list[0], chosen);
            for (index, choice) in list.iter().enumerate() {
                assert!(!list[..index].contains(choice), "{choice:?}");
                let seen = if choice.transposed {
                    problem.transposed()
                } else {
                    problem
                };
                if !choice.packed.any() {
                    assert_eq!(check(CATALOG, &choice.kernel, &seen, &target), Ok(()));
                }
            }
        }
    }
}

#[test]
fn every_family_that_can_run_is_listed_best_first() {
    let half = problem(DType::F16, 4096, 4096, 4096);
    assert_eq!(
        kernels(&open(&half, &H200)),
        [
            "hopper_kn",
            "hopper_kn_pair",
            "hopper_kn_64",
            "tc_f16_kn",
            "tiled_f16",
            "naive_f16",
        ],
        "of other layouts there are none: they would have to pack"
    );
    assert_eq!(
        kernels(&open(&half, &A100)),
        ["tc_f16_kn", "tiled_f16", "naive_f16"],
        "tc_f16_kk reads B against its lines"
    );
}

#[test]
fn orders_and_schedules_around_the_rules() {
    let request = Request {
        kernel: Some("hopper_kn".into()),
        ..Request::default()
    };
    let list = |m, n| of(&problem(DType::F16, m, n, 4096), &H200, &request);
    let walks = |m, n| -> Vec<_> {
        let list = list(m, n);
        list.iter().map(|c| (c.order, c.schedule)).collect()
    };
    let grouped = |size| TileOrder::GroupedM { size };
    assert_eq!(
        walks(8192, 8192),
        [
            (grouped(16), Schedule::Persistent),
            (grouped(8), Schedule::Persistent),
            (grouped(32), Schedule::Persistent),
            // √(132 · 128 / 256) = 8.1.
            (TileOrder::GroupedN { size: 8 }, Schedule::Persistent),
            (TileOrder::RowMajor, Schedule::Persistent),
            (grouped(16), Schedule::Grid1d),
        ]
    );
    // Ten rows of tiles: sixteen and more are column-major, as are ten.
    let orders: Vec<_> = walks(1280, 8192).iter().map(|walk| walk.0).collect();
    assert_eq!(
        orders.iter().filter(|order| **order == grouped(10)).count(),
        2
    );
    assert!(orders.contains(&grouped(5)) && !orders.contains(&grouped(20)));
    // One wave, one row: one walk.
    assert_eq!(walks(1024, 1024).len(), 1);
    assert_eq!(walks(128, 2048).len(), 1);
    // Many tiles in one row: one order, both schedules.
    assert_eq!(walks(128, 256 * 200).len(), 2);
}

#[test]
fn what_is_forced_holds_for_all() {
    let half = problem(DType::F16, 4096, 4096, 4096);
    let request = Request {
        order: Some(TileOrder::ColumnMajor),
        schedule: Some(Schedule::Grid1d),
        ..Request::default()
    };
    let list = of(&half, &H200, &request);
    assert_eq!(list.len(), kernels(&list).len());
    for choice in list {
        assert_eq!(choice.order, TileOrder::ColumnMajor);
        assert_eq!(choice.schedule, Schedule::Grid1d);
    }
    let grid2d = Request {
        schedule: Some(Schedule::Grid2d),
        ..Request::default()
    };
    let list = of(&half, &H200, &grid2d);
    assert!(
        list.iter()
            .all(|choice| choice.order == TileOrder::RowMajor)
    );
    assert!(!kernels(&list).contains(&"hopper_kn_pair"));
}

#[test]
fn a_narrow_c_is_listed_both_ways_round() {
    let hopper = |m, n| -> Vec<(&str, bool)> {
        let list = open(&problem(DType::F16, m, n, 1024), &H200);
        let hopper = list.iter().filter(|c| c.kernel.family == Family::Hopper);
        hopper.map(|c| (c.kernel.name, c.transposed)).collect()
    };
    // Bᵀ is contiguous along M then, Aᵀ along K.
    let narrow = hopper(16, 4096);
    assert!(!narrow[0].1 && narrow.contains(&("hopper_mk", true)));
    assert!(hopper(65, 4096).iter().all(|(_, transposed)| !transposed));
}

#[test]
fn behind_the_head_too_many_tiles_are_left_out() {
    // 2³² tiles of naive_f32, 2²⁶ of tiled_f32.
    let wide = problem(DType::F32, 1 << 20, 1 << 20, 1);
    assert_eq!(kernels(&open(&wide, &T4)), ["tiled_f32", "tiled_f32_64"]);
}

/// Measured on an H200, cold, bf16, nn, × `torch.bmm`: 1024 products of 64³ 1.03 by this kernel and
/// 0.97 by the next one, 16 of 512³ 0.97 and 0.96.
#[test]
fn small_products_of_a_batch_alternate_between_consumers() {
    for (batches, side, kernel) in [(1024, 64, "64x64x64"), (16, 512, "128x128x64")] {
        let mut products = problem(DType::Bf16, side, side, side);
        products.batches = batches;
        let square = u64::from(side * side);
        for operand in [&mut products.a, &mut products.b, &mut products.c] {
            operand.batch_stride = square;
        }
        let choice = choose(LIBRARY, &products, &H200, &Request::default()).unwrap();
        let expected = format!("hopper_bf16_ak_bn_{kernel}_pingpong");
        assert_eq!(choice.kernel.name, expected);
    }
}

/// On an H200, 256³ nn takes 6.3 µs by 64×32×64 with C along M and 6.1 by 64×64×128, cold, and 1.59 and
/// 1.73 back to back; 512³ takes 7.1 by both, and 2.26 and 2.21.
#[test]
fn small_products_take_the_tiles_that_were_measured_to_be_fast() {
    for (side, kernel) in [(256, "am_bk_cm_64x32x64"), (512, "ak_bn_64x64x128")] {
        let problem = problem(DType::F16, side, side, side);
        let choice = choose(LIBRARY, &problem, &H200, &Request::default()).unwrap();
        assert_eq!(choice.kernel.name, format!("hopper_f16_{kernel}"), "{side}");
    }
}

/// Measured on an H200, cold, × cuBLASLt: 392×11848×4360 nn 0.99 by this kernel, and 0.85 by the one
/// chosen before, whose consumers divide rows; 12608×776×8968 nt 0.99 and 0.96.
#[test]
fn consumers_divide_columns_where_the_rows_of_tiles_are_filled_so() {
    let nn = problem(DType::F16, 392, 11848, 4360);
    let mut nt = problem(DType::F16, 12608, 776, 8968);
    nt.b = Strides::new(1, 8968);
    for (problem, kernel) in [
        (nn, "am_bk_cm_192x208x64_cluster2x1"),
        (nt, "ak_bk_192x208x64_cluster2x1"),
    ] {
        let choice = choose(LIBRARY, &problem, &H200, &Request::default()).unwrap();
        assert_eq!(choice.kernel.name, format!("hopper_f16_{kernel}"));
        assert_eq!(choice.kernel.m64_tiles(), 3);
    }
}
