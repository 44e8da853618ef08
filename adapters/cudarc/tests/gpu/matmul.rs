//! [`Blas::matmul`], the call that takes the place of cuBLASLt's.

use std::sync::Arc;

use tilewise_cudarc::cudarc::driver::{CudaContext, DeviceRepr};
use tilewise_cudarc::tilewise::{Element, Layout, bf16, f16};
use tilewise_cudarc::{Activation, Blas, MatmulConfig};

use crate::Verdict;
use crate::reference::{Sum, assert_close, at, random};

/// One product without options: m×n×k, nothing transposed, dense.
pub fn dense(m: usize, n: usize, k: usize) -> MatmulConfig {
    MatmulConfig {
        transa: false,
        transb: false,
        transc: false,
        m: m as u64,
        n: n as u64,
        k: k as u64,
        alpha: 1.0,
        lda: m as i64,
        ldb: k as i64,
        beta: 0.0,
        ldc: m as i64,
        stride_a: None,
        stride_b: None,
        stride_c: None,
        stride_bias: None,
        batch_size: None,
    }
}

/// The layout of a stored matrix in BLAS's terms.
pub fn stored(
    (rows, cols): (u64, u64),
    transposed: bool,
    leading: i64,
    batches: Option<i32>,
    stride: Option<i64>,
) -> Layout {
    let leading = leading as usize;
    let (row_stride, col_stride) = if transposed {
        (leading, 1)
    } else {
        (1, leading)
    };
    let layout = Layout {
        row_stride,
        col_stride,
        ..Layout::row_major(rows as usize, cols as usize)
    };
    match batches {
        None => layout,
        Some(batches) => layout.batched_by(batches as usize, stride.unwrap_or(0) as usize),
    }
}

/// Every transpose, with and without padding between the columns.
pub fn layouts(context: &Arc<CudaContext>) -> Verdict {
    for (m, n, k) in [(7, 5, 3), (128, 64, 96), (257, 130, 65), (1, 300, 64)] {
        for bits in 0..16 {
            let bit = |index: u32| bits >> index & 1 == 1;
            let (transa, transb, transc) = (bit(0), bit(1), bit(2));
            let padding = i64::from(bit(3)) * 5;
            let config = MatmulConfig {
                transa,
                transb,
                transc,
                lda: if transa { k } else { m } as i64 + padding,
                ldb: if transb { n } else { k } as i64 + padding,
                ldc: if transc { n } else { m } as i64 + padding,
                alpha: 0.75,
                beta: if bit(1) { -0.5 } else { 0.0 },
                ..dense(m, n, k)
            };
            each_type(context, config, true, None)?;
        }
    }
    Ok(())
}

/// Batches with strides of all kinds, also of the bias.
pub fn batches(context: &Arc<CudaContext>) -> Verdict {
    for (m, n, k) in [(7, 5, 3), (64, 128, 64), (70, 33, 130)] {
        for (stride_a, stride_b, stride_bias) in [
            (m * k, k * n, Some(0)),
            (0, k * n + 8, None),
            (m * k + 1, 0, Some(m as i64)),
            (m * k, k * n, Some(m as i64 + 3)),
        ] {
            for batch_size in [1, 2, 9] {
                let config = MatmulConfig {
                    stride_a: Some(stride_a as i64),
                    stride_b: Some(stride_b as i64),
                    stride_c: Some((m * n + 16) as i64),
                    stride_bias,
                    batch_size: Some(batch_size),
                    beta: 1.0,
                    ..dense(m, n, k)
                };
                each_type(context, config, true, None)?;
                each_type(context, config, false, Some(Activation::Relu))?;
            }
        }
    }
    Ok(())
}

/// Bias and activation, alpha and beta.
pub fn epilogues(context: &Arc<CudaContext>) -> Verdict {
    for (m, n, k) in [(129, 257, 100), (512, 384, 256)] {
        for (alpha, beta) in [(1.0, 0.0), (0.5, 1.0), (-2.0, 0.25), (0.0, 1.0)] {
            for act in [None, Some(Activation::Relu), Some(Activation::Gelu)] {
                for has_bias in [false, true] {
                    let config = MatmulConfig {
                        alpha,
                        beta,
                        ..dense(m, n, k)
                    };
                    each_type(context, config, has_bias, act)?;
                }
            }
        }
    }
    Ok(())
}

/// Operands that begin in the middle of a slice, where TMA cannot always read.
pub fn views(context: &Arc<CudaContext>) -> Verdict {
    let stream = context.new_stream()?;
    let blas = Blas::new(stream.clone())?;
    let (m, n, k) = (96, 80, 72);
    let config = dense(m, n, k);
    for first in [0, 1, 2, 8, 15, 64] {
        let a = random::<bf16>(m * k + first, 1);
        let b = random::<bf16>(k * n + first, 2);
        let before = random::<bf16>(m * n + 2 * first, 3);
        let (a_slice, b_slice) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
        let mut c_slice = stream.clone_htod(&before)?;
        blas.matmul(
            config,
            &a_slice.slice(first..),
            &b_slice.slice(first..),
            &mut c_slice.slice_mut(first..first + m * n),
            None,
            None,
        )?;
        let c = stream.clone_dtoh(&c_slice)?;
        if c[..first] != before[..first] || c[first + m * n..] != before[first + m * n..] {
            return Err(
                format!("first {first}: an element outside of the view has changed").into(),
            );
        }
        let part = first..first + m * n;
        let layouts = operands(&config);
        assert_close(
            &format!("first {first}"),
            &c[part.clone()],
            &before[part],
            layouts[2],
            |batch, row, col| {
                Sum::of(
                    [&a[first..], &b[first..]],
                    [layouts[0], layouts[1]],
                    batch,
                    (row, col),
                )
            },
        )?;
    }
    Ok(())
}

/// The layouts of A, B and C.
pub fn operands(config: &MatmulConfig) -> [Layout; 3] {
    let MatmulConfig { m, n, k, .. } = *config;
    let batches = config.batch_size;
    [
        stored((m, k), config.transa, config.lda, batches, config.stride_a),
        stored((k, n), config.transb, config.ldb, batches, config.stride_b),
        stored((m, n), config.transc, config.ldc, batches, config.stride_c),
    ]
}

/// [`check`] with every element type.
fn each_type(
    context: &Arc<CudaContext>,
    config: MatmulConfig,
    has_bias: bool,
    act: Option<Activation>,
) -> Verdict {
    check::<f32>(context, config, has_bias, act)?;
    check::<f16>(context, config, has_bias, act)?;
    check::<bf16>(context, config, has_bias, act)
}

/// Compares one product, of slices that are not an element longer than they have to be.
fn check<T: Element + DeviceRepr>(
    context: &Arc<CudaContext>,
    config: MatmulConfig,
    has_bias: bool,
    act: Option<Activation>,
) -> Verdict {
    let stream = context.default_stream();
    let blas = Blas::new(stream.clone())?;
    let [a_layout, b_layout, c_layout] = operands(&config);
    let bias_layout = stored(
        (config.m, 1),
        false,
        config.m as i64,
        config.batch_size,
        config.stride_bias,
    );
    let elements = |layout: Layout, seed| random::<T>(layout.span().unwrap_or(0), seed);
    let (a, b) = (elements(a_layout, 1), elements(b_layout, 2));
    let (bias, before) = (elements(bias_layout, 3), elements(c_layout, 4));

    let (a_slice, b_slice) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let bias_slice = stream.clone_htod(&bias)?;
    let mut c_slice = stream.clone_htod(&before)?;
    let given = has_bias.then_some(&bias_slice);
    blas.matmul(
        config,
        &a_slice,
        &b_slice,
        &mut c_slice,
        given,
        act.as_ref(),
    )?;
    let c = stream.clone_dtoh(&c_slice)?;

    let what = format!(
        "{}, {config:?}, {has_bias}, {act:?}",
        std::any::type_name::<T>()
    );
    assert_close(&what, &c, &before, c_layout, |batch, row, col| {
        let sum = Sum::of([&a, &b], [a_layout, b_layout], batch, (row, col))
            .scaled(f64::from(config.alpha))
            .plus(f64::from(config.beta) * before[at(c_layout, batch, row, col)].to_f64());
        let sum = match has_bias {
            true => sum.plus(bias[at(bias_layout, batch, row, 0)].to_f64()),
            false => sum,
        };
        match act {
            None => sum,
            Some(Activation::Relu) => sum.map(|x| x.max(0.0)),
            Some(Activation::Gelu) => sum.map(gelu_tanh),
        }
    })
}

/// GELU by its tanh approximation.
pub fn gelu_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}
