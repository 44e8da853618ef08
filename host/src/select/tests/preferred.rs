//! Tests of the kernels that go before one of less estimated time.

use super::super::choice::Fit;
use super::super::cost::Cost;
use super::super::preferred::put_first;
use super::*;

/// The names of these f16 kernels of A and B along K, which are sorted by their costs, with those that
/// are preferred first, for a product of this size.
fn reordered<'a>(costs: &[(u64, &'a str)], [m, n, k]: [u32; 3]) -> Vec<&'a str> {
    const WITHOUT_PACKING: Fit = Fit {
        transposed: false,
        packed: Packed { a: false, b: false },
        classes: 1,
    };
    let mut sorted: Vec<_> = (costs.iter())
        .map(|&(mean, name)| {
            let name = format!("hopper_f16_ak_bk_{name}");
            let kernel = LIBRARY.kernels.iter().find(|kernel| kernel.name == name);
            let cost = Cost {
                mean,
                loads: 0,
                cycles: mean,
            };
            (cost, *kernel.unwrap(), WITHOUT_PACKING)
        })
        .collect();
    let problem = Problem {
        b: Strides::new(1, k.into()),
        ..problem(DType::F16, m, n, k)
    };
    put_first(&mut sorted, &H200, |_| &problem);
    let name = |kernel: KernelInfo| kernel.name.strip_prefix("hopper_f16_ak_bk_").unwrap();
    sorted
        .into_iter()
        .map(|(_, kernel, _)| name(kernel))
        .collect()
}

fn stay(costs: &[(u64, &str)], size: [u32; 3]) {
    let names: Vec<_> = costs.iter().map(|&(_, name)| name).collect();
    assert_eq!(reordered(costs, size), names, "{size:?}");
}

/// One wave of every kernel here: 28 tiles of 128×64, for which 30 clusters of four run at once.
const ONE_WAVE: [u32; 3] = [800, 230, 10_000];

#[test]
fn four_ctas_stand_before_eight_of_their_tile() {
    let (eight, four) = ("128x80x64_cluster2x4", "128x80x64_cluster1x4");
    let other = "128x128x64";
    let costs = [(1000, eight), (1010, other), (1080, four)];
    assert_eq!(reordered(&costs, ONE_WAVE), [four, eight, other]);
    // 15 clusters of eight run at once, and then 16 tiles of theirs.
    assert_eq!(reordered(&costs, [256 * 15, 230, 64])[0], four);
    stay(&costs, [256 * 16, 230, 64]);
}

#[test]
fn eight_ctas_stay_where_they_are_clearly_better_or_nothing_is_comparable() {
    let (eight, four) = ("128x80x64_cluster2x4", "128x80x64_cluster1x4");
    let wider = "128x128x64_cluster1x4";
    let along_m = "cm_64x96x64_cluster1x4";
    for costs in [
        vec![(1000, eight), (1081, four)],
        vec![(1000, eight), (1001, wider)],
        vec![(1000, "64x96x64_cluster2x4"), (1001, along_m)],
        vec![(1000, wider), (1001, eight), (1002, four)],
        vec![(1000, "64x64x64_split8"), (1001, "64x64x64_split4")],
        vec![],
    ] {
        stay(&costs, ONE_WAVE);
    }
}

#[test]
fn split_k_over_clusters_stands_before_a_split_inside_them_where_they_fill_the_gpu() {
    let over = "128x64x64_splitk_cluster1x4";
    let other = "128x80x64_split4";
    for inside in ["128x64x64_split4", "64x64x64_split2"] {
        let costs = [(1000, inside), (1001, other), (1080, over)];
        for size in [ONE_WAVE, [800, 230, 127 * 64 + 1]] {
            assert_eq!(reordered(&costs, size), [over, inside, other], "{size:?}");
        }
        for size in [
            // Two waves, and less than seven tenths of one.
            [1100, 230, 10_000],
            [600, 230, 10_000],
            [800, 230, 127 * 64],
            // One row of tiles, and three columns for clusters of four.
            [100, 1900, 10_000],
            [1024, 190, 10_000],
        ] {
            stay(&costs, size);
        }
    }
}

#[test]
fn a_split_inside_clusters_stays_where_it_is_clearly_better_or_has_eight_parts() {
    let (inside, over) = ("128x64x64_split4", "128x64x64_splitk_cluster1x4");
    stay(&[(1000, inside), (1081, over)], ONE_WAVE);
    // 12 tiles in clusters of eight, of which 15 run at once.
    let few = [190, 230, 10_000];
    stay(&[(1000, "64x64x64_split8"), (1001, over)], few);
    stay(&[(1000, inside), (1001, "128x64x64_streamk")], ONE_WAVE);
    stay(&[(1000, inside), (1001, "128x64x64_cluster1x4")], ONE_WAVE);
    stay(&[(1000, "128x64x64"), (1001, over)], ONE_WAVE);
}

#[test]
fn clusters_that_share_loads_stand_before_small_tiles_without_them_in_one_deep_wave() {
    // 13 rows and 8 columns of 64×64 tiles; the lines of both operands begin in mid-line.
    const K: u32 = 2056;
    const DEEP_WAVE: [u32; 3] = [800, 472, K];
    let (alone, sharing) = ("64x64x64_pingpong", "64x64x64_cluster2x4");
    let costs = [(1000, alone), (1001, "64x64x128"), (1080, sharing)];
    let first = [sharing, alone, "64x64x128"];
    assert_eq!(reordered(&costs, DEEP_WAVE), first);
    for size in [
        // A lesser K, lines that begin on cache lines, two waves, less than seven tenths of one.
        [800, 472, 2040],
        [800, 472, 2112],
        [1100, 472, K],
        [800, 440, K],
        // Two rows and two columns of tiles.
        [128, 4096, K],
        [4096, 128, K],
    ] {
        stay(&costs, size);
    }
    stay(&[(1000, alone), (1081, sharing)], DEEP_WAVE);
    for (not_alone_or_large, size) in [
        ("128x128x64", [1500, 1000, K]),
        ("128x64x64_streamk", [1500, 500, K]),
        ("64x64x64_split2", [500, 500, K]),
        ("64x128x64_cluster2x1", [1000, 1000, K]),
    ] {
        stay(&[(1000, not_alone_or_large), (1001, sharing)], size);
    }
    for not_sharing in [
        "64x64x128",
        "64x64x64_split2",
        "128x64x64_streamk",
        "128x64x64_splitk_cluster1x2",
    ] {
        stay(&[(1000, alone), (1001, not_sharing)], DEEP_WAVE);
    }
}

#[test]
fn two_and_four_ctas_stand_before_eight_in_a_wave_of_few_k_blocks() {
    // 4 rows and 3 columns of clusters of eight 128×80 tiles, and five k-blocks.
    const SHALLOW: [u32; 3] = [800, 800, 257];
    let costs = |fewer| {
        [
            (1000, "128x80x64_cluster2x4"),
            (1001, "64x64x128"),
            (1040, fewer),
        ]
    };
    for fewer in ["128x128x64_cluster1x2", "64x64x64_cluster4x1"] {
        let first = reordered(&costs(fewer), SHALLOW)[0];
        assert_eq!(first, fewer);
        assert_eq!(reordered(&costs(fewer), [800, 800, 32 * 64])[0], fewer);
        for size in [
            // Four k-blocks, 33 of them, one column of clusters, two waves.
            [800, 800, 256],
            [800, 800, 32 * 64 + 1],
            [1792, 320, 257],
            [1792, 800, 257],
        ] {
            stay(&costs(fewer), size);
        }
    }
    for not_fewer in [
        "64x64x64_cluster4x2",
        "64x64x64_split2",
        "128x64x64_splitk_cluster1x4",
    ] {
        stay(&costs(not_fewer), SHALLOW);
    }
}

#[test]
fn one_row_of_tiles_is_loaded_once_for_four_ctas() {
    let (alone, four) = ("64x128x64", "64x128x64_cluster1x4");
    let costs = [(1000, alone), (1001, "64x64x64_cluster1x4"), (1080, four)];
    let first = [four, alone, "64x64x64_cluster1x4"];
    for size in [[64, 57344, 8192], [1, 8192, 64]] {
        assert_eq!(reordered(&costs, size), first, "{size:?}");
    }
    stay(&costs, [65, 57344, 8192]);
    stay(&[(1000, alone), (1081, four)], [64, 57344, 8192]);
    for other in [
        "64x128x64_cluster4x1",
        "64x128x64_cluster2x4",
        "64x64x64_cluster1x4",
    ] {
        stay(&[(1000, alone), (1001, other)], [64, 57344, 8192]);
    }
    stay(
        &[(1000, "64x64x128"), (1001, "64x64x64_cluster1x4")],
        [64, 57344, 8192],
    );
}

#[test]
fn ping_pong_gives_way_where_c_is_written_past_l2() {
    let (ping_pong, other) = ("128x192x64_pingpong", "128x256x64_cluster2x1");
    let costs = [
        (1000, ping_pong),
        (1001, "128x128x64_pingpong"),
        (1120, other),
    ];
    // 49 MB of C, of 63 MB of L2.
    assert_eq!(reordered(&costs, [6144, 4000, 176])[0], other);
    stay(&costs, [6144, 4000, 177]);
    stay(&costs, [6144, 3800, 176]);
    stay(&[(1000, ping_pong), (1121, other)], [6144, 4000, 176]);
    stay(
        &[(1000, ping_pong), (1001, "128x128x64_streamk")],
        [6144, 4000, 176],
    );
    stay(&[(1000, "128x192x64"), (1001, other)], [6144, 4000, 176]);
}
