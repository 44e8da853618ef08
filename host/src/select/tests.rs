//! Tests of the rule with invented kernels on invented devices.

use gpu_kernels::{Arch, Block, Cluster, DType, Family, Major, OutputType, TileGrid};

use super::*;
use crate::tma;

mod batch_invariant;
mod choices;
mod epilogues;
mod eviction;
mod forced;
mod line_classes;
mod overlap;
mod packing;
mod preferred;
mod stream_k;

const H200: Target = Target {
    compute_capability: (9, 0),
    sms: 132,
    shared_bytes_per_cta: 232_448,
    l2_bytes: 60 << 20,
};

const T4: Target = Target {
    compute_capability: (7, 5),
    sms: 40,
    shared_bytes_per_cta: 65_536,
    l2_bytes: 4 << 20,
};

const A100: Target = Target {
    compute_capability: (8, 0),
    sms: 108,
    shared_bytes_per_cta: 166_912,
    l2_bytes: 40 << 20,
};

/// The library's own kernels.
const LIBRARY: Catalog = Catalog {
    kernels: gpu_kernels::entry::KERNELS,
    is_built: |_| true,
};

/// A kernel that takes any strides.
const fn kernel(
    name: &'static str,
    family: Family,
    arch: Arch,
    input: DType,
    (m, n): (u32, u32),
) -> KernelInfo {
    let block = Block { m, n, k: 64 };
    KernelInfo {
        name,
        entry: name,
        ..KernelInfo::new(family, arch, input, block, 128)
    }
}

const fn layouts(kernel: KernelInfo, a: Major, b: Major) -> KernelInfo {
    KernelInfo {
        a_major: Some(a),
        b_major: Some(b),
        ..kernel
    }
}

/// A hopper kernel with four small stages.
const fn hopper(name: &'static str, block: (u32, u32), a: Major, b: Major) -> KernelInfo {
    let kernel = KernelInfo {
        loads_by_tma: true,
        stages: 4,
        pipeline_bytes: (block.0 + block.1) * 64 * 2,
        ..kernel(name, Family::Hopper, Arch::Sm90a, DType::F16, block)
    };
    layouts(kernel, a, b)
}

const fn tensor_core(name: &'static str, input: DType, a: Major, b: Major) -> KernelInfo {
    let kernel = kernel(name, Family::TensorCore, Arch::Sm80, input, (128, 128));
    layouts(kernel, a, b)
}

use Major::{K, Mn};

const KERNELS: &[KernelInfo] = &[
    kernel("naive_f32", Family::Naive, Arch::Sm75, DType::F32, (16, 16)),
    kernel("naive_f16", Family::Naive, Arch::Sm75, DType::F16, (16, 16)),
    kernel(
        "tiled_f32",
        Family::Tiled,
        Arch::Sm75,
        DType::F32,
        (128, 128),
    ),
    kernel(
        "tiled_f32_64",
        Family::Tiled,
        Arch::Sm75,
        DType::F32,
        (64, 64),
    ),
    kernel("tiled_f16", Family::Tiled, Arch::Sm75, DType::F16, (64, 64)),
    tensor_core("tc_f16_kn", DType::F16, K, Mn),
    tensor_core("tc_f16_kk", DType::F16, K, K),
    KernelInfo {
        arch: Arch::Sm75,
        ..tensor_core("tc_f16_kn_sm75", DType::F16, K, Mn)
    },
    KernelInfo {
        arch: Arch::Sm75,
        ..tensor_core("tc_f16_mk_sm75", DType::F16, Mn, K)
    },
    tensor_core("tc_tf32_kn", DType::Tf32, K, Mn),
    hopper("hopper_kn", (128, 256), K, Mn),
    hopper("hopper_kk", (128, 256), K, K),
    hopper("hopper_mk", (128, 256), Mn, K),
    hopper("hopper_mn", (128, 256), Mn, Mn),
    hopper("hopper_kn_64", (64, 128), K, Mn),
    KernelInfo {
        cluster: Cluster { m: 2, n: 1, k: 1 },
        ..hopper("hopper_kn_pair", (128, 256), K, Mn)
    },
    KernelInfo {
        input: DType::Tf32,
        ..hopper("hopper_tf32", (128, 256), K, K)
    },
    kernel("pack_16", Family::Pack, Arch::Sm75, DType::F16, (64, 64)),
    kernel("pack_32", Family::Pack, Arch::Sm75, DType::F32, (64, 64)),
];

const CATALOG: Catalog = Catalog {
    kernels: KERNELS,
    is_built: |_| true,
};

/// All row-major.
fn problem(input: DType, m: u32, n: u32, k: u32) -> Problem {
    Problem {
        m,
        n,
        k,
        batches: 1,
        input,
        output: OutputType::Input,
        a: Strides::new(k.into(), 1),
        b: Strides::new(n.into(), 1),
        c: Strides::new(n.into(), 1),
        epilogue: EpilogueForm::PLAIN,
    }
}

fn chosen(problem: Problem, target: Target) -> &'static str {
    let choice = choose(CATALOG, &problem, &target, &Request::default()).unwrap();
    choice.kernel.name
}

#[test]
fn the_highest_family_that_can_run() {
    let half = problem(DType::F16, 4096, 4096, 4096);
    assert_eq!(chosen(half, H200), "hopper_kn");
    assert_eq!(chosen(half, A100), "tc_f16_kn");
    assert_eq!(chosen(half, T4), "tc_f16_kn_sm75");
    assert_eq!(chosen(problem(DType::F32, 64, 64, 64), T4), "tiled_f32_64");
    // Hopper kernels compute at least one k-block.
    assert_eq!(chosen(problem(DType::F16, 64, 64, 0), H200), "tc_f16_kn");
}

/// Kernels for an older target run where they are named, and where nothing newer can.
#[test]
fn of_a_family_the_kernels_for_the_newest_target() {
    let mut problem = problem(DType::F16, 4096, 4096, 4096);
    // The kernel for sm_75 would read both operands along their lines, the others one.
    (problem.a, problem.b) = (Strides::new(1, 4096), Strides::new(1, 4096));
    let tensor_core = Request {
        family: Some(Family::TensorCore),
        ..Request::default()
    };
    for target in [A100, H200] {
        let choices = choices(CATALOG, &problem, &target, &tensor_core).unwrap();
        for choice in choices {
            assert_eq!(choice.kernel.arch, Arch::Sm80, "{}", choice.kernel.name);
        }
        let named = Request {
            kernel: Some("tc_f16_mk_sm75".into()),
            ..Request::default()
        };
        let choice = choose(CATALOG, &problem, &target, &named).unwrap();
        assert_eq!(choice.kernel.name, "tc_f16_mk_sm75");
    }
    assert_eq!(chosen(problem, T4), "tc_f16_mk_sm75");
    let without_sm_80 = Catalog {
        is_built: |name| !name.starts_with("tc") || name.ends_with("_sm75"),
        ..CATALOG
    };
    let choice = choose(without_sm_80, &problem, &A100, &Request::default()).unwrap();
    assert_eq!(choice.kernel.name, "tc_f16_mk_sm75");
}

#[test]
fn f32_is_tf32_only_when_asked() {
    assert_eq!(
        chosen(problem(DType::F32, 4096, 4096, 512), H200),
        "tiled_f32"
    );
    assert_eq!(
        chosen(problem(DType::Tf32, 4096, 4096, 512), H200),
        "hopper_tf32"
    );
    assert_eq!(
        chosen(problem(DType::Tf32, 4096, 4096, 512), A100),
        "tc_tf32_kn"
    );
    let tf32 = problem(DType::Tf32, 64, 64, 64);
    let error = choose(CATALOG, &tf32, &T4, &Request::default()).unwrap_err();
    let rejected = |kernel, family, needs| Rejected {
        kernel,
        family,
        reason: Rejection::Device { needs, has: (7, 5) },
    };
    assert_eq!(
        error,
        Error::NoKernel {
            asked: "tf32 elements".into(),
            rejected: vec![
                rejected("tc_tf32_kn", Family::TensorCore, Arch::Sm80),
                rejected("hopper_tf32", Family::Hopper, Arch::Sm90a),
            ],
        }
    );
}

#[test]
fn the_layouts_decide_the_entry() {
    let row_major = problem(DType::F16, 4096, 4096, 2048);
    let mut other = row_major;
    other.b = Strides::new(1, 2048);
    assert_eq!(chosen(other, A100), "tc_f16_kk");
    assert_eq!(chosen(other, H200), "hopper_kk");
    other.a = Strides::new(1, 4096);
    assert_eq!(chosen(other, H200), "hopper_mk");
    other.b = row_major.b;
    assert_eq!(chosen(other, H200), "hopper_mn");
    // No entry of the family matches A; the one that matches B is left.
    assert_eq!(chosen(other, A100), "tc_f16_kn");
}

#[test]
fn a_column_major_c_is_the_transposed_problem() {
    let mut problem = problem(DType::F16, 4096, 8192, 2048);
    problem.c = Strides::new(1, 4096);
    let choice = choose(CATALOG, &problem, &H200, &Request::default()).unwrap();
    // Bᵀ is 8192×2048 and contiguous along its rows, Aᵀ along K.
    assert!(choice.transposed);
    assert_eq!(choice.kernel.name, "hopper_mk");
    assert_eq!(
        choice.grid,
        TileGrid {
            tiles_m: 64,
            tiles_n: 16
        }
    );
    // By name, a kernel of the other layouts runs it as it is.
    let request = Request {
        kernel: Some("hopper_kn".into()),
        ..Request::default()
    };
    let choice = choose(CATALOG, &problem, &H200, &request).unwrap();
    assert!(!choice.transposed);
    // Below hopper, any strides of C cost the same.
    let choice = choose(CATALOG, &problem, &A100, &Request::default()).unwrap();
    assert!(!choice.transposed);
}

#[test]
fn the_largest_tile_that_fills_the_device() {
    // 1024×1024 is 64 tiles of 128×128, 256 of 64×64.
    assert_eq!(
        chosen(problem(DType::F32, 1024, 1024, 1024), H200),
        "tiled_f32_64"
    );
    // 40 of 128×128 are one tile for each of its SMs.
    assert_eq!(
        chosen(problem(DType::F32, 640, 1024, 1024), T4),
        "tiled_f32"
    );
    // 16 of 128×256, 64 of 64×128: neither fills the device.
    assert_eq!(
        chosen(problem(DType::F16, 512, 1024, 1024), H200),
        "hopper_kn_64"
    );
    // The cluster would compute 128 rows past the edge.
    assert_eq!(
        chosen(problem(DType::F16, 128 * 33, 4096, 1024), H200),
        "hopper_kn"
    );
}

#[test]
fn the_default_order_makes_a_square_wave() {
    let choice = |m, n| {
        let problem = problem(DType::F16, m, n, 4096);
        let request = Request {
            kernel: Some("hopper_kn".into()),
            ..Request::default()
        };
        choose(CATALOG, &problem, &H200, &request).unwrap()
    };
    // √(132 · 256 / 128) = 16.2.
    let large = choice(8192, 8192);
    assert_eq!(large.order, TileOrder::GroupedM { size: 16 });
    assert_eq!(large.schedule, Schedule::Persistent);
    assert_eq!(ctas(&large, 132), (132, 1));
    // No more rows than there are.
    let flat = choice(600, 8192);
    assert_eq!(flat.order, TileOrder::GroupedM { size: 5 });
    // No more CTAs than tiles.
    assert_eq!(ctas(&choice(256, 512), 132), (4, 1));
    assert_eq!(ctas(&choice(0, 512), 132), (0, 1));
}

#[test]
fn clusters_are_counted_whole() {
    let problem = problem(DType::F16, 256 * 20 + 1, 256 * 10, 64);
    let mut request = Request {
        kernel: Some("hopper_kn_pair".into()),
        schedule: Some(Schedule::Grid1d),
        ..Request::default()
    };
    let choice = choose(CATALOG, &problem, &H200, &request).unwrap();
    assert_eq!(
        choice.grid,
        TileGrid {
            tiles_m: 21,
            tiles_n: 10
        }
    );
    assert_eq!(ctas(&choice, 132), (420, 1));
    request.schedule = Some(Schedule::Persistent);
    let choice = choose(CATALOG, &problem, &H200, &request).unwrap();
    assert_eq!(ctas(&choice, 131), (130, 1));
    request.schedule = Some(Schedule::Grid2d);
    assert_eq!(
        choose(CATALOG, &problem, &H200, &request).unwrap_err(),
        Error::KernelCannotRun {
            kernel: "hopper_kn_pair",
            reason: Rejection::Clusters { cluster_ctas: 2 }
        }
    );
}

#[test]
fn shared_memory_must_fit() {
    let large = [KernelInfo {
        shared_bytes: 100_000,
        ..KERNELS[4]
    }];
    let catalog = Catalog {
        kernels: &large,
        ..CATALOG
    };
    let half = problem(DType::F16, 64, 64, 64);
    assert_eq!(
        check(catalog, &large[0], &half, &T4),
        Err(Rejection::SharedMemory {
            needs: 100_000,
            has: 65_536
        })
    );
    assert_eq!(check(catalog, &large[0], &half, &A100), Ok(()));
}

#[test]
fn more_tiles_than_a_launch_can_number() {
    let named = |name: &str, schedule| Request {
        kernel: Some(name.into()),
        schedule: Some(schedule),
        ..Request::default()
    };
    // 65 536 tiles along M.
    let tall = problem(DType::F32, 1 << 20, 16, 1);
    let naive = |schedule| choose(CATALOG, &tall, &T4, &named("naive_f32", schedule));
    assert_eq!(
        naive(Schedule::Grid2d).unwrap_err(),
        Error::TooManyTiles {
            tiles_m: 1 << 16,
            tiles_n: 1,
            batches: 1,
            schedule: Schedule::Grid2d
        }
    );
    assert_eq!(ctas(&naive(Schedule::Grid1d).unwrap(), 40), (1 << 16, 1));
    // 2³² tiles.
    let wide = problem(DType::F32, 1 << 20, 1 << 20, 1);
    for schedule in [Schedule::Grid1d, Schedule::Persistent] {
        let error = choose(CATALOG, &wide, &T4, &named("naive_f32", schedule));
        assert!(matches!(error, Err(Error::TooManyTiles { .. })));
    }
}
