use candle_core::{DType, Device, Tensor};

use super::*;

/// A tensor's layout.
fn tensor(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap()
}

/// Compares the elements that the launches read and write with those of A, B and C, index by
/// index, and returns how many launches there are.
fn check(a: &Tensor, b: &Tensor) -> usize {
    let launches = Launches::new(a.layout(), b.layout()).unwrap();
    let dims = launches.shape.dims().to_vec();
    let [batches @ .., m, n] = &dims[..] else {
        panic!("{dims:?}")
    };
    let k = a.dims()[a.rank() - 1];

    // (first element of a row of A, first element of a column of B) for each element of C.
    let mut found = vec![None; launches.shape.elem_count()];
    for [a_offset, b_offset, c_offset] in &launches.offsets {
        let (la, lb, lc) = (launches.a, launches.b, launches.c);
        assert_eq!((la.rows, la.cols, lb.cols), (lc.rows, k, lc.cols));
        assert_eq!(lb.rows, k);
        for batch in 0..lc.batches {
            for (i, j) in (0..lc.rows).flat_map(|i| (0..lc.cols).map(move |j| (i, j))) {
                let row = a_offset + batch * la.batch_stride + i * la.row_stride;
                let col = b_offset + batch * lb.batch_stride + j * lb.col_stride;
                let at = c_offset + batch * lc.batch_stride + i * lc.row_stride + j * lc.col_stride;
                assert_eq!(found[at].replace((row, col)), None, "written twice");
            }
        }
    }

    let matrices = |tensor: &Tensor, rows: usize, cols: usize| {
        let shape: Vec<usize> = batches.iter().copied().chain([rows, cols]).collect();
        let view = tensor.broadcast_as(shape).unwrap();
        view.strided_index().collect::<Vec<usize>>()
    };
    let (rows, cols) = (matrices(a, *m, k), matrices(b, k, *n));
    let expected: Vec<_> = (0..found.len())
        .map(|at| {
            let (batch, i, j) = (at / (m * n), at / n % m, at % n);
            Some((rows[(batch * m + i) * k], cols[batch * k * n + j]))
        })
        .collect();
    assert_eq!(found, expected, "{:?} {:?}", a.layout(), b.layout());
    for (tensor, layout) in [(a, launches.a), (b, launches.b)] {
        let [.., row_stride, col_stride] = tensor.stride() else {
            unreachable!("a tensor of rank 2 or more");
        };
        if layout.rows == tensor.dims()[tensor.rank() - 2] && layout.rows > 1 {
            assert_eq!(layout.row_stride, *row_stride);
        }
        assert_eq!(layout.col_stride, *col_stride);
    }
    launches.offsets.len()
}

#[test]
fn batches_are_one_launch_where_the_strides_allow() {
    // Plain matrices, and a shared B: the rows of all batches are one matrix.
    assert_eq!(check(&tensor(&[3, 4]), &tensor(&[4, 5])), 1);
    let shared = Launches::new(tensor(&[2, 6, 3, 4]).layout(), tensor(&[4, 5]).layout()).unwrap();
    assert_eq!((shared.c.rows, shared.c.batches), (36, 1));
    assert_eq!(check(&tensor(&[2, 6, 3, 4]), &tensor(&[4, 5])), 1);
    assert_eq!(check(&tensor(&[7, 1, 4]), &tensor(&[4, 5])), 1);
    // A shared A repeats with a stride of 0.
    assert_eq!(check(&tensor(&[3, 4]), &tensor(&[2, 6, 4, 5])), 1);
    assert_eq!(check(&tensor(&[2, 6, 3, 4]), &tensor(&[2, 6, 4, 5])), 1);
    assert_eq!(check(&tensor(&[1, 6, 3, 4]), &tensor(&[1, 6, 4, 5])), 1);

    // Attention: (batch, tokens, heads, d) with heads before tokens.
    let q = tensor(&[2, 5, 6, 4]).transpose(1, 2).unwrap();
    let k = tensor(&[2, 7, 6, 4]).transpose(1, 2).unwrap();
    assert_eq!(check(&q, &k.t().unwrap()), 2);
    // Broadcast along different dimensions.
    assert_eq!(check(&tensor(&[2, 1, 3, 4]), &tensor(&[1, 6, 4, 5])), 2);
    assert_eq!(check(&tensor(&[6, 3, 4]), &tensor(&[2, 1, 4, 5])), 1);
}

#[test]
fn views_of_all_kinds() {
    let sizes = [1, 2, 3];
    let mut products = 0;
    for (batch, heads) in sizes.iter().flat_map(|&b| sizes.map(|h| (b, h))) {
        for (m, n, k) in [(2, 3, 4), (1, 3, 2), (3, 1, 1)] {
            let views = |rows: usize, cols: usize| {
                let dense = tensor(&[batch, heads, rows, cols]);
                let wide = tensor(&[batch, heads + 1, rows + 1, cols + 2]);
                vec![
                    dense.clone(),
                    tensor(&[batch, heads, cols, rows]).t().unwrap(),
                    tensor(&[heads, batch, rows, cols]).transpose(0, 1).unwrap(),
                    tensor(&[rows, batch, cols, heads])
                        .permute((1, 3, 0, 2))
                        .unwrap(),
                    wide.narrow(1, 1, heads)
                        .and_then(|wide| wide.narrow(2, 1, rows))
                        .and_then(|wide| wide.narrow(3, 2, cols))
                        .unwrap(),
                    tensor(&[1, heads, rows, cols]),
                    tensor(&[batch, 1, 1, cols])
                        .broadcast_as((batch, 1, rows, cols))
                        .unwrap(),
                    tensor(&[rows, cols]),
                ]
            };
            for a in views(m, k) {
                for b in views(k, n) {
                    check(&a, &b);
                    products += 1;
                }
            }
        }
    }
    assert_eq!(products, 9 * 3 * 64);
}

#[test]
fn empty_results_need_no_launch_and_empty_sums_do() {
    assert_eq!(check(&tensor(&[0, 3, 4]), &tensor(&[0, 4, 5])), 0);
    assert_eq!(check(&tensor(&[2, 0, 4]), &tensor(&[2, 4, 5])), 0);
    assert_eq!(check(&tensor(&[3, 4]), &tensor(&[4, 0])), 0);
    let launches = Launches::new(tensor(&[2, 3, 0]).layout(), tensor(&[2, 0, 5]).layout()).unwrap();
    assert_eq!((launches.offsets.len(), launches.a.cols), (1, 0));
}

#[test]
fn shapes_that_do_not_belong_together() {
    for (a, b) in [
        (&[3, 4][..], &[5, 6][..]),
        (&[4], &[4, 5]),
        (&[3, 4], &[4]),
        (&[2, 3, 4], &[3, 4, 5]),
        (&[2, 2, 3, 4], &[3, 1, 4, 5]),
    ] {
        let error = Launches::new(tensor(a).layout(), tensor(b).layout()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("shape mismatch in tilewise-matmul"),
            "{text}"
        );
    }
}
