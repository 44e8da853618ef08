//! Tests of packing: which operands are packed, the layout of the copies, and the errors
//! when packing is not allowed.

use super::*;
use crate::operand::Operand;
use crate::select::pack::PackedMatrix;

/// The choice for `problem` on an H200.
fn choice(problem: Problem, request: &Request) -> Choice {
    choose(CATALOG, &problem, &H200, request).unwrap()
}

/// The kernel, and whether A and B are packed for it.
fn packs(problem: Problem, request: &Request) -> (&'static str, bool, bool) {
    let Choice { kernel, packed, .. } = choice(problem, request);
    (kernel.name, packed.a, packed.b)
}

fn unforced(problem: Problem) -> (&'static str, bool, bool) {
    packs(problem, &Request::default())
}

fn named(name: &str) -> Request {
    Request {
        kernel: Some(name.into()),
        ..Request::default()
    }
}

const NEVER: Request = Request {
    kernel: None,
    family: None,
    block: None,
    order: None,
    schedule: None,
    packing: Packing::Never,
    line_classes: None,
    batch_invariant: false,
};

#[test]
fn only_what_tma_cannot_read_is_packed() {
    let half = problem(DType::F16, 4096, 4096, 4096);
    assert_eq!(unforced(half), ("hopper_kn", false, false));
    assert_eq!(choice(half, &Request::default()).pack, None);
    // Lines of 8190 bytes: A alone, which keeps its direction.
    let odd = problem(DType::F16, 4096, 4096, 4095);
    assert_eq!(unforced(odd), ("hopper_kn", true, false));
    let pack = choice(odd, &Request::default()).pack.unwrap();
    assert_eq!(pack.name, "pack_16");
    // An element after the start of an allocation.
    let mut shifted = half;
    shifted.a.alignment = 2;
    assert_eq!(unforced(shifted), ("hopper_kn", true, false));
    // Gaps: packed along K.
    let mut gaps = half;
    gaps.b = Strides::new(2 * 4096, 2);
    assert_eq!(unforced(gaps), ("hopper_kk", false, true));
    // Nothing fits TMA: both keep their directions.
    let primes = problem(DType::F16, 4095, 4097, 4099);
    assert_eq!(unforced(primes), ("hopper_kn", true, true));
    // bf16 is packed by the same kernel; there is none for f32.
    assert_eq!(
        pack::kernel_for(CATALOG, DType::Bf16, &H200).unwrap().name,
        "pack_16"
    );
    for input in [DType::F32, DType::Tf32] {
        let pack = pack::kernel_for(CATALOG, input, &H200).unwrap();
        assert_eq!(pack.name, "pack_32");
    }
}

#[test]
fn tf32_is_packed_where_it_is_not_along_k() {
    let rows = problem(DType::Tf32, 4096, 4096, 512);
    assert_eq!(unforced(rows), ("hopper_tf32", false, true));
    let pack = choice(rows, &Request::default()).pack.unwrap();
    assert_eq!(pack.name, "pack_32");
    let mut columns = rows;
    columns.a = Strides::new(1, 4096);
    assert_eq!(unforced(columns), ("hopper_tf32", true, true));
    columns.a = rows.a;
    columns.b = Strides::new(1, 512);
    assert_eq!(unforced(columns), ("hopper_tf32", false, false));
}

#[test]
fn tf32_along_m_goes_through_registers() {
    // The library's kernel for these layouts of A, B and C (row-major or not), whether it
    // computes Cᵀ, and the operands that are packed.
    let of = |size: u32, a: bool, b: bool, c: bool| {
        let strides = |rows: bool| match rows {
            true => Strides::new(size.into(), 1),
            false => Strides::new(1, size.into()),
        };
        let problem = Problem {
            a: strides(a),
            b: strides(b),
            c: strides(c),
            ..problem(DType::Tf32, size, size, size)
        };
        let choice = choose(LIBRARY, &problem, &H200, &Request::default()).unwrap();
        let name = choice.kernel.name.trim_start_matches("hopper_tf32_");
        let layouts = name[..name.rfind('_').unwrap()].to_owned();
        let Packed { a, b } = choice.packed;
        (layouts, choice.transposed, [a, b])
    };
    let expect = |layouts: &str, transposed, packed| (layouts.to_owned(), transposed, packed);
    for size in [256, 4096] {
        // nn, nt, tt, tn, into a row-major C.
        let cm = expect("am_bk_cm", true, [false; 2]);
        assert_eq!(of(size, true, true, true), cm);
        let ak = of(size, true, false, true);
        assert!(ak.0.starts_with("ak_bk") && ak.2 == [false; 2], "{ak:?}");
        let am = expect("am_bk", false, [false; 2]);
        assert_eq!(of(size, false, false, true), am);
        // The same into a column-major C, as Cᵀ.
        let am = expect("am_bk", true, [false; 2]);
        assert_eq!(of(size, true, true, false), am);
        let cm = expect("am_bk_cm", false, [false; 2]);
        assert_eq!(of(size, false, false, false), cm);
    }
    let (_, _, packed) = of(4096, false, true, true);
    assert!(packed[0] != packed[1], "one of two");
    // Lines of C that are no multiples of 16 bytes: then B's are none either.
    let (layouts, ..) = of(4097, true, true, true);
    assert!(layouts.starts_with("ak_bk"), "{layouts}");
}

#[test]
fn tf32_along_m_is_packed_for_what_only_other_kernels_compute() {
    let rows = problem(DType::Tf32, 4096, 4096, 512);
    let batch = Problem { batches: 2, ..rows };
    let mut odd_c = rows;
    odd_c.c = Strides::new(4097, 1);
    for problem in [batch, odd_c] {
        let choice = choose(LIBRARY, &problem, &H200, &Request::default()).unwrap();
        assert!(!choice.kernel.c_along_m && choice.packed.b);
    }
}

#[test]
fn packing_must_pay() {
    // Like products measured on an H200 (`docs/perf-log.md`, "A rule from a sweep"): both
    // operands of odd pitches, at least 15 % apart.
    let of = |m, n, k| unforced(problem(DType::F16, m, n, k)).0;
    for (m, n, k) in [(2971, 5, 111), (10, 10503, 31)] {
        assert_eq!(of(m, n, k), "tc_f16_kn", "{m}x{n}x{k}");
    }
    for (m, n, k) in [
        (441, 449, 355),
        (667, 3767, 123),
        (9, 9, 4411),
        (861, 183, 549),
        (201, 893, 229),
    ] {
        assert!(of(m, n, k).starts_with("hopper"), "{m}x{n}x{k}");
    }
    // Where tensor_core reads whole lines: measured on an H200 (`docs/perf-log.md`, "TMA rounds to
    // TF32"), B row-major.
    let of = |m, n, k| unforced(problem(DType::Tf32, m, n, k)).0;
    for (m, n, k) in [(64, 4096, 4096), (1024, 1024, 64)] {
        assert_eq!(of(m, n, k), "tc_tf32_kn", "{m}x{n}x{k}");
    }
    for (m, n, k) in [(512, 4096, 4096), (512, 512, 512), (300, 3000, 1000)] {
        assert_eq!(of(m, n, k), "hopper_tf32", "{m}x{n}x{k}");
    }
    assert_eq!(of(256, 257, 4096), "hopper_tf32", "lines of 1028 bytes");
}

#[test]
fn elements_are_loaded_where_they_are_if_that_pays() {
    // Measured on an H200 (`docs/perf-log.md`, "Operands that TMA cannot read").
    let of = |m, n, k| {
        let problem = problem(DType::F16, m, n, k);
        let choice = choose(LIBRARY, &problem, &H200, &Request::default()).unwrap();
        assert!(choice.kernel.family == Family::Hopper, "{m}x{n}x{k}");
        let parts = choice.stream_k_ctas.checked_div(choice.tiles());
        let parts = parts.filter(|&parts| parts > 0);
        (
            choice.kernel.loads_by_tma,
            parts.unwrap_or(choice.kernel.cluster.k),
        )
    };
    for (m, n, k) in [
        (73, 223, 115),
        (966, 137, 75),
        (333, 333, 333),
        (2019, 203, 235),
    ] {
        assert_eq!(of(m, n, k), (false, 1), "{m}x{n}x{k}");
    }
    for (m, n, k) in [
        (214, 85, 946),
        (530, 83, 1013),
        (273, 307, 2085),
        (98, 161, 3817),
    ] {
        let (by_tma, parts) = of(m, n, k);
        assert!(!by_tma && parts > 1, "{m}x{n}x{k}: {parts} parts");
    }
    for (m, n, k) in [(28, 74, 15927), (659, 28, 15837), (87, 987, 7844)] {
        let (by_tma, parts) = of(m, n, k);
        assert!(!by_tma && parts >= 8, "{m}x{n}x{k}: {parts} parts");
    }
    for (m, n, k) in [
        (8041, 71, 13895),
        (61, 5003, 7001),
        (75, 3333, 5001),
        (95, 2445, 10389),
    ] {
        assert!(
            !of(m, n, k).0,
            "a large operand beside a narrow one: {m}x{n}x{k}"
        );
    }
    for (m, n, k) in [
        (700, 501, 900),
        (300, 401, 700),
        (515, 259, 2051),
        (222, 3001, 4001),
        (4095, 4095, 4095),
    ] {
        assert!(of(m, n, k).0, "{m}x{n}x{k}");
    }
    // Where TMA reads both operands, only by name.
    let aligned = problem(DType::F16, 64, 64, 64);
    let name = "hopper_f16_ak_bn_64x64x64_unaligned";
    let family = Request {
        family: Some(Family::Hopper),
        ..Request::default()
    };
    let choice = |request| choose(LIBRARY, &aligned, &H200, request).unwrap().kernel;
    assert!(choice(&family).loads_by_tma);
    assert_eq!(choice(&named(name)).name, name);
    // Where nothing may be packed, a large product is loaded by elements, too.
    let never = Request {
        packing: Packing::Never,
        ..family
    };
    let large = problem(DType::F16, 4095, 4095, 4095);
    let kernel = choose(LIBRARY, &large, &H200, &never).unwrap().kernel;
    assert!(!kernel.loads_by_tma);
}

#[test]
fn what_is_forced_is_packed_whatever_it_costs() {
    let small = problem(DType::F16, 5, 7, 3);
    assert_eq!(unforced(small).0, "tc_f16_kn");
    assert_eq!(packs(small, &named("hopper_kn")), ("hopper_kn", true, true));
    let family = Request {
        family: Some(Family::Hopper),
        ..Request::default()
    };
    assert_eq!(packs(small, &family), ("hopper_kn_64", true, true));
    // A kernel of other layouts gets its own.
    let half = problem(DType::F16, 4096, 4096, 4096);
    assert_eq!(packs(half, &named("hopper_mk")), ("hopper_mk", true, true));
}

#[test]
fn the_orientation_that_packs_less() {
    let mut half = problem(DType::F16, 4096, 8192, 2048);
    half.c = Strides::new(1, 4096);
    // As it is, nothing; Bᵀ and Aᵀ both lie across the kernel's layouts.
    let straight = choice(half, &named("hopper_kn"));
    assert_eq!(
        (straight.transposed, straight.packed),
        (false, Packed::default())
    );
    // As it is, B of 8192 columns; transposed, Bᵀ of 8192 rows: the same, and C
    // is written along its lines.
    let turned = choice(half, &named("hopper_kk"));
    let packed = Packed { a: true, b: false };
    assert_eq!((turned.transposed, turned.packed), (true, packed));
}

#[test]
fn never_is_a_refusal() {
    let half = problem(DType::F16, 4096, 4096, 4096);
    let odd = problem(DType::F16, 4096, 4096, 4095);
    assert_eq!(packs(half, &NEVER), ("hopper_kn", false, false));
    assert_eq!(packs(odd, &NEVER), ("tc_f16_kn", false, false));
    let refused = |name: &str, request: Request, catalog| {
        let request = Request {
            kernel: Some(name.into()),
            ..request
        };
        match choose(catalog, &half, &H200, &request).unwrap_err() {
            Error::KernelCannotRun { reason, .. } => reason,
            other => panic!("{other}"),
        }
    };
    let unreadable = Rejection::Tma {
        operand: Operand::B,
        reason: tma::Unreadable::Stride {
            direction: "K",
            stride: 4096,
        },
    };
    assert_eq!(refused("hopper_kk", NEVER, CATALOG), unreadable);
    // Without a kernel to pack with there is no packing.
    let without = Catalog {
        is_built: |name| !name.starts_with("pack"),
        ..CATALOG
    };
    assert_eq!(
        refused("hopper_kk", Request::default(), without),
        unreadable
    );
}

#[test]
fn a_pack_kernel_multiplies_nothing() {
    let half = problem(DType::F16, 64, 64, 64);
    assert_eq!(
        choose(CATALOG, &half, &H200, &named("pack_16")).unwrap_err(),
        Error::KernelCannotRun {
            kernel: "pack_16",
            reason: Rejection::NoProduct
        }
    );
    let family = Request {
        family: Some(Family::Pack),
        ..Request::default()
    };
    let error = choose(CATALOG, &half, &H200, &family).unwrap_err();
    // One line a family, of a dozen kernels.
    assert_eq!(
        error.to_string(),
        "no kernel for f16 elements, family pack: naive_f16: its family is naive; \
         tiled_f16: its family is tiled; tc_f16_kn: its family is tensor_core; \
         hopper_kn: its family is hopper"
    );
    assert!(candidates(CATALOG, &half, &H200).all(|kernel| kernel.family != Family::Pack));
}

#[test]
fn the_message_names_the_nearest_misses() {
    let request = Request {
        family: Some(Family::Hopper),
        block: Some(Block {
            m: 64,
            n: 128,
            k: 64,
        }),
        ..NEVER
    };
    let odd = problem(DType::F16, 64, 64, 65);
    let error = choose(CATALOG, &odd, &H200, &request).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no kernel for f16 elements, family hopper, block 64×128×64: hopper_kn_64: TMA cannot \
         read A: its lines are 130 bytes apart, accepted: multiples of 16 from 130 up to 2^40 - 16"
    );
    match error {
        Error::NoKernel { rejected, .. } => {
            let of_f16 =
                |kernel: &&KernelInfo| kernel.input == DType::F16 && kernel.family != Family::Pack;
            assert_eq!(rejected.len(), KERNELS.iter().filter(of_f16).count());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn workspaces_are_lines_of_whole_128_bytes() {
    let kernel = |name: &str| KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
    let matrix = |input, name| {
        let problem = problem(input, 5, 7, 3);
        [
            PackedMatrix::of_a(kernel(name), &problem),
            PackedMatrix::of_b(kernel(name), &problem),
        ]
    };
    let strides = |matrix: PackedMatrix| {
        let Strides {
            row_stride,
            col_stride,
            ..
        } = matrix.strides();
        (row_stride, col_stride, matrix.bytes())
    };
    // A 5×3 and B 3×7, of 2 bytes.
    let [a, b] = matrix(DType::F16, "hopper_kk");
    assert_eq!(strides(a), (64, 1, Some(5 * 128)));
    assert_eq!(strides(b), (1, 64, Some(7 * 128)));
    let [a, b] = matrix(DType::F16, "hopper_mn");
    assert_eq!(strides(a), (1, 64, Some(3 * 128)));
    assert_eq!(strides(b), (64, 1, Some(3 * 128)));
    let [a, b] = matrix(DType::Tf32, "hopper_tf32");
    assert_eq!(strides(a), (32, 1, Some(5 * 128)));
    assert_eq!(strides(b), (1, 32, Some(7 * 128)));
    // TMA can read the packed copy of an operand that it cannot read in place.
    let mut odd = problem(DType::F16, 4095, 4097, 4099);
    let hopper = kernel("hopper_kk");
    assert!(check(CATALOG, hopper, &odd, &H200).is_err());
    odd.a = PackedMatrix::of_a(hopper, &odd).strides();
    odd.b = PackedMatrix::of_b(hopper, &odd).strides();
    assert_eq!(check(CATALOG, hopper, &odd, &H200), Ok(()));
    // A broadcast operand may stand for more than any memory holds.
    let vast = (1 << 31) - 4097;
    let vast = problem(DType::Tf32, vast, 1, vast);
    let hopper = kernel("hopper_tf32");
    let matrix = PackedMatrix::of_a(hopper, &vast);
    assert_eq!(
        matrix.bytes(),
        Some(4 * ((1 << 31) - 4097) * ((1 << 31) - 4096))
    );
}

#[test]
fn f16x3_runs_on_tensor_cores_from_sm_80_on() {
    let of = |target: &Target, m, n, k| {
        let problem = problem(DType::F16x3, m, n, k);
        let choice = choose(LIBRARY, &problem, target, &Request::default()).unwrap();
        assert_eq!(choice.packed.a, choice.packed.b);
        (choice.kernel.family, choice.kernel.block.n, choice.packed.a)
    };
    assert_eq!(of(&H200, 4096, 4096, 4096), (Family::Hopper, 128, true));
    assert_eq!(of(&A100, 4096, 4096, 4096), (Family::TensorCore, 128, true));
    assert_eq!(of(&A100, 1024, 1024, 1024), (Family::TensorCore, 64, true));
    // Where splitting does not pay, and where no kernel multiplies parts.
    assert_eq!(of(&A100, 20, 30, 40), (Family::Tiled, 64, false));
    assert_eq!(of(&T4, 4096, 4096, 4096), (Family::Tiled, 128, false));
}
