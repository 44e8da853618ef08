//! `tilewise.matmul`.

use pyo3::prelude::*;

use crate::call::Call;
use crate::options::Forced;

/// act(alpha · row_scale · col_scale · (a @ b) + beta · c + bias), without a copy of any
/// argument.
///
/// a is M×K and b is K×N, or either is a batch of such matrices (rank 3); a matrix meets every
/// matrix of a batch. They are float16, bfloat16 or float32 tensors of PyTorch, NumPy arrays,
/// or objects with __dlpack__ or __cuda_array_interface__, with any strides from 0 up. Products
/// are summed in float32.
///
/// c is M×N, in the type of the result; beta is 1 where c is given and nothing else is said.
/// bias has N values, or M as a single column. row_scale has M values and col_scale N, float32.
///
/// activation is 'relu', 'leaky_relu', ('leaky_relu', slope), 'gelu', 'gelu_tanh' or 'silu'.
/// With gated='halves' or 'interleaved', the columns of b are gates and ups, and the result has
/// the N/2 columns act(gate) · up.
///
/// out is what to write to; c may be out itself. Without it, the library of a makes the result,
/// of the type out_dtype or else that of a.
///
/// order, schedule and kernel force what the library would choose. precision='tf32' rounds
/// float32 operands to TF32 first. With batch_invariant=True, the bits of a row of the result do
/// not depend on the other rows, nor on how many there are.
///
/// On a GPU the product is enqueued on stream, or else on PyTorch's current stream, or on that
/// of the array, or on CUDA's default stream.
#[pyfunction]
#[pyo3(
    signature = (a, b, *, c=None, alpha=1.0, beta=None, bias=None, row_scale=None,
        col_scale=None, activation=None, gated=None, out=None, out_dtype=None, order=None,
        schedule=None, kernel=None, precision=None, batch_invariant=false, stream=None),
    text_signature = "(a, b, *, c=None, alpha=1.0, beta=None, bias=None, row_scale=None, \
        col_scale=None, activation=None, gated=None, out=None, out_dtype=None, order=None, \
        schedule=None, kernel=None, precision=None, batch_invariant=False, stream=None)"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "Python passes most of them by keyword"
)]
pub fn matmul<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    c: Option<&Bound<'py, PyAny>>,
    alpha: f32,
    beta: Option<f32>,
    bias: Option<&Bound<'py, PyAny>>,
    row_scale: Option<&Bound<'py, PyAny>>,
    col_scale: Option<&Bound<'py, PyAny>>,
    activation: Option<&Bound<'py, PyAny>>,
    gated: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
    out_dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&str>,
    schedule: Option<&str>,
    kernel: Option<&str>,
    precision: Option<&str>,
    batch_invariant: bool,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call {
        a,
        b,
        c,
        alpha,
        beta,
        bias,
        row_scale,
        col_scale,
        activation,
        gated,
        out,
        out_dtype,
        forced: Forced {
            order,
            schedule,
            kernel,
            precision,
            batch_invariant,
        },
        stream,
    };
    if call.belongs_to_torch()? {
        return call.by_torch();
    }
    let prepared = match call.prepare() {
        Err(_) if call.is_transformed()? => return call.by_torch(),
        prepared => prepared?,
    };
    prepared.run(a.py())
}
