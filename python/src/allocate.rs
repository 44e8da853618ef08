//! Makes the array that a product is written to, by the library of the operands.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use tilewise::Device;

use crate::array::{Element, Place};
use crate::framework::Library;

/// An array of `shape` without values, in the library of `like`, which is on `place`.
pub fn empty<'py>(
    like: &Bound<'py, PyAny>,
    library: Library,
    place: Place,
    element: Element,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    match library {
        Library::Torch | Library::TorchSubclass => of_torch(py, place, element, shape),
        Library::NumPy => {
            let dtype = numpy_dtype(py, element)?;
            let empty = py
                .import(intern!(py, "numpy"))?
                .getattr(intern!(py, "empty"))?;
            empty.call1((PyTuple::new(py, shape)?, dtype))
        }
        Library::Other => {
            let Ok(namespace) = like.call_method0(intern!(py, "__array_namespace__")) else {
                return Err(PyValueError::new_err(format!(
                    "out is needed, because {} has no __array_namespace__ to make it with",
                    like.get_type().fully_qualified_name()?
                )));
            };
            let dtype = namespace.getattr(element.name())?;
            namespace.call_method1(intern!(py, "empty"), (PyTuple::new(py, shape)?, dtype))
        }
    }
}

fn of_torch<'py>(
    py: Python<'py>,
    place: Place,
    element: Element,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(allocator) = inductor_allocator(py, place)? {
        let dtype = torch_dtype(py, element)?;
        return match *shape {
            [m, n] => allocator.call1(((m, n), (n, 1), dtype)),
            [batches, m, n] => allocator.call1(((batches, m, n), (m * n, n, 1), dtype)),
            _ => unreachable!("products are of rank 2 or 3"),
        };
    }
    let torch = py.import(intern!(py, "torch"))?;
    let device = torch.getattr(intern!(py, "device"))?;
    let options = PyDict::new(py);
    options.set_item("dtype", torch_dtype(py, element)?)?;
    options.set_item(
        "device",
        match place {
            Place::Host => device.call1(("cpu",))?,
            Place::Gpu(ordinal) => device.call1(("cuda", ordinal))?,
        },
    )?;
    torch.call_method("empty", (PyTuple::new(py, shape)?,), Some(&options))
}

/// The function by which the code that TorchInductor generates allocates: it takes half the
/// time of `torch.empty`, which is half a microsecond. `None` where this PyTorch has none, or
/// where it might allocate on another GPU than `place`: it takes the current one.
fn inductor_allocator<'py>(py: Python<'py>, place: Place) -> PyResult<Option<Bound<'py, PyAny>>> {
    static HOST: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    static GPU: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();

    let (cell, name) = match place {
        Place::Host => (&HOST, "_empty_strided_cpu"),
        Place::Gpu(_) => (&GPU, "_empty_strided_cuda"),
    };
    let found = cell.get_or_try_init(py, || {
        if place != Place::Host && Device::gpu_count() != 1 {
            return Ok(None);
        }
        let Ok(guards) = py.import("torch._C._dynamo.guards") else {
            return Ok(None);
        };
        PyResult::Ok(guards.getattr_opt(name)?.map(Bound::unbind))
    })?;
    Ok(found.as_ref().map(|function| function.bind(py).clone()))
}

/// PyTorch's type.
fn torch_dtype<'py>(py: Python<'py>, element: Element) -> PyResult<&'py Bound<'py, PyAny>> {
    static DTYPES: [PyOnceLock<Py<PyAny>>; 3] = [const { PyOnceLock::new() }; 3];
    DTYPES[element as usize].import(py, "torch", element.name())
}

/// NumPy's type. bfloat16 is that of ml_dtypes.
fn numpy_dtype<'py>(py: Python<'py>, element: Element) -> PyResult<Bound<'py, PyAny>> {
    let module = match element {
        Element::Bf16 => "ml_dtypes",
        Element::F16 | Element::F32 => "numpy",
    };
    py.import(module)?.getattr(element.name())
}
