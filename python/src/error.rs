//! Errors of the library as Python exceptions.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tilewise::Error;

/// `MemoryError`, `RuntimeError` for what the device or its driver did, and `ValueError` for
/// what the caller asked.
pub fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::NoDevice { .. }
        | Error::DriverTooOld { .. }
        | Error::Driver { .. }
        | Error::TimedOut { .. }
        | Error::NoKernels { .. }
        | Error::NoPtx { .. }
        | Error::Compile { .. }
        | Error::TensorMap { .. }
        | Error::OrderWhileCapturing => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
