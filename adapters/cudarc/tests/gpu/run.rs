//! [`Blas::run`] and [`Blas::run_plan`]: tilewise's own interface on cudarc's memory.

use std::sync::Arc;

use tilewise_cudarc::cudarc::driver::{CudaContext, DeviceRepr};
use tilewise_cudarc::tilewise::{
    Activation, Bias, Element, Epilogue, Gated, Gemm, Layout, Output, bf16, f16,
};
use tilewise_cudarc::{Blas, Inputs, MatrixSlice, MatrixSliceMut};

use crate::Verdict;
use crate::matmul::gelu_tanh;
use crate::reference::{Sum, assert_close, at, random};

/// Every activation, gated and not, with scales, bias and a source of another layout, into
/// another output type. (A GPU compiles a kernel for each epilogue, so that these are few.)
pub fn epilogues(context: &Arc<CudaContext>) -> Verdict {
    let activations = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu(0.25),
        Activation::GeluTanh,
        Activation::Silu,
    ];
    let gates = [None, Some(Gated::Interleaved), Some(Gated::Halves)];
    for (index, activation) in activations.into_iter().enumerate() {
        for gated in gates {
            let case = Case {
                shape: [(33, 50, 20), (200, 320, 128)][index % 2],
                activation,
                gated,
                bias: [Bias::PerRow, Bias::PerColumn][index / 2 % 2],
            };
            check::<f16, f16>(context, &case)?;
            check::<bf16, f32>(context, &case)?;
            check::<f32, bf16>(context, &case)?;
        }
    }
    Ok(())
}

struct Case {
    shape: (usize, usize, usize),
    activation: Activation,
    gated: Option<Gated>,
    bias: Bias,
}

/// Compares one product.
fn check<T, O>(context: &Arc<CudaContext>, case: &Case) -> Verdict
where
    T: Element + DeviceRepr,
    O: Output<T> + DeviceRepr,
{
    let Case {
        shape: (m, n, k),
        activation,
        gated,
        bias,
    } = *case;
    let stream = context.default_stream();
    let blas = Blas::new(stream.clone())?;

    // B is stored transposed, and C has gaps between its rows.
    let (a_layout, b_layout) = (
        Layout::row_major(m, k),
        Layout::row_major(n, k).transposed(),
    );
    let c_cols = if gated.is_some() { n / 2 } else { n };
    let c_layout = Layout {
        row_stride: c_cols + 8,
        ..Layout::row_major(m, c_cols)
    };
    let source_layout = Layout::row_major(n, m).transposed();
    let (a, b) = (random::<T>(m * k, 1), random::<T>(n * k, 2));
    let before = random::<O>(c_layout.span().unwrap_or(0), 3);
    let (bias_layout, bias_len) = match bias {
        Bias::PerRow => (Layout::row_major(m, 1), m),
        Bias::PerColumn => (Layout::row_major(1, n), n),
    };
    let (bias_elements, source) = (random::<O>(bias_len, 4), random::<O>(m * n, 5));
    let (row_scale, col_scale) = (random::<f32>(m, 6), random::<f32>(n, 7));
    let (alpha, beta) = (1.5_f32, if gated.is_some() { 0.0 } else { -0.75_f32 });

    let mut epilogue = Epilogue::new()
        .alpha(alpha)
        .beta(beta)
        .bias(bias)
        .row_scale()
        .col_scale()
        .activation(activation);
    if let Some(gated) = gated {
        epilogue = epilogue.gated(gated);
    }
    let gemm = Gemm::new(blas.device()).epilogue(epilogue);
    let (a_slice, b_slice) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let (bias_slice, source_slice) = (
        stream.clone_htod(&bias_elements)?,
        stream.clone_htod(&source)?,
    );
    let (rows, cols) = (
        stream.clone_htod(&row_scale)?,
        stream.clone_htod(&col_scale)?,
    );
    let mut c_slice = stream.clone_htod(&before)?;
    let mut inputs = Inputs::new()
        .bias(MatrixSlice::new(&bias_slice, bias_layout))
        .row_scale(MatrixSlice::new(&rows, Layout::row_major(m, 1)))
        .col_scale(MatrixSlice::new(&cols, Layout::row_major(1, n)));
    if beta != 0.0 {
        inputs = inputs.source(MatrixSlice::new(&source_slice, source_layout));
    }
    blas.run(
        &gemm,
        MatrixSlice::new(&a_slice, a_layout),
        MatrixSlice::new(&b_slice, b_layout),
        MatrixSliceMut::new(&mut c_slice, c_layout),
        &inputs,
    )?;
    let c = stream.clone_dtoh(&c_slice)?;

    let column = |row: usize, col: usize| {
        let scales = f64::from(alpha) * f64::from(row_scale[row]) * f64::from(col_scale[col]);
        let bias = match bias {
            Bias::PerRow => bias_elements[row],
            Bias::PerColumn => bias_elements[col],
        };
        Sum::of([&a, &b], [a_layout, b_layout], 0, (row, col))
            .scaled(scales)
            .plus(f64::from(beta) * source[at(source_layout, 0, row, col)].to_f64())
            .plus(bias.to_f64())
    };
    let what = format!("{m}×{n}×{k}, {activation:?}, {gated:?}, {bias:?}");
    assert_close(&what, &c, &before, c_layout, |_, row, col| {
        let (gate, up) = match gated {
            None => return column(row, col).map(|x| apply(activation, x)),
            Some(Gated::Interleaved) => (2 * col, 2 * col + 1),
            Some(Gated::Halves) => (col, n / 2 + col),
        };
        let (gate, up) = (column(row, gate), column(row, up));
        let activated = gate.map(|x| apply(activation, x));
        Sum {
            value: activated.value * up.value,
            magnitude: activated.magnitude * up.value.abs()
                + activated.value.abs() * up.magnitude
                + activated.value.abs() * up.value.abs(),
        }
    })
}

/// An activation in f64.
fn apply(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::LeakyRelu(slope) if x < 0.0 => x * f64::from(slope),
        Activation::LeakyRelu(_) => x,
        Activation::GeluTanh => gelu_tanh(x),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => unreachable!("std has no erf"),
    }
}

/// One plan on several operands.
pub fn plan(context: &Arc<CudaContext>) -> Verdict {
    let stream = context.new_stream()?;
    let blas = Blas::new(stream.clone())?;
    let (m, n, k) = (130, 70, 90);
    let layouts = [(m, k), (k, n), (m, n)].map(|(rows, cols)| Layout::row_major(rows, cols));
    let [a_layout, b_layout, c_layout] = layouts;
    let mut plan = Gemm::new(blas.device()).plan_for::<f16, f32>(a_layout, b_layout, c_layout)?;
    for seed in 0..4 {
        let (a, b) = (random::<f16>(m * k, seed), random::<f16>(k * n, seed + 100));
        let (a_slice, b_slice) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
        let mut c_slice = stream.alloc_zeros::<f32>(m * n)?;
        blas.run_plan(
            &mut plan,
            MatrixSlice::new(&a_slice, a_layout),
            MatrixSlice::new(&b_slice, b_layout),
            MatrixSliceMut::new(&mut c_slice, c_layout),
            &Inputs::new(),
        )?;
        let c = stream.clone_dtoh(&c_slice)?;
        let before = vec![0.0; m * n];
        assert_close(
            &format!("seed {seed}"),
            &c,
            &before,
            c_layout,
            |_, row, col| Sum::of([&a, &b], [a_layout, b_layout], 0, (row, col)),
        )?;
    }
    Ok(())
}
