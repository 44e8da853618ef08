//! The stream that a product is enqueued on.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::read::Argument;

/// The driver's handle of a stream: a number, or what an object of PyTorch or CuPy holds.
pub fn handle(stream: &Bound<PyAny>) -> PyResult<usize> {
    if let Ok(handle) = stream.extract::<usize>() {
        return Ok(handle);
    }
    for attribute in ["cuda_stream", "ptr"] {
        if let Some(handle) = stream.getattr_opt(attribute)? {
            return handle.extract();
        }
    }
    Err(PyTypeError::new_err(format!(
        "stream is {}; accepted: a driver handle as an int, a torch.cuda.Stream, a cupy.cuda.Stream",
        stream.repr()?
    )))
}

/// The stream that the arrays' libraries work on.
pub fn common<'a, 'py: 'a>(arguments: impl Iterator<Item = &'a Argument<'py>>) -> PyResult<usize> {
    let mut found = None;
    for stream in arguments.filter_map(|argument| argument.stream) {
        match found {
            Some(other) if other != stream => {
                return Err(PyValueError::new_err(format!(
                    "the arrays belong to the streams {other:#x} and {stream:#x}; accepted: one \
                     stream, or the argument stream after they are synchronised"
                )));
            }
            _ => found = Some(stream),
        }
    }
    Ok(found.unwrap_or(0))
}
