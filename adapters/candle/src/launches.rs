//! What tilewise multiplies for two tensors: layouts of rank 3, and where they begin.
//!
//! Tensors may have any number of batch dimensions, and tilewise's layouts have one. Batch
//! dimensions that are one arithmetic progression in A and in B become one dimension. What
//! does not fit is one launch for each index of the other dimensions.

use candle_core::{Error, Layout as TensorLayout, Result, Shape};
use tilewise::Layout;

/// The name of the operation in errors.
pub(crate) const NAME: &str = "tilewise-matmul";

/// The launches of one product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launches {
    /// Layout of op(A) in every launch.
    pub a: Layout,
    /// Layout of op(B) in every launch.
    pub b: Layout,
    /// Layout of C in every launch.
    pub c: Layout,
    /// For each launch, the elements before A, B and C in their storages.
    pub offsets: Vec<[usize; 3]>,
    /// The shape of the result, which is dense.
    pub shape: Shape,
}

/// A batch dimension: its size, and its stride in A, B and C.
#[derive(Clone, Copy, Debug)]
struct Batch {
    size: usize,
    strides: [usize; 3],
}

impl Launches {
    /// The launches of A·B, for A of shape (…, M, K) and B of shape (…, K, N). Batch
    /// dimensions broadcast.
    pub(crate) fn new(a: &TensorLayout, b: &TensorLayout) -> Result<Launches> {
        let mismatch = || {
            let (lhs, rhs) = (a.shape().clone(), b.shape().clone());
            Error::ShapeMismatchBinaryOp { lhs, rhs, op: NAME }.bt()
        };
        let ([a_batches @ .., m, k], [b_batches @ .., b_rows, n]) = (a.dims(), b.dims()) else {
            return Err(mismatch());
        };
        let (&m, &n, &k) = (m, n, k);
        if *b_rows != k {
            return Err(mismatch());
        }
        let sizes = broadcast(a_batches, b_batches).ok_or_else(mismatch)?;
        let shape: Vec<usize> = sizes.iter().copied().chain([m, n]).collect();
        let elements = (shape.iter()).try_fold(1_usize, |product, &size| product.checked_mul(size));
        if elements.is_none_or(|elements| isize::try_from(elements).is_err()) {
            return Err(mismatch());
        }

        let (a_strides, a_matrix) = a.stride().split_at(a_batches.len());
        let (b_strides, b_matrix) = b.stride().split_at(b_batches.len());
        let [mut a_layout, b_layout] = [(m, k, a_matrix), (k, n, b_matrix)].map(layout);
        let mut c_layout = Layout::row_major(m, n);

        let mut batches: Vec<Batch> = Vec::new();
        let mut c_stride = m * n;
        // From the innermost dimension outwards.
        for (inner, &size) in sizes.iter().rev().enumerate() {
            let strides = [
                stride(a_batches, a_strides, inner),
                stride(b_batches, b_strides, inner),
                c_stride,
            ];
            c_stride *= size;
            push(&mut batches, Batch { size, strides });
        }
        if let Some(&rows) = batches.first()
            && let Some(folded) = fold_rows(a_layout, rows)
        {
            a_layout = folded;
            c_layout = Layout::row_major(folded.rows, n);
            batches.remove(0);
        }

        // The largest dimension is the batch of a launch.
        let largest = (0..batches.len()).max_by_key(|&index| batches[index].size);
        let batch = largest.map(|index| batches.remove(index));
        let one = Batch {
            size: 1,
            strides: [0; 3],
        };
        let Batch { size, strides } = batch.unwrap_or(one);
        let start = [a.start_offset(), b.start_offset(), 0];
        let offsets = match shape.contains(&0) {
            true => Vec::new(),
            false => offsets(start, &batches),
        };
        Ok(Launches {
            a: a_layout.batched_by(size, strides[0]),
            b: b_layout.batched_by(size, strides[1]),
            c: c_layout.batched_by(size, strides[2]),
            offsets,
            shape: shape.into(),
        })
    }
}

/// The shape that two shapes broadcast to, aligned at their last dimensions.
fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |dims: &[usize], index: usize| {
        (index + dims.len())
            .checked_sub(rank)
            .map_or(1, |at| dims[at])
    };
    (0..rank)
        .map(|index| match (size(a, index), size(b, index)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}

/// The stride of the dimension that has `inner` dimensions after it; 0 where the tensor is
/// repeated.
fn stride(dims: &[usize], strides: &[usize], inner: usize) -> usize {
    match dims.len().checked_sub(inner + 1) {
        Some(index) if dims[index] != 1 => strides[index],
        _ => 0,
    }
}

/// A tensor's last two dimensions.
fn layout((rows, cols, strides): (usize, usize, &[usize])) -> Layout {
    Layout {
        row_stride: strides[0],
        col_stride: strides[1],
        ..Layout::row_major(rows, cols)
    }
}

/// Adds a dimension outside of `batches`, as part of the last one where the strides allow.
fn push(batches: &mut Vec<Batch>, outer: Batch) {
    if outer.size == 1 {
        return;
    }
    if let Some(last) = batches.last_mut() {
        let continued = last.strides.map(|stride| stride.checked_mul(last.size));
        if continued == outer.strides.map(Some) {
            last.size *= outer.size;
            return;
        }
    }
    batches.push(outer);
}

/// A with the rows of all its batches, if B is shared by the batches and the rows are one
/// arithmetic progression. One large product is faster than a batch of small ones.
fn fold_rows(a: Layout, batch: Batch) -> Option<Layout> {
    let [a_stride, b_stride, _] = batch.strides;
    let row_stride = match a.rows {
        1 => a_stride,
        rows if rows.checked_mul(a.row_stride) == Some(a_stride) => a.row_stride,
        _ => return None,
    };
    (b_stride == 0).then(|| Layout {
        rows: a.rows * batch.size,
        row_stride,
        ..a
    })
}

/// Where the matrices of each launch begin.
fn offsets(start: [usize; 3], batches: &[Batch]) -> Vec<[usize; 3]> {
    let mut offsets = vec![start];
    for batch in batches {
        offsets = (0..batch.size)
            .flat_map(|index| {
                offsets.iter().map(move |offset| {
                    [0, 1, 2].map(|operand| offset[operand] + index * batch.strides[operand])
                })
            })
            .collect();
    }
    offsets
}

#[cfg(test)]
mod tests;
