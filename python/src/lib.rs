//! The native module of the Python package `tilewise`.
//!
//! A call of `tilewise.matmul` is read (`read`), checked and run (`product`) here, because
//! it should cost microseconds. What PyTorch wants to know of it, and what is only convenient,
//! is written in Python (`tilewise/`).

mod allocate;
mod array;
mod call;
mod dlpack;
mod error;
mod framework;
mod matmul;
mod options;
mod overlap;
mod product;
mod read;
mod shape;
mod stream;
mod study;
mod timer;

use pyo3::prelude::*;

#[pymodule]
fn _tilewise(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(matmul::matmul, module)?)?;
    module.add_function(wrap_pyfunction!(timer::time_plan, module)?)?;
    module.add_function(wrap_pyfunction!(study::bench, module)?)?;
    module.add_function(wrap_pyfunction!(study::order_figure, module)?)?;
    module.add_function(wrap_pyfunction!(study::traffic, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
