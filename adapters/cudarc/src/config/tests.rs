use tilewise::{Bias, Device, Element, Epilogue, Gemm, Inputs, MatrixView, MatrixViewMut};

use super::*;

/// Small numbers, whose sums of products are exact.
fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len)
        .map(|at| ((at * 7 + seed * 5) % 11) as f32 - 5.0)
        .collect()
}

fn view<'a, T: Element>(
    device: &'a Device,
    elements: &'a [T],
    layout: Layout,
) -> MatrixView<'a, T> {
    assert!(elements.len() >= layout.span().unwrap());
    let address = elements.as_ptr().expose_provenance() as u64;
    // SAFETY: the elements outlive the product, and the layout is within them.
    unsafe { MatrixView::from_raw(device, address, layout) }.unwrap()
}

/// C as BLAS defines it, by the definition of column-major order.
fn blas(config: &MatmulConfig, a: &[f32], b: &[f32], c: &mut [f32], bias: &[f32]) {
    let (m, n, k) = (config.m as usize, config.n as usize, config.k as usize);
    let at = |transposed: bool, leading: i64, row: usize, col: usize| {
        let (row, col) = if transposed { (col, row) } else { (row, col) };
        row + col * leading as usize
    };
    for batch in 0..config.batch_size.unwrap_or(1) as usize {
        let first = |stride: Option<i64>| match config.batch_size {
            None => 0,
            Some(_) => batch * stride.unwrap_or(0) as usize,
        };
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f32 = (0..k)
                .map(|l| {
                    a[first(config.stride_a) + at(config.transa, config.lda, i, l)]
                        * b[first(config.stride_b) + at(config.transb, config.ldb, l, j)]
                })
                .sum();
            let c = &mut c[first(config.stride_c) + at(config.transc, config.ldc, i, j)];
            let bias = bias[first(config.stride_bias) + i];
            *c = config.alpha * sum + config.beta * *c + bias;
        }
    }
}

const PLAIN: MatmulConfig = MatmulConfig {
    transa: false,
    transb: false,
    transc: false,
    m: 4,
    n: 3,
    k: 5,
    alpha: 1.0,
    lda: 4,
    ldb: 5,
    beta: 0.0,
    ldc: 4,
    stride_a: None,
    stride_b: None,
    stride_c: None,
    stride_bias: None,
    batch_size: None,
};

#[test]
fn layouts_are_those_of_blas() {
    let device = Device::cpu();
    let mut compared = 0;
    for bits in 0..64 {
        let bit = |index: u32| bits >> index & 1 == 1;
        let (transa, transb, transc) = (bit(0), bit(1), bit(2));
        let batched = bit(3);
        let padding = i64::from(bit(4)) * 3;
        let (m, n, k) = (4_i64, 3_i64, 5_i64);
        let lda = if transa { k } else { m } + padding;
        let ldb = if transb { n } else { k } + padding;
        let ldc = if transc { n } else { m } + padding;
        let config = MatmulConfig {
            transa,
            transb,
            transc,
            alpha: 0.5,
            beta: 2.0,
            lda,
            ldb,
            ldc,
            // One A for all, where it has a batch.
            stride_a: Some(if bit(5) { 0 } else { lda * 5 + padding }),
            stride_b: Some(ldb * 5),
            stride_c: Some(ldc * 4 + padding),
            // (Gemm::run takes one bias for all.)
            stride_bias: bit(5).then_some(0),
            batch_size: batched.then_some(3),
            ..PLAIN
        };
        let layouts = config.layouts().unwrap();
        let elements = |layout: Layout, seed| numbers(layout.span().unwrap(), seed);
        let (a, b) = (elements(layouts.a, 1), elements(layouts.b, 2));
        let bias = elements(layouts.bias, 3);
        let mut c = elements(layouts.c, 4);
        let mut expected = c.clone();
        blas(&config, &a, &b, &mut expected, &bias);

        let epilogue = Epilogue::new()
            .alpha(config.alpha)
            .beta(config.beta)
            .bias(Bias::PerRow);
        let inputs = Inputs::new()
            .in_place()
            .bias(view(&device, &bias, layouts.bias));
        let address = c.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: `c` has the layout's elements, and nothing else uses them.
        let c_view = unsafe { MatrixViewMut::from_raw(&device, address, layouts.c) }.unwrap();
        Gemm::new(&device)
            .epilogue(epilogue)
            .run(
                view(&device, &a, layouts.a),
                view(&device, &b, layouts.b),
                c_view,
                &inputs,
            )
            .unwrap();
        // The padding keeps its values, too.
        assert_eq!(c, expected, "{config:?}");
        compared += 1;
    }
    assert_eq!(compared, 64);
}

#[test]
fn strides_are_not_read_without_a_batch_size() {
    let strides = MatmulConfig {
        stride_a: Some(-1),
        stride_c: Some(7),
        stride_bias: Some(9),
        ..PLAIN
    };
    assert_eq!(strides.layouts().unwrap(), PLAIN.layouts().unwrap());
}

#[test]
fn a_bias_is_batched_if_it_has_a_stride() {
    let batched = |stride_bias| MatmulConfig {
        batch_size: Some(2),
        stride_a: Some(20),
        stride_b: Some(15),
        stride_c: Some(12),
        stride_bias,
        ..PLAIN
    };
    let bias = |stride| batched(stride).layouts().unwrap().bias;
    assert_eq!(bias(None), Layout::row_major(4, 1));
    assert_eq!(bias(Some(0)), Layout::row_major(4, 1));
    assert_eq!(bias(Some(6)), Layout::row_major(4, 1).batched_by(2, 6));
}

#[test]
fn fields_that_are_out_of_range() {
    let batch = MatmulConfig {
        batch_size: Some(2),
        stride_a: Some(20),
        stride_b: Some(15),
        stride_c: Some(12),
        ..PLAIN
    };
    assert!(batch.layouts().is_ok());
    let cases = [
        (
            MatmulConfig { lda: 3, ..PLAIN },
            "lda = 3; accepted: at least 4, the rows as stored",
        ),
        (
            MatmulConfig {
                transa: true,
                ..PLAIN
            },
            "lda = 4; accepted: at least 5, the rows as stored",
        ),
        (
            MatmulConfig { ldb: -5, ..PLAIN },
            "ldb = -5; accepted: at least 5, the rows as stored",
        ),
        (
            MatmulConfig { ldc: 0, ..PLAIN },
            "ldc = 0; accepted: at least 4, the rows as stored",
        ),
        (
            MatmulConfig {
                transc: true,
                ldc: 2,
                ..PLAIN
            },
            "ldc = 2; accepted: at least 3, the rows as stored",
        ),
        (
            MatmulConfig {
                m: 0,
                lda: 0,
                ..PLAIN
            },
            "lda = 0; accepted: at least 1, the rows as stored",
        ),
        (
            MatmulConfig {
                batch_size: Some(0),
                ..batch
            },
            "batch_size = 0; accepted: at least 1, or None for one",
        ),
        (
            MatmulConfig {
                batch_size: Some(-2),
                ..batch
            },
            "batch_size = -2; accepted: at least 1, or None for one",
        ),
        (
            MatmulConfig {
                stride_b: None,
                ..batch
            },
            "stride_b = None; accepted: Some(stride >= 0) with batch_size",
        ),
        (
            MatmulConfig {
                stride_c: Some(-12),
                ..batch
            },
            "stride_c = -12; accepted: Some(stride >= 0) with batch_size",
        ),
        (
            MatmulConfig {
                stride_bias: Some(-1),
                ..batch
            },
            "stride_bias = -1; accepted: Some(stride >= 0) with batch_size",
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(config.layouts().unwrap_err().to_string(), expected);
    }
}
