//! Lines in classes: when, in how many, and what is refused.

use super::*;
use crate::epilogue_form::Bias;
use crate::select::line_classes;

const CLASSED: &[KernelInfo] = &[
    KernelInfo {
        line_classes: true,
        ..hopper("along_n", (128, 128), K, Mn)
    },
    KernelInfo {
        line_classes: true,
        c_along_m: true,
        c_by_tma_only: true,
        ..hopper("along_m", (128, 128), Mn, K)
    },
    kernel("pack_16", Family::Pack, Arch::Sm75, DType::F16, (64, 64)),
];

const CATALOG: Catalog = Catalog {
    kernels: CLASSED,
    is_built: |_| true,
};

fn named(kernel: &str, classes: Option<u32>) -> Request {
    Request {
        kernel: Some(kernel.to_owned()),
        line_classes: classes,
        ..Request::default()
    }
}

fn classes(problem: &Problem, request: &Request) -> u32 {
    let choice = choose(CATALOG, problem, &H200, request).unwrap();
    choice.line_classes
}

/// A pitch of an odd multiple of 16 bytes, and of 32.
const MID_SECTOR: u32 = 4104;
const MID_LINE: u32 = 4112;

#[test]
fn lines_that_straddle_are_divided() {
    for kernel in ["along_n", "along_m"] {
        let classes = |m, k| classes(&problem(DType::F16, m, 4096, k), &named(kernel, None));
        assert!(classes(8192, MID_SECTOR) > 1, "{kernel}");
        assert_eq!(classes(8192, 4096), 1, "{kernel}: no line straddles");
        assert_eq!(classes(8191, MID_SECTOR), 1, "{kernel}: 8191 is odd");
        // Each class of 64 rows would make a tile, and all SMs have one without classes.
        let narrow = problem(DType::F16, 64, 65536, MID_SECTOR);
        assert_eq!(self::classes(&narrow, &named(kernel, None)), 1, "{kernel}");
    }
}

#[test]
fn no_more_classes_than_make_lines_begin_on_cache_lines() {
    let counts = |k| {
        let product = problem(DType::F16, 8192, 4096, k);
        line_classes::counts(&CLASSED[0], &product, Packed::default()).collect::<Vec<_>>()
    };
    assert_eq!(counts(4096), [0; 0]);
    assert_eq!(counts(4096 + 32), [2]);
    assert_eq!(counts(MID_LINE), [2, 4]);
    assert_eq!(counts(MID_SECTOR), [2, 4, 8]);
}

#[test]
fn an_operand_that_begins_off_a_line_gains_less() {
    let mut problem = problem(DType::F16, 8192, 4096, MID_SECTOR);
    problem.a.alignment = 16;
    assert_eq!(classes(&problem, &named("along_n", None)), 1);
    problem.a.alignment = 32;
    assert!(classes(&problem, &named("along_n", None)) <= 2);
}

#[test]
fn the_grid_has_the_tiles_of_all_classes_and_k_the_part_of_a_line() {
    let product = problem(DType::F16, 2000, 4096, MID_SECTOR);
    let choice = choose(CATALOG, &product, &H200, &named("along_n", Some(8))).unwrap();
    // 250 rows of a class are two tiles.
    assert_eq!((choice.grid.tiles_m, choice.grid.tiles_n), (16, 32));
    assert_eq!((choice.tiles(), choice.transposed), (512, false));
    // Row c begins 8·c elements, modulo 64, behind a line.
    assert_eq!(
        line_classes::depth(&choice.kernel, &product, 8),
        MID_SECTOR + 56
    );
    assert_eq!(line_classes::depth(&choice.kernel, &product, 1), MID_SECTOR);
    let batch = line_classes::as_batch(&choice.kernel, &product, 8);
    assert_eq!((batch.m, batch.batches), (250, 8));
    assert_eq!((batch.a.row_stride, batch.a.batch_stride), (8 * 4104, 4104));
    assert_eq!((batch.b, batch.c.row_stride), (product.b, 8 * 4096));

    // Cᵀ = Bᵀ·Aᵀ: the rows of A are columns of the kernel's B.
    let choice = choose(CATALOG, &product, &H200, &named("along_m", Some(8))).unwrap();
    assert!(choice.transposed);
    assert_eq!((choice.grid.tiles_m, choice.grid.tiles_n), (32, 16));
}

#[test]
fn what_depends_on_a_row_has_no_classes() {
    let request = named("along_n", None);
    let product = problem(DType::F16, 8192, 4096, MID_SECTOR);
    let invariant = Request {
        batch_invariant: true,
        ..request.clone()
    };
    assert_eq!(classes(&product, &invariant), 1);
    let forced = Request {
        line_classes: Some(2),
        ..invariant
    };
    let error = choose(CATALOG, &product, &H200, &forced).unwrap_err();
    assert!(
        error.to_string().contains("batch_invariant forbids"),
        "{error}"
    );
    let fused = KernelInfo {
        fused: true,
        ..CLASSED[0]
    };
    let mut with_bias = product;
    with_bias.epilogue.bias = Some(Bias::PerColumn);
    let check = |problem: &Problem| line_classes::check(&fused, problem, Packed::default(), 8);
    assert_eq!(check(&with_bias), Ok(()));
    with_bias.epilogue.bias = Some(Bias::PerRow);
    assert!(matches!(
        check(&with_bias),
        Err(Rejection::LineClasses { classes: 8, .. })
    ));
}

#[test]
fn a_forced_number_is_accepted_or_refused() {
    let error = |m, kernel, number| {
        let problem = problem(DType::F16, m, 4096, MID_SECTOR);
        let error = choose(CATALOG, &problem, &H200, &named(kernel, Some(number)));
        error.unwrap_err().to_string()
    };
    assert!(error(8192, "along_n", 3).contains("there are 1, 2, 4 or 8 classes"));
    assert!(error(8190, "along_n", 4).contains("the lines are no multiple of their number"));
    let odd_pitch = problem(DType::F16, 8192, 4096, 4097);
    let packed = choose(CATALOG, &odd_pitch, &H200, &named("along_n", Some(2)));
    assert!(
        packed
            .unwrap_err()
            .to_string()
            .contains("the operand is packed")
    );
    // Lines may be 2^40 bytes apart at most, those of a class too.
    let mut far = problem(DType::F16, 8192, 4096, MID_SECTOR);
    far.a.row_stride = (1 << 39) - 8;
    assert_eq!(classes(&far, &named("along_n", None)), 1);
    let error = choose(CATALOG, &far, &H200, &named("along_n", Some(2))).unwrap_err();
    assert!(error.to_string().contains("2^40 - 16"), "{error}");
    for number in [1, 2, 4, 8] {
        let product = problem(DType::F16, 8192, 4096, 4096);
        assert_eq!(classes(&product, &named("along_n", Some(number))), number);
    }
}
