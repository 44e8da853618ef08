//! Bad input is refused before anything runs, and C keeps its values.

use std::sync::Arc;

use tilewise_cudarc::cudarc::driver::CudaContext;
use tilewise_cudarc::tilewise::{Gemm, Layout};
use tilewise_cudarc::{Blas, Error, Inputs, MatmulConfig, MatrixSlice, MatrixSliceMut};

use crate::Verdict;
use crate::matmul::dense;

pub fn all(context: &Arc<CudaContext>) -> Verdict {
    let stream = context.new_stream()?;
    let blas = Blas::new(stream.clone())?;
    let (m, n, k) = (8, 6, 4);
    let a = stream.clone_htod(&vec![1.0_f32; m * k])?;
    let b = stream.clone_htod(&vec![1.0_f32; k * n])?;
    let bias = stream.clone_htod(&vec![1.0_f32; m])?;
    let mut c = stream.clone_htod(&vec![7.0_f32; m * n])?;
    let config = dense(m, n, k);

    let mut refused = 0;
    let mut expect = |result: Result<(), Error>, expected: &str| match result {
        Err(error) if error.to_string().starts_with(expected) => {
            refused += 1;
            Ok(())
        }
        Err(error) => Err(format!("{error}, expected: {expected}")),
        Ok(()) => Err(format!("no error, expected: {expected}")),
    };
    let short = a.slice(1..);
    expect(
        blas.matmul(config, &short, &b.as_view(), &mut c, None, None),
        "a has 31 elements; accepted for a matrix of 8×4",
    )?;
    expect(
        blas.matmul(config, &a.as_view(), &b.slice(..23), &mut c, None, None),
        "b has 23 elements; accepted for a matrix of 4×6",
    )?;
    expect(
        blas.matmul(config, &a, &b, &mut c.slice_mut(..47), None, None),
        "c has 47 elements; accepted for a matrix of 8×6",
    )?;
    let short_bias = bias.slice(..7);
    expect(
        blas.matmul(
            config,
            &a.as_view(),
            &b.as_view(),
            &mut c,
            Some(&short_bias),
            None,
        ),
        "bias has 7 elements; accepted for a matrix of 8×1",
    )?;
    let batched = MatmulConfig {
        batch_size: Some(2),
        stride_a: Some(0),
        stride_b: Some(0),
        stride_c: Some((m * n) as i64),
        ..config
    };
    expect(
        blas.matmul(batched, &a, &b, &mut c, None, None),
        "c has 48 elements; accepted for a matrix of",
    )?;
    let huge = MatmulConfig {
        stride_a: Some(i64::MAX),
        batch_size: Some(i32::MAX),
        ..batched
    };
    expect(
        blas.matmul(huge, &a, &b, &mut c, None, None),
        "a has 32 elements; accepted for a matrix of",
    )?;
    let overlapping = MatmulConfig {
        stride_c: Some(0),
        ..batched
    };
    expect(
        blas.matmul(overlapping, &a, &b, &mut c, None, None),
        "two elements of a matrix of 2×8×6",
    )?;
    expect(
        blas.matmul(
            MatmulConfig { lda: 7, ..config },
            &a,
            &b,
            &mut c,
            None,
            None,
        ),
        "lda = 7; accepted: at least 8",
    )?;

    // tilewise's own checks.
    let gemm = Gemm::new(blas.device());
    let row_major = Layout::row_major;
    expect(
        blas.run(
            &gemm,
            MatrixSlice::new(&a, row_major(8, 4)),
            MatrixSlice::new(&b, row_major(6, 4)),
            MatrixSliceMut::new(&mut c, row_major(8, 6)),
            &Inputs::new(),
        ),
        "A is 8×4, B is 6×4, C is 8×6",
    )?;

    let other = CudaContext::new(0)?;
    let foreign = other.new_stream()?.clone_htod(&vec![1.0_f32; m * k])?;
    expect(
        blas.matmul(config, &foreign, &b, &mut c, None, None),
        "a belongs to another CudaContext, on device 0",
    )?;
    let separate = CudaContext::new_non_primary(0, 0)?;
    expect(
        Blas::new(separate.default_stream()).map(drop),
        "the stream's context on device 0 is not the primary one",
    )?;
    context.bind_to_thread()?;

    if stream.clone_dtoh(&c)? != vec![7.0; m * n] {
        return Err("a refused product has written to C".into());
    }
    // The same operands are accepted.
    blas.matmul(config, &a, &b, &mut c, Some(&bias), None)?;
    if stream.clone_dtoh(&c)? != vec![5.0; m * n] {
        return Err("C is not 4 + 1".into());
    }
    if refused != 11 {
        return Err(format!("{refused} products refused, expected 11").into());
    }
    Ok(())
}
