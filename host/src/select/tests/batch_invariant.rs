//! Batch-invariant results: with the library's own kernels, whatever the selection may choose
//! adds in one order, which the type, K and the GPU decide.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::epilogue::{Activation, Epilogue};
use crate::epilogue_form::{Bias, Gated};

const INPUTS: [DType; 5] = [
    DType::F32,
    DType::Tf32,
    DType::F16x3,
    DType::F16,
    DType::Bf16,
];

fn invariant() -> Request {
    Request {
        batch_invariant: true,
        ..Request::default()
    }
}

fn pick<T: Copy>(random: &mut StdRng, values: &[T]) -> T {
    values[random.random_range(0..values.len())]
}

/// Strides of `rows`×`cols` elements: along rows or columns, with and without gaps, at any
/// address.
fn strides(random: &mut StdRng, rows: u32, cols: u32, batches: u32) -> Strides {
    let (rows, cols) = (u64::from(rows), u64::from(cols));
    let gap = pick(random, &[0, 0, 1, 8]);
    let matrix = match random.random_range(0..5) {
        0 | 1 => Strides::new(cols + gap, 1),
        2 | 3 => Strides::new(1, rows + gap),
        _ => Strides::new(2 * cols + gap, 2),
    };
    Strides {
        batch_stride: if batches > 1 {
            4 * rows * (cols + 8)
        } else {
            0
        },
        alignment: pick(random, &[128, 128, 16, 4]),
        ..matrix
    }
}

fn epilogue(random: &mut StdRng, batches: u32) -> EpilogueForm {
    let plain = Epilogue::new();
    let gated = if batches > 1 {
        plain
    } else {
        let gated = pick(random, &[Gated::Halves, Gated::Interleaved]);
        plain.activation(Activation::Silu).gated(gated)
    };
    let bias = plain.alpha(0.5).beta(2.0).bias(Bias::PerRow);
    let scales = plain.row_scale().col_scale();
    pick(random, &[plain, plain, gated, bias, scales]).form()
}

/// A random product of depth `k`.
fn draw(random: &mut StdRng, input: DType, k: u32) -> Problem {
    const SIZES: [u32; 12] = [2, 8, 16, 48, 64, 130, 256, 300, 1000, 2048, 4096, 14_336];
    let (m, n) = (
        pick(random, &[1, 2, 7, 16, 63, 128, 300, 2048, 5000]),
        pick(random, &SIZES),
    );
    let batches = pick(random, &[1, 1, 3]);
    let epilogue = epilogue(random, batches);
    Problem {
        m,
        n,
        k,
        batches,
        input,
        output: pick(random, &[OutputType::Input, OutputType::F32]),
        a: strides(random, m, k, batches),
        b: strides(random, k, n, batches),
        c: strides(random, m, epilogue.c_cols(n), batches),
        epilogue,
    }
}

#[test]
fn all_choices_add_in_one_order() {
    let mut random = StdRng::seed_from_u64(18);
    let (mut kernels, mut transposed, mut packed, mut differing) = (Vec::new(), 0, 0, 0);
    for input in INPUTS {
        for target in [H200, A100, T4] {
            for k in [0, 1, 40, 64, 72, 200, 1000, 4096, 14_336] {
                if input == DType::Tf32 && target == T4 {
                    continue;
                }
                let order = SumOrder::invariant(LIBRARY, input, k, &target).unwrap();
                assert_eq!(order.parts, 1);
                for _ in 0..40 {
                    let problem = draw(&mut random, input, k);
                    let request = invariant();
                    let listed = choices(LIBRARY, &problem, &target, &request)
                        .unwrap_or_else(|error| panic!("{problem:?}: {error}"));
                    for choice in listed {
                        let found = SumOrder::of(&choice.kernel, k);
                        assert_eq!(found, Some(order), "{} for {problem:?}", choice.kernel.name);
                        assert_ne!(choice.schedule, Schedule::StreamK);
                        let scales = problem.epilogue.row_scale && problem.epilogue.col_scale;
                        let has_an_order = scales || input == DType::F16x3;
                        assert!(!(has_an_order && choice.transposed), "{problem:?}");
                        kernels.push(choice.kernel.name);
                        transposed += u32::from(choice.transposed);
                        packed += u32::from(choice.packed.any());
                    }
                    // What is checked: without the flag, some choices add otherwise.
                    let open = Request::default();
                    let mut free = choices(LIBRARY, &problem, &target, &open).unwrap();
                    let other = free.any(|choice| SumOrder::of(&choice.kernel, k) != Some(order));
                    differing += u32::from(other);
                }
            }
        }
    }
    kernels.sort_unstable();
    kernels.dedup();
    let count = |part: &str| kernels.iter().filter(|name| name.contains(part)).count();
    // Of hopper's tiles, all may be taken but those that split K or run under stream-K; of
    // these, f16 and bf16 have four layouts.
    let tiles: Vec<_> = (LIBRARY.kernels.iter())
        .filter(|kernel| kernel.name.starts_with("hopper_f16_ak_bn_"))
        .filter(|kernel| SumOrder::of(kernel, 128).is_some_and(|order| order.parts == 1))
        .collect();
    assert!(count("hopper_f16_ak_bn_") >= tiles.len() - 2, "{kernels:?}");
    assert_eq!(count("split") + count("streamk") + count("naive"), 0);
    assert!(transposed > 100 && packed > 100 && differing > 100);
}

#[test]
fn the_order_is_of_the_fastest_family_in_its_smallest_k_blocks() {
    let of = |input, k, target: &Target| SumOrder::invariant(LIBRARY, input, k, target).unwrap();
    let order = |family, depth| SumOrder {
        family,
        arch: match family {
            Family::Hopper => Arch::Sm90a,
            Family::TensorCore => Arch::Sm80,
            _ => Arch::Sm75,
        },
        parts: 1,
        depth,
    };
    assert_eq!(of(DType::F16, 4096, &H200), order(Family::Hopper, 4096));
    assert_eq!(of(DType::Bf16, 65, &H200), order(Family::Hopper, 128));
    assert_eq!(of(DType::Tf32, 65, &H200), order(Family::Hopper, 96));
    assert_eq!(of(DType::F16x3, 65, &H200), order(Family::Hopper, 128));
    assert_eq!(of(DType::F16x3, 65, &A100), order(Family::TensorCore, 96));
    assert_eq!(of(DType::F32, 65, &H200), order(Family::Tiled, 80));
    assert_eq!(of(DType::F16, 65, &A100), order(Family::TensorCore, 128));
    let turing = SumOrder {
        arch: Arch::Sm75,
        ..order(Family::TensorCore, 96)
    };
    assert_eq!(of(DType::F16, 65, &T4), turing);
    assert_eq!(of(DType::Bf16, 65, &T4), order(Family::Tiled, 80));
    // Hopper kernels compute at least one k-block.
    assert_eq!(of(DType::F16, 0, &H200), order(Family::TensorCore, 0));
    assert_eq!(SumOrder::invariant(LIBRARY, DType::Tf32, 64, &T4), None);
}

/// The kernel with k-blocks of 128 adds more zeros than the others where K has an odd number
/// of k-blocks of 64.
#[test]
fn deep_k_blocks_are_taken_where_they_end_where_others_do() {
    let named = |k| {
        let request = Request {
            kernel: Some("hopper_f16_ak_bn_64x64x128".into()),
            ..invariant()
        };
        choose(LIBRARY, &problem(DType::F16, 64, 64, k), &H200, &request)
    };
    for k in [65, 128, 256, 500] {
        assert!(named(k).is_ok(), "{k}");
    }
    for k in [1, 64, 192, 300] {
        let error = named(k).unwrap_err().to_string();
        assert!(
            error.contains("batch_invariant accepts one sum of"),
            "{error}"
        );
    }
}

#[test]
fn what_is_forced_and_adds_otherwise_is_refused() {
    let product = problem(DType::F16, 64, 512, 4096);
    let of = |request: Request| choose(LIBRARY, &product, &H200, &request).map(|_| ());
    let message = |request: Request| of(request).unwrap_err().to_string();
    let kernel = |name: &str| Request {
        kernel: Some(name.into()),
        ..invariant()
    };
    assert_eq!(of(kernel("hopper_f16_ak_bn_128x128x64")), Ok(()));
    let accepted = SumOrder::invariant(LIBRARY, DType::F16, 4096, &H200).unwrap();
    for (name, order) in [
        (
            "hopper_f16_ak_bn_64x64x64_split2",
            Some(SumOrder {
                parts: 2,
                ..accepted
            }),
        ),
        ("hopper_f16_ak_bn_128x128x64_streamk", None),
        (
            "tensor_core_f16_ak_bn_64x64x64",
            Some(SumOrder {
                family: Family::TensorCore,
                arch: Arch::Sm80,
                ..accepted
            }),
        ),
    ] {
        assert_eq!(
            of(kernel(name)),
            Err(Error::KernelCannotRun {
                kernel: LIBRARY
                    .kernels
                    .iter()
                    .find(|k| k.name == name)
                    .unwrap()
                    .name,
                reason: Rejection::SumOrder {
                    order,
                    accepted: Some(accepted),
                },
            })
        );
    }
    assert_eq!(
        message(kernel("hopper_f16_ak_bn_64x64x64_split2")),
        "kernel hopper_f16_ak_bn_64x64x64_split2 cannot run this problem: it adds 2 sums of 2048 \
         products by hopper kernels for sm_90a, and batch_invariant accepts one sum of 4096 \
         products by hopper kernels for sm_90a"
    );
    let stream_k = message(Request {
        schedule: Some(Schedule::StreamK),
        ..invariant()
    });
    assert!(
        stream_k.starts_with("no kernel for f16 elements, schedule StreamK, batch-invariant: ")
            && stream_k.contains("it adds in an order that M and N decide"),
        "{stream_k}"
    );
    let family = message(Request {
        family: Some(Family::Tiled),
        ..invariant()
    });
    assert!(
        family.contains("family tiled, batch-invariant") && family.contains("by hopper kernels"),
        "{family}"
    );
    // An operand that TMA cannot read is packed, or read in place by a hopper kernel where none may
    // be packed; no other family takes it.
    let mut odd = product;
    odd.a.row_stride += 1;
    let never = Request {
        packing: Packing::Never,
        ..invariant()
    };
    let choice = choose(LIBRARY, &odd, &H200, &invariant()).unwrap();
    let Packed { a, b } = choice.packed;
    assert!(if choice.transposed { b } else { a });
    let in_place = choose(LIBRARY, &odd, &H200, &never).unwrap();
    assert_eq!(in_place.packed, Packed::default());
    assert!(in_place.kernel.family == Family::Hopper && !in_place.kernel.loads_by_tma);
    let mut tf32 = problem(DType::Tf32, 64, 512, 4096);
    tf32.a.row_stride += 1;
    assert!(choose(LIBRARY, &tf32, &H200, &never).is_err());
}

/// A GPU that can launch kernels with other sums only gets none of them.
#[test]
fn without_a_kernel_of_one_sum_there_is_none() {
    let others: Vec<KernelInfo> = (LIBRARY.kernels.iter())
        .filter(|kernel| kernel.family == Family::Pack || kernel.cluster.k > 1)
        .copied()
        .collect();
    let catalog = Catalog {
        kernels: &others,
        ..LIBRARY
    };
    let product = problem(DType::F16, 64, 512, 4096);
    assert!(choose(catalog, &product, &H200, &Request::default()).is_ok());
    let error = choose(catalog, &product, &H200, &invariant()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("batch_invariant accepts one sum"),
        "{message}"
    );
}

/// Pairs in a batch with a C of 16 bits would need another family.
#[test]
fn pairs_in_a_batch_are_computed_in_the_same_order_or_not_at_all() {
    let gated = Epilogue::new()
        .activation(Activation::Silu)
        .gated(Gated::Halves);
    let pairs = |output, batches| Problem {
        output,
        batches,
        epilogue: gated.form(),
        ..problem(DType::F16, 64, 512, 256)
    };
    let of = |problem: &Problem| choose(LIBRARY, problem, &H200, &invariant());
    assert!(!of(&pairs(OutputType::Input, 1)).unwrap().two_launches);
    assert!(of(&pairs(OutputType::F32, 2)).unwrap().two_launches);
    let error = of(&pairs(OutputType::Input, 2)).unwrap_err();
    assert!(matches!(error, Error::NoKernel { .. }), "{error}");
}

#[test]
fn large_products_and_wide_decode_steps_launch_the_same() {
    let choice = |(m, n, k), request: &Request| {
        choose(LIBRARY, &problem(DType::F16, m, n, k), &H200, request).unwrap()
    };
    let differs = |shape| choice(shape, &invariant()) != choice(shape, &Request::default());
    for shape in [
        (4096, 4096, 4096),
        (8192, 28_672, 8192),
        (512, 512, 512),
        (16, 14_336, 4096),
    ] {
        assert!(!differs(shape), "{shape:?}");
    }
    // Where the free choice splits K.
    assert!(differs((16, 4096, 4096)));
}
