//! The time that the host needs to launch a plan from Rust, to compare a call from Python with.

use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewise::{Element, Error, Inputs, MatrixView, MatrixViewMut, Output};

use crate::call::Call;
use crate::error::to_python;

use crate::options::Forced;
use crate::product::{Product, Work};

/// Seconds for each of `calls` runs of one plan for a @ b into out, enqueued one after the
/// other without waiting; `calls` is 1 to 512, so that the stream's queue does not fill.
#[pyfunction]
pub fn time_plan(
    py: Python,
    a: &Bound<PyAny>,
    b: &Bound<PyAny>,
    out: &Bound<PyAny>,
    calls: u32,
) -> PyResult<f64> {
    if !(1..=512).contains(&calls) {
        return Err(PyValueError::new_err(format!(
            "calls is {calls}; accepted: 1 to 512"
        )));
    }
    let call = Call {
        a,
        b,
        c: None,
        alpha: 1.0,
        beta: None,
        bias: None,
        row_scale: None,
        col_scale: None,
        activation: None,
        gated: None,
        out: Some(out),
        out_dtype: None,
        forced: Forced::default(),
        stream: None,
    };
    let product = call.prepare()?.product;
    let timed = py.detach(|| product.call(Timed { calls }));
    timed.map_err(to_python)
}

/// Plans once and runs several times.
struct Timed {
    calls: u32,
}

impl Work<f64> for Timed {
    fn call<T: Element, O: Output<T>>(
        self,
        product: &Product,
        a: MatrixView<T>,
        b: MatrixView<T>,
        mut c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<f64, Error> {
        let mut plan = product.gemm.plan(a, b, c.reborrow())?;
        let start = Instant::now();
        for _ in 0..self.calls {
            match product.device.is_gpu() {
                // SAFETY: as in `matmul`: the stream is of this device, and the arrays outlive
                // the work on it by the rules of their library.
                true => unsafe { plan.run_on(product.cuda_stream(), a, b, c.reborrow(), inputs) }?,
                false => plan.run_with(a, b, c.reborrow(), inputs)?,
            }
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(self.calls))
    }
}
