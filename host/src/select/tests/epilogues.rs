//! Epilogues and batches: the kernels that can compute them, and gated pairs in two launches.

use super::*;
use crate::epilogue::{Activation, Epilogue};
use crate::epilogue_form::Gated;

/// An M×N×K product of f16 with `epilogue`, all row-major.
fn with(epilogue: Epilogue, m: u32, n: u32, k: u32) -> Problem {
    Problem {
        epilogue: epilogue.form(),
        ..problem(DType::F16, m, n, k)
    }
}

/// The choice among kernels of one family that take no epilogue, and others that do.
fn chosen_for(problem: &Problem) -> Choice {
    const PLAIN_HOPPER: &[KernelInfo] = &[
        KernelInfo {
            fused: false,
            ..hopper("plain", (128, 256), K, Mn)
        },
        tensor_core("fused", DType::F16, K, Mn),
    ];
    let catalog = Catalog {
        kernels: PLAIN_HOPPER,
        is_built: |_| true,
    };
    choose(catalog, problem, &H200, &Request::default()).unwrap()
}

#[test]
fn a_kernel_without_epilogues_computes_single_plain_products() {
    let plain = with(Epilogue::new(), 512, 512, 512);
    assert_eq!(chosen_for(&plain).kernel.name, "plain");
    let scaled = with(Epilogue::new().alpha(2.0), 512, 512, 512);
    assert_eq!(chosen_for(&scaled).kernel.name, "fused");
    let batch = Problem {
        batches: 2,
        ..plain
    };
    assert_eq!(chosen_for(&batch).kernel.name, "fused");

    let request = Request {
        kernel: Some("plain".into()),
        ..Request::default()
    };
    let catalog = Catalog {
        kernels: &[KernelInfo {
            fused: false,
            ..hopper("plain", (128, 256), K, Mn)
        }],
        is_built: |_| true,
    };
    let refused = |problem: &Problem| choose(catalog, problem, &H200, &request).unwrap_err();
    let (kernel, epilogue) = ("plain", scaled.epilogue);
    let reason = Rejection::Epilogue { epilogue };
    assert_eq!(refused(&scaled), Error::KernelCannotRun { kernel, reason });
    assert_eq!(reason.to_string(), "it computes no epilogue such as alpha");
    let reason = Rejection::Batches { batches: 2 };
    assert_eq!(refused(&batch), Error::KernelCannotRun { kernel, reason });
}

#[test]
fn pairs_take_two_launches_of_half_the_columns() {
    let swiglu = Epilogue::new().activation(Activation::Silu);
    for gated in [Gated::Halves, Gated::Interleaved] {
        let problem = with(swiglu.gated(gated), 300, 512, 64);
        let choice = choose(CATALOG, &problem, &A100, &Request::default()).unwrap();
        assert!(choice.two_launches);
        assert_eq!(choice.kernel.family, Family::TensorCore);
        assert_eq!(choice.grid, TileGrid::cover(300, 256, 128, 128));
        let half = problem.half().unwrap();
        let (b, up_offset) = (half.b, problem.up_offset(gated));
        assert_eq!((half.n, half.c_cols()), (256, 256));
        match gated {
            Gated::Halves => assert_eq!((b.col_stride, up_offset), (1, 256)),
            Gated::Interleaved => assert_eq!((b.col_stride, up_offset), (2, 1)),
        }
        // The address of the other half of B counts, too.
        assert_eq!(b.alignment, Strides::alignment_of(2 * up_offset));
    }
    // Rows and columns cannot change places.
    let turned = Problem {
        c: Strides::new(1, 300),
        ..with(swiglu.gated(Gated::Halves), 300, 512, 64)
    };
    let choice = choose(CATALOG, &turned, &A100, &Request::default()).unwrap();
    assert!(choice.two_launches && !choice.transposed);
}

#[test]
fn a_transposed_problem_has_a_transposed_epilogue() {
    let epilogue = Epilogue::new().bias(crate::Bias::PerRow).row_scale();
    let turned = Epilogue::new().bias(crate::Bias::PerColumn).col_scale();
    let problem = with(epilogue, 4, 5, 6);
    assert_eq!(problem.transposed().epilogue, turned.form());
    assert_eq!(problem.transposed().transposed(), problem);
}

#[test]
fn the_tiles_of_all_products_count() {
    let batch = |batches| Problem {
        batches,
        ..problem(DType::F32, 64, 64, 8)
    };
    let naive = Request {
        kernel: Some("naive_f32".into()),
        ..Request::default()
    };
    let choose = |batches, request: &Request| super::choose(CATALOG, &batch(batches), &T4, request);
    // 16 tiles for each product.
    let choice = choose(100, &naive).unwrap();
    assert_eq!((choice.tiles(), ctas(&choice, 40)), (1600, (1600, 1)));
    let persistent = Request {
        schedule: Some(Schedule::Persistent),
        ..naive.clone()
    };
    assert_eq!(ctas(&choose(100, &persistent).unwrap(), 40), (40, 1));
    assert_eq!(ctas(&choose(2, &persistent).unwrap(), 40), (32, 1));
    assert_eq!(
        choose(1 << 27, &naive).unwrap_err(),
        Error::TooManyTiles {
            tiles_m: 4,
            tiles_n: 4,
            batches: 1 << 27,
            schedule: Schedule::Grid1d,
        }
    );
    let on_grid = Request {
        schedule: Some(Schedule::Grid2d),
        ..naive
    };
    assert_eq!(
        choose(2, &on_grid).unwrap_err(),
        Error::BatchedGrid2d { batches: 2 }
    );
    assert!(choose(1, &on_grid).is_ok());
}
