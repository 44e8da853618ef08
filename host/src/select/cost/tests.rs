//! The estimate of this library's kernels, for an H200.

use super::*;
use crate::epilogue::{Activation, Epilogue};
use crate::problem::Strides;
use crate::select::choice::Packed;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::{DType, OutputType};

mod along_k;

const H200: Target = Target {
    compute_capability: (9, 0),
    sms: 132,
    shared_bytes_per_cta: 232_448,
    l2_bytes: 60 << 20,
};

fn cover(kernel: &KernelInfo, m: u32, n: u32) -> TileGrid {
    let (height, width) = kernel.cluster_tile();
    TileGrid::cover(m, n, height, width)
}

fn named(name: &str) -> &'static KernelInfo {
    KERNELS.iter().find(|kernel| kernel.name == name).unwrap()
}

/// The least alignment that TMA can read.
const IN_MID_LINE: Alignment = Alignment {
    a: 16,
    b: 16,
    c: 16,
};

/// A plain product with a depth of `k`, in tiles of `grid`.
fn plain(grid: TileGrid, k: u32) -> Task {
    Task {
        grid,
        batches: 1,
        k,
        rows: u32::MAX,
        columns: u32::MAX,
        matrices: [1; 2],
        alignment: Alignment::CACHE_LINES,
        by_element: false,
        line_classes: 1,
        epilogue: EpilogueForm::PLAIN,
    }
}

/// The cheapest f16 hopper kernel for dense row-major operands.
fn cheapest(m: u32, n: u32, k: u32, epilogue: EpilogueForm) -> &'static str {
    let of = |pitch: u32| Strides::alignment_of(u64::from(pitch) * 2);
    let alignment = Alignment {
        a: of(k),
        b: of(n),
        c: of(n),
    };
    KERNELS
        .iter()
        .filter(|kernel| kernel.name.starts_with("hopper_f16_ak_bn") && !kernel.c_along_m)
        .filter(|kernel| kernel.fused || epilogue.is_plain())
        .filter(|kernel| can_gain(kernel, cover(kernel, m, n), 1, &H200))
        .min_by_key(|kernel| {
            let task = Task {
                alignment,
                epilogue,
                rows: m,
                columns: n,
                ..plain(cover(kernel, m, n), k)
            };
            estimate(kernel, &task, &H200)
        })
        .unwrap()
        .name
}

/// Within 5 % of the fastest measured on an H200 (`docs/perf-log.md`).
#[test]
fn picks_what_was_measured_to_be_fast() {
    for (shape, kernel) in [
        ((2048, 2048, 2048), "128x256x64_stages4"),
        ((2048, 2048, 16384), "128x256x64_stages4"),
        ((4096, 4096, 4096), "128x256x64"),
        ((6144, 6144, 6144), "256x192x64"),
        ((12288, 12288, 12288), "128x256x64"),
        ((8192, 8192, 8192), "128x192x64_pingpong"),
        ((8192, 8192, 1024), "128x192x64_pingpong"),
        ((16384, 16384, 16384), "256x192x64"),
        // As long as by 128×128 tiles under ping-pong, which was the fastest before.
        ((8192, 512, 512), "128x128x64"),
        ((1024, 1024, 1024), "128x64x64"),
        ((256, 4096, 4096), "128x64x64"),
        // Rows that begin in mid-line.
        ((1000, 1000, 1000), "64x128x64_cluster2x1"),
        ((3000, 3000, 3000), "192x192x64_cluster1x2"),
        ((4104, 4104, 4104), "256x192x64_cluster1x2"),
        ((8200, 7944, 4104), "256x192x64_cluster1x2"),
        // Two rows of tiles that consumers divide by columns.
        ((384, 13224, 3992), "192x256x64_cluster1x2"),
        ((352, 14472, 1808), "192x256x64_cluster2x1"),
        ((128, 8192, 8192), "128x64x64"),
        ((512, 512, 512), "64x64x128"),
        ((64, 4096, 4096), "64x64x64_split2"),
        ((16, 1024, 8192), "64x64x64_split4"),
    ] {
        let (m, n, k) = shape;
        assert_eq!(
            cheapest(m, n, k, EpilogueForm::PLAIN),
            format!("hopper_f16_ak_bn_{kernel}"),
            "{shape:?}"
        );
    }
}

/// Ping-pong hides an epilogue that the cooperative kernels add to every tile; measured on an
/// H200 (`docs/perf-log.md`, "An activation in front of a release").
#[test]
fn an_activation_is_hidden_by_ping_pong() {
    let gelu = Epilogue::new().activation(Activation::Gelu).form();
    for (m, n, k) in [(4096, 14336, 4096), (8192, 8192, 1024), (8192, 4096, 14336)] {
        assert_eq!(
            cheapest(m, n, k, gelu),
            "hopper_f16_ak_bn_128x128x64_pingpong"
        );
    }
}

/// 1024 products of 64³: measured on an H200, cold, at 0.88 of `torch.bmm`, where 64×128
/// tiles are at 0.81.
#[test]
fn a_tile_deeper_than_k_loads_no_more_than_k() {
    let cycles = |name| {
        let kernel = named(name);
        let task = Task {
            batches: 1024,
            ..plain(cover(kernel, 64, 64), 64)
        };
        estimate(kernel, &task, &H200).cycles
    };
    let deep = cycles("hopper_bf16_ak_bn_64x64x128");
    assert!(deep < cycles("hopper_bf16_ak_bn_64x128x64"));
    assert!(deep < cycles("hopper_bf16_ak_bn_128x64x64"));
}

#[test]
fn a_wave_more_costs_more() {
    let kernel = named("hopper_f16_ak_bn_128x128x64");
    let cost = |tiles_m, tiles_n| {
        let grid = TileGrid { tiles_m, tiles_n };
        estimate(kernel, &plain(grid, 4096), &H200)
    };
    // Half a wave is not faster where the tensor cores are the limit, but for the power limit.
    let (wave, half) = (cost(12, 11).cycles, cost(8, 8).cycles);
    assert!((wave * 90 / 100..=wave).contains(&half), "{wave}, {half}");
    // The producer loads ahead while the first wave is stored.
    let (one, two) = (cost(12, 11).cycles, cost(19, 7).cycles);
    assert!(
        (2 * one * 92 / 100..=2 * one).contains(&two),
        "{one}, {two}"
    );
}

/// Weights of 283 MB for 16 rows, which an H200 reads in 82 µs with 80 CTAs at work. Split in
/// four, in three waves of clusters, they take 99 µs (`docs/perf-log.md`).
#[test]
fn dram_is_a_floor() {
    let cycles = |name, n, k| {
        let kernel = named(name);
        let task = Task {
            rows: 16,
            columns: n,
            ..plain(cover(kernel, 16, n), k)
        };
        estimate(kernel, &task, &H200).cycles
    };
    let (whole, split) = (
        "hopper_bf16_ak_bk_64x64x128",
        "hopper_bf16_ak_bk_64x64x64_split4",
    );
    assert!(cycles(whole, 5120, 27648) < cycles(split, 5120, 27648));
    let bytes = 2 * 5120 * 27648;
    assert!(cycles(whole, 5120, 27648) > bytes / (18 * 132));
    // Few CTAs cannot ask for all that DRAM delivers, so that a split pays.
    assert!(cycles(whole, 1280, 8192) > cycles(split, 1280, 8192));
}

/// A layer of 16 rows takes less time where its weights are in L2; 4096³ takes as long in both.
#[test]
fn kernels_are_compared_with_operands_in_both_places() {
    let of = |m, n, k| {
        let kernel = named("hopper_bf16_ak_bk_64x64x128");
        let task = Task {
            rows: m,
            columns: n,
            ..plain(cover(kernel, m, n), k)
        };
        estimate(kernel, &task, &H200)
    };
    // The mean, if it takes as long with operands in either place.
    let in_either = |cost: Cost| {
        let l2 = cost.cycles;
        Cycles { dram: l2, l2 }.mean()
    };
    let layer = of(16, 5120, 5120);
    assert!(layer.mean < in_either(layer) && 2 * layer.mean > in_either(layer));
    let square = of(4096, 4096, 4096);
    assert_eq!(square.mean, in_either(square));
}

#[test]
fn a_cta_loads_what_its_cluster_does_not_share() {
    let loads = |name| {
        let (tiles_m, tiles_n) = (2, 2);
        estimate(
            named(name),
            &plain(TileGrid { tiles_m, tiles_n }, 4096),
            &H200,
        )
        .loads
    };
    // Steps of 64 of f16: 128 bytes of each of 128 rows and 192 columns, of which half come by
    // multicast.
    assert_eq!(loads("hopper_f16_ak_bn_128x192x64"), (128 + 192) * 128);
    assert_eq!(
        loads("hopper_f16_ak_bn_128x192x64_cluster2x1"),
        (128 + 96) * 128
    );
}

/// The times of these are bound by the requests to L2.
#[test]
fn l2_serves_the_whole_gpu() {
    let kernel = named("hopper_f16_ak_bn_128x64x64");
    let cycles = |tiles_m, tiles_n| {
        let task = Task {
            alignment: IN_MID_LINE,
            ..plain(TileGrid { tiles_m, tiles_n }, 8192)
        };
        estimate(kernel, &task, &H200).cycles
    };
    // Fewer CTAs are served faster.
    let (few, all) = (cycles(11, 6), cycles(11, 12));
    assert!(100 * few < 95 * all, "{few}, {all}");
    // All CTAs ask for the same rows of A at the same time.
    assert!(10 * cycles(1, 132) > 11 * cycles(11, 12));
}

#[test]
fn lines_are_aligned_to_their_pitch_and_their_address() {
    let row_major = |pitch| Strides::new(pitch, 1);
    let aligned = Problem {
        m: 256,
        n: 192,
        k: 128,
        batches: 1,
        input: DType::F16,
        output: OutputType::Input,
        a: row_major(128),
        b: row_major(192),
        c: row_major(192),
        epilogue: EpilogueForm::PLAIN,
    };
    let kernel = named("hopper_f16_ak_bn_128x128x64");
    let of = |problem: &Problem, packed| Alignment::of(kernel, problem, packed);
    let none = Packed::default();
    assert_eq!(of(&aligned, none), Alignment::CACHE_LINES);
    let problem = Problem {
        a: row_major(136),
        b: Strides {
            alignment: 64,
            ..aligned.b
        },
        c: row_major(193),
        ..aligned
    };
    let found = Alignment { a: 16, b: 64, c: 2 };
    assert_eq!(of(&problem, none), found);
    let packed = Packed { a: true, b: false };
    assert_eq!(of(&problem, packed), Alignment { a: 128, ..found });

    // The kernel for Bᵀ·Aᵀ reads B where the other reads A.
    let turned = named("hopper_f16_am_bk_128x128x64");
    let problem = Problem {
        a: row_major(136),
        ..aligned
    };
    assert_eq!(
        Alignment::of(turned, &problem.transposed(), none),
        Alignment {
            b: 16,
            ..Alignment::CACHE_LINES
        }
    );
}

#[test]
fn in_mid_line_clusters_pay() {
    let cycles = |name, alignment| {
        let kernel = named(name);
        let task = Task {
            alignment,
            ..plain(cover(kernel, 3072, 3072), 3072)
        };
        estimate(kernel, &task, &H200).cycles
    };
    let alone = "hopper_f16_ak_bn_128x192x64";
    let cluster = "hopper_f16_ak_bn_128x192x64_cluster2x1";
    let aligned = Alignment::CACHE_LINES;
    assert!(cycles(alone, aligned) < cycles(cluster, aligned));
    assert!(cycles(cluster, IN_MID_LINE) < cycles(alone, IN_MID_LINE));
    // Each step costs: half of the lines, three of four, then sectors.
    let of = |bytes| {
        let alignment = Alignment {
            a: bytes,
            b: bytes,
            c: bytes,
        };
        cycles("hopper_f16_ak_bn_128x64x64", alignment)
    };
    assert!(of(128) < of(64) && of(64) < of(32) && of(32) < of(16));
}

#[test]
fn ping_pong_stores_lines_that_begin_in_mid_sector_slowly() {
    let cycles = |name, c| {
        let kernel = named(name);
        let alignment = Alignment {
            c,
            ..Alignment::CACHE_LINES
        };
        let task = Task {
            alignment,
            ..plain(cover(kernel, 8192, 8192), 128)
        };
        estimate(kernel, &task, &H200).cycles
    };
    let ping_pong = "hopper_f16_ak_bk_128x192x64_pingpong";
    assert!(cycles(ping_pong, 16) > cycles(ping_pong, 32));
    assert_eq!(cycles(ping_pong, 32), cycles(ping_pong, 128));
    let cooperative = "hopper_f16_ak_bk_128x192x64";
    assert_eq!(cycles(cooperative, 16), cycles(cooperative, 128));
}

#[test]
fn tiles_that_begin_in_mid_sector_are_stored_slowly() {
    let cycles = |name| {
        let kernel = named(name);
        estimate(kernel, &plain(cover(kernel, 4080, 4096), 128), &H200).cycles
    };
    // Along M, the width is the number of lines.
    let along_m = cycles("hopper_f16_ak_bk_cm_128x136x64_cluster1x2");
    assert!(cycles("hopper_f16_ak_bk_128x136x64_cluster1x2") > along_m);
    let along_m = cycles("hopper_f16_ak_bk_cm_128x160x64_cluster1x2");
    assert_eq!(cycles("hopper_f16_ak_bk_128x160x64_cluster1x2"), along_m);
}
