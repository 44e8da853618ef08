//! Which operands a launch lets L2 evict first.

use gpu_kernels::EvictFirst;

use super::*;
use crate::select::eviction;

/// Of the library's choice for a product whose B lies along K, in sixteenths of A and of B.
fn of(m: u32, n: u32, k: u32) -> (u8, u8) {
    let mut nt = problem(DType::F16, m, n, k);
    nt.b = Strides::new(1, k.into());
    evicted(LIBRARY, &nt, &Request::default())
}

/// The operands are those that the caller names.
fn evicted(catalog: Catalog, problem: &Problem, request: &Request) -> (u8, u8) {
    let choice = choose(catalog, problem, &H200, request).unwrap();
    let EvictFirst { a, b } = match choice.transposed {
        false => eviction::evict_first(&choice, problem, &H200),
        true => eviction::evict_first(&choice, &problem.transposed(), &H200).transposed(),
    };
    (a, b)
}

#[test]
fn a_quarter_of_l2_keeps_a_part_of_what_one_wave_reads() {
    assert_eq!(of(16, 4096, 1024), (0, 0));
    assert_eq!(of(16, 4096, 4096), (0, 8));
    assert_eq!(of(256, 6144, 4096), (0, 12));
    assert_eq!(of(16, 14336, 4096), (0, 14));
    assert_eq!(
        of(256, 37888, 3584),
        (0, 16),
        "three waves, in which two tiles read B"
    );
    assert_eq!(of(64, 55296, 5120), (0, 0), "nine times L2");
    assert_eq!(of(7304, 232, 2424), (8, 0));
    assert_eq!(of(1024, 1024, 16384), (8, 8));
}

#[test]
fn lines_that_straddle_are_kept_until_the_next_box() {
    assert_eq!(of(4000, 80, 16384), (14, 0));
    assert_eq!(of(4000, 80, 16368), (14, 0));
    assert_eq!(of(7000, 80, 16384), (16, 0));
    assert_eq!(of(7000, 80, 16368), (0, 0));
}

#[test]
fn what_later_waves_read_again_is_kept() {
    assert_eq!(of(8192, 8192, 8192), (0, 0));
    assert_eq!(of(4096, 4096, 4096), (0, 0));
}

#[test]
fn lines_that_neighbouring_tiles_share_are_kept_for_the_next_wave() {
    let catalog = Catalog {
        kernels: &[hopper("am_bk", (128, 128), Mn, K)],
        is_built: |_| true,
    };
    let of = |m: u32| {
        let mut tt = problem(DType::F16, m, 256, 6256);
        (tt.a, tt.b) = (Strides::new(1, m.into()), Strides::new(1, 6256));
        evicted(catalog, &tt, &Request::default())
    };
    assert_eq!(of(13568), (14, 0), "106 lines");
    assert_eq!(of(13520), (0, 0), "105 lines and 5 eighths");
    assert_eq!(of(6000), (12, 0), "one wave");
}

const BY_LOADS: &[KernelInfo] = &[
    hopper("by_tma", (128, 128), K, K),
    KernelInfo {
        loads_by_tma: false,
        ..hopper("by_threads", (128, 128), K, K)
    },
];

#[test]
fn a_matrix_that_all_products_share_has_the_readers_of_all() {
    let catalog = Catalog {
        kernels: BY_LOADS,
        is_built: |_| true,
    };
    let request = |kernel: &str| Request {
        kernel: Some(kernel.to_owned()),
        ..Request::default()
    };
    let mut batch = problem(DType::F16, 128, 16384, 1024);
    batch.b = Strides::new(1, 1024);
    let by = |kernel, batch: &Problem| evicted(catalog, batch, &request(kernel));
    assert_eq!(by("by_tma", &batch), (0, 8));
    assert_eq!(by("by_threads", &batch), (0, 0));
    batch.batches = 8;
    batch.a.batch_stride = 128 * 1024;
    batch.c.batch_stride = 128 * 16384;
    assert_eq!(by("by_tma", &batch), (0, 0));
    batch.b.batch_stride = 16384 * 1024;
    assert_eq!(by("by_tma", &batch), (0, 16));
}
