//! Reads an argument of any library as an [`Array`], without a copy.
//!
//! PyTorch, and whatever else has DLPack's C interface, answers in nanoseconds. The others
//! are asked by attributes: NumPy by `__array_interface__`, the rest by `__dlpack__` or
//! `__cuda_array_interface__`.

use std::mem::MaybeUninit;
use std::ptr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tilewise::Device;

use crate::array::{Array, Element, Place};
use crate::dlpack::{self, ExchangeApi, Tensor};
use crate::framework::{Framework, Library};

/// CUDA's legacy default stream, as DLPack and `__cuda_array_interface__` number it.
const LEGACY_STREAM: usize = 1;

/// An argument that was read.
pub struct Argument<'py> {
    /// Its memory.
    pub array: Array,
    /// The library that it belongs to.
    pub library: Library,
    /// The stream on which its library works, if it says: a driver handle.
    pub stream: Option<usize>,
    /// Whether its library forbids writing to it.
    pub read_only: bool,
    /// What keeps the memory that `__dlpack__` shares.
    _owner: Option<Bound<'py, PyAny>>,
}

impl Argument<'_> {
    fn of(array: Array, library: Library, stream: Option<usize>) -> Self {
        Argument {
            array,
            library,
            stream,
            read_only: false,
            _owner: None,
        }
    }
}

/// Reads `object`, which the caller calls `argument`. `stream` is the one that the caller
/// asked to work on.
pub fn read<'py>(
    object: &Bound<'py, PyAny>,
    argument: &str,
    stream: Option<usize>,
) -> PyResult<Argument<'py>> {
    let py = object.py();
    let framework = Framework::of(object)?;
    let library = framework.library;
    if let Some(api) = framework.exchange
        && let Some(describe) = api.describe
    {
        let mut tensor = MaybeUninit::uninit();
        // SAFETY: the object has the type that the interface was found in, and the function
        // fills in the whole structure unless it fails.
        let tensor = unsafe {
            match describe(object.as_ptr(), tensor.as_mut_ptr()) {
                0 => tensor.assume_init(),
                _ => return Err(PyErr::fetch(py)),
            }
        };
        // SAFETY: the interface has just described it, and the object is alive.
        let array = unsafe { described(argument, &tensor) }?;
        if library == Library::Torch {
            check_not_negated(object, argument, &array)?;
        }
        let stream = match array.place {
            Place::Host => None,
            Place::Gpu(_) => current_stream(py, api, tensor.device)?,
        };
        return Ok(Argument::of(array, library, stream));
    }
    if library == Library::NumPy {
        return of_numpy(object, argument);
    }
    if object.hasattr(intern!(py, "__dlpack__"))? {
        let (array, owner) = by_capsule(object, argument, stream)?;
        return Ok(Argument {
            _owner: Some(owner),
            ..Argument::of(array, library, None)
        });
    }
    if let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
        let found = of_interface(&interface, argument, only_gpu(argument)?, None)?;
        return Ok(Argument { library, ..found });
    }
    Err(PyTypeError::new_err(format!(
        "{argument} is {}; accepted: a tensor of PyTorch, a NumPy array, or an object with \
         __dlpack__ or __cuda_array_interface__",
        object.get_type().fully_qualified_name()?
    )))
}

/// The framework's current stream on a device.
fn current_stream(
    py: Python,
    api: &ExchangeApi,
    device: dlpack::Device,
) -> PyResult<Option<usize>> {
    let Some(function) = api.current_stream else {
        return Ok(None);
    };
    let mut stream = ptr::null_mut();
    // SAFETY: the function writes one pointer.
    match unsafe { function(device.kind, device.index, &mut stream) } {
        0 => Ok(Some(stream.addr())),
        _ => Err(PyErr::fetch(py)),
    }
}

/// Returns an error if PyTorch would negate the elements when it reads them: the imaginary
/// part of a conjugate is such a view. Only views of complex tensors are, whose strides are
/// even.
fn check_not_negated(object: &Bound<PyAny>, argument: &str, array: &Array) -> PyResult<()> {
    if array.strides.contains(&1) {
        return Ok(());
    }
    let py = object.py();
    if object.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
        return Err(PyValueError::new_err(format!(
            "{argument} is a lazily negated view; accepted: {argument}.resolve_neg()"
        )));
    }
    Ok(())
}

/// The array that DLPack describes.
///
/// # Safety
/// `tensor` is valid: shape and strides have `rank` elements.
unsafe fn described(argument: &str, tensor: &Tensor) -> PyResult<Array> {
    let element = Element::of_dlpack(argument, tensor.element)?;
    let place = match tensor.device.kind {
        dlpack::CPU | dlpack::CUDA_HOST => Place::Host,
        dlpack::CUDA | dlpack::CUDA_MANAGED => Place::Gpu(tensor.device.index as usize),
        kind => {
            return Err(PyValueError::new_err(format!(
                "{argument} is on a device of DLPack's type {kind}; accepted: the CPU, a CUDA GPU"
            )));
        }
    };
    let rank = tensor.rank.max(0) as usize;
    let list = |first: *const i64| match rank {
        // Such a tensor may have no shape.
        0 => &[][..],
        // SAFETY: the caller ensures it.
        _ => unsafe { std::slice::from_raw_parts(first, rank) },
    };
    let shape = list(tensor.shape);
    let dense;
    let strides = match tensor.strides.is_null() {
        true => {
            dense = dense_strides(shape);
            &dense[..]
        }
        false => list(tensor.strides),
    };
    let address = tensor.data.addr() as u64 + tensor.byte_offset;
    Array::new(argument, address, place, element, shape, strides)
}

/// The strides of a dense row-major array.
fn dense_strides(shape: &[i64]) -> Vec<i64> {
    let mut stride = 1;
    let mut strides: Vec<i64> = (shape.iter().rev())
        .map(|extent| {
            let own = stride;
            stride *= extent;
            own
        })
        .collect();
    strides.reverse();
    strides
}

/// Reads the capsule that `__dlpack__` returns.
fn by_capsule<'py>(
    object: &Bound<'py, PyAny>,
    argument: &str,
    stream: Option<usize>,
) -> PyResult<(Array, Bound<'py, PyAny>)> {
    let py = object.py();
    let method = intern!(py, "__dlpack__");
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let (kind, _): (i32, i32) = device.extract()?;
    let on_gpu = [dlpack::CUDA, dlpack::CUDA_MANAGED].contains(&kind);
    let capsule = match on_gpu {
        // The object's library makes this stream wait for the work that fills the object.
        true => {
            let arguments = PyDict::new(py);
            // The driver's 0 is the legacy stream too, but DLPack forbids that number.
            let number = stream.filter(|&handle| handle != 0);
            arguments.set_item("stream", number.unwrap_or(LEGACY_STREAM))?;
            object.call_method(method, (), Some(&arguments))?
        }
        false => object.call_method0(method)?,
    };
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let tensor = capsule.pointer_checked(Some(dlpack::CAPSULE))?;
    // SAFETY: a capsule of this name begins with the structure, and frees it when it goes.
    let array = unsafe { described(argument, tensor.cast::<Tensor>().as_ref()) }?;
    Ok((array, capsule.into_any()))
}

/// The array in the `__array_interface__` of NumPy.
fn of_numpy<'py>(object: &Bound<'py, PyAny>, argument: &str) -> PyResult<Argument<'py>> {
    let py = object.py();
    // ml_dtypes' bfloat16 is two bytes without a meaning in the interface.
    let name = object
        .getattr(intern!(py, "dtype"))?
        .getattr(intern!(py, "name"))?;
    let element = Element::parse(argument, &name.extract::<String>()?)?;
    let native = object
        .getattr(intern!(py, "dtype"))?
        .getattr(intern!(py, "isnative"))?;
    if !native.is_truthy()? {
        return Err(PyTypeError::new_err(format!(
            "{argument} is not in this machine's byte order; accepted: {argument}.dtype.isnative"
        )));
    }
    let interface = object.getattr(intern!(py, "__array_interface__"))?;
    let found = of_interface(&interface, argument, Place::Host, Some(element))?;
    Ok(Argument {
        library: Library::NumPy,
        ..found
    })
}

/// The array in an interface dictionary, whose strides count bytes.
fn of_interface<'py>(
    interface: &Bound<'py, PyAny>,
    argument: &str,
    place: Place,
    element: Option<Element>,
) -> PyResult<Argument<'py>> {
    let entry = |name: &str| {
        let value = interface.call_method1("get", (name,))?;
        PyResult::Ok((!value.is_none()).then_some(value))
    };
    let needed = |name: &str| {
        entry(name)?.ok_or_else(|| {
            PyValueError::new_err(format!("the interface of {argument} has no {name:?}"))
        })
    };
    let element = match element {
        Some(element) => element,
        None => match &*needed("typestr")?.extract::<String>()? {
            "<f2" => Element::F16,
            "<f4" => Element::F32,
            other => return Err(Element::parse(argument, other).expect_err("not a name")),
        },
    };
    let shape: Vec<i64> = needed("shape")?.extract()?;
    let strides = match entry("strides")? {
        None => dense_strides(&shape),
        Some(bytes) => {
            let bytes: Vec<i64> = bytes.extract()?;
            let size = element.bytes() as i64;
            if bytes.len() != shape.len() || bytes.iter().any(|stride| stride % size != 0) {
                return Err(PyValueError::new_err(format!(
                    "{argument} has the strides {bytes:?} in bytes; accepted: multiples of {size}, \
                     one for each dimension"
                )));
            }
            bytes.iter().map(|stride| stride / size).collect()
        }
    };
    let (address, read_only): (usize, bool) = needed("data")?.extract()?;
    let stream = entry("stream")?
        .map(|stream| stream.extract())
        .transpose()?;
    let stream = stream.map(|number| if number == LEGACY_STREAM { 0 } else { number });
    let array = Array::new(argument, address as u64, place, element, &shape, &strides)?;
    Ok(Argument {
        read_only,
        ..Argument::of(array, Library::Other, stream)
    })
}

/// The only GPU. `__cuda_array_interface__` does not name the GPU, so there must be one.
fn only_gpu(argument: &str) -> PyResult<Place> {
    match Device::gpu_count() {
        1 => Ok(Place::Gpu(0)),
        count => Err(PyValueError::new_err(format!(
            "{argument} does not say which of {count} GPUs holds it; accepted: an object with \
             __dlpack__"
        ))),
    }
}
