//! Tiles that are cut along K.

use super::*;

/// 256×5120×27648 in 80 tiles: 132 CTAs read the columns of B twice, at different times, and take
/// 150 µs. 64 tiles are cut in halves, and take 117 µs.
#[test]
fn tiles_cut_at_different_depths_share_no_reads() {
    let cut = |name| {
        let kernel = named(name);
        let grid = cover(kernel, 256, 5120);
        let ctas = shared_ctas(kernel, grid, 1, 27648, &H200, Schedule::StreamK);
        let task = Task {
            rows: 256,
            columns: 5120,
            ..plain(grid, 27648)
        };
        (ctas, estimate(kernel, &task, &H200).cycles)
    };
    let (odd, even) = (
        cut("hopper_bf16_ak_bk_128x128x64_streamk"),
        cut("hopper_bf16_ak_bk_128x160x64_streamk"),
    );
    assert_eq!((odd.0, even.0), (132, 128));
    assert!(even.1 < odd.1);
}

#[test]
fn stream_k_gains_where_few_tiles_are_left_over_and_deep() {
    let whole = named("hopper_f16_ak_bn_128x256x64");
    let shared = named("hopper_f16_ak_bn_128x256x64_streamk");
    let cycles = |kernel, tiles, k| {
        let (tiles_m, tiles_n) = (tiles, 1);
        let grid = TileGrid { tiles_m, tiles_n };
        estimate(kernel, &plain(grid, k), &H200).cycles
    };
    let gains = |tiles, k| cycles(shared, tiles, k) < cycles(whole, tiles, k);
    assert!(gains(132 + 24, 4096) && gains(2 * 132 + 24, 8192));
    // Nothing left over, nearly a wave left over, no depth to share.
    assert!(!gains(2 * 132, 8192) && !gains(132 + 130, 8192) && !gains(132 + 24, 256));
}

#[test]
fn stream_k_has_as_many_ctas_as_there_is_work_for() {
    let kernel = named("hopper_f16_ak_bn_128x256x64_streamk");
    let ctas = |tiles, k| {
        let (tiles_m, tiles_n) = (tiles, 1);
        shared_ctas(
            kernel,
            TileGrid { tiles_m, tiles_n },
            1,
            k,
            &H200,
            Schedule::StreamK,
        )
    };
    for tiles in 1..3 * 132 {
        for k in [1_u32, 64, 65, 640, 4096, 1 << 20] {
            let (left, k_blocks, found) = (tiles % 132, k.div_ceil(64), ctas(tiles, k));
            let least = (2 * left).min(left * k_blocks).min(132);
            let most = (left * k_blocks).clamp(1, 132);
            assert!((least..=most).contains(&found), "{tiles} {k}: {found}");
        }
    }
    // For deeper tiles, more CTAs are worth the additional reads.
    assert!(ctas(1, 4096) < ctas(1, 1 << 20));
}

#[test]
fn split_k_is_for_few_and_deep_tiles() {
    let prefers = |name, m, n, k| {
        let kernel = named(name);
        prefers_split_k(kernel, &plain(cover(kernel, m, n), k), &H200)
    };
    // Many CTAs add for each tile.
    assert_eq!(
        prefers("hopper_f16_ak_bn_128x64x64_streamk", 96, 88, 11736),
        Some(true)
    );
    // Whole waves, or one k-block.
    assert_eq!(
        prefers("hopper_f16_ak_bn_128x256x64_streamk", 4096, 8192, 4096),
        None
    );
    assert_eq!(
        prefers("hopper_f16_ak_bn_128x256x64_streamk", 128, 256, 64),
        None
    );
}

#[test]
fn split_k_gives_tiles_equal_numbers_of_ctas() {
    let kernel = named("hopper_f16_ak_bn_128x128x64_streamk");
    for tiles in 1..3 * 132 {
        for k in [1_u32, 64, 65, 640, 4096, 1 << 20] {
            let (tiles_m, tiles_n) = (tiles, 1);
            let grid = TileGrid { tiles_m, tiles_n };
            let ctas = shared_ctas(kernel, grid, 1, k, &H200, Schedule::SplitK);
            let parts = ctas / tiles;
            let is_cut = tiles <= 132 && k > 64;
            assert_eq!(
                (ctas % tiles, parts > 1),
                (0, is_cut),
                "{tiles} {k}: {ctas}"
            );
            assert!(parts <= k.div_ceil(64), "{tiles} {k}: {ctas}");
        }
    }
}
