//! [`Framework`]: what a Python type says of the arrays of that type, asked once a type.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use crate::dlpack::{self, ExchangeApi};

/// The library that an array belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `torch.Tensor` or `torch.nn.Parameter`.
    Torch,
    /// A subclass of `torch.Tensor`. What it does with its memory is its own affair, so only
    /// PyTorch's dispatcher may look into it.
    TorchSubclass,
    /// `numpy.ndarray` or a subclass.
    NumPy,
    /// Anything else.
    Other,
}

/// What is known of a type.
#[derive(Clone, Copy)]
pub struct Framework {
    /// The library that the type belongs to.
    pub library: Library,
    /// How C code asks for a description, if the type says.
    pub exchange: Option<&'static ExchangeApi>,
}

// SAFETY: the interface is a table of functions that nothing changes.
unsafe impl Send for Framework {}

/// Types that are known already. They are few, so that a search is faster than a hash.
static KNOWN: Mutex<Vec<(Py<PyType>, Framework)>> = Mutex::new(Vec::new());

/// The most types that are remembered, so that a program that makes types keeps few alive.
const MAX_KNOWN: usize = 32;

impl Framework {
    /// The framework of an object's type.
    pub fn of(object: &Bound<PyAny>) -> PyResult<Framework> {
        let kind = object.get_type();
        let known = KNOWN.lock().unwrap_or_else(|poison| poison.into_inner());
        let found = known
            .iter()
            .find(|(other, _)| other.as_ptr() == kind.as_ptr());
        if let Some((_, framework)) = found {
            return Ok(*framework);
        }
        // Python code may run below, and come here again.
        drop(known);
        let framework = Framework {
            library: library(&kind)?,
            exchange: exchange(&kind)?,
        };
        let mut known = KNOWN.lock().unwrap_or_else(|poison| poison.into_inner());
        if known.len() < MAX_KNOWN {
            known.push((kind.unbind(), framework));
        }
        Ok(framework)
    }
}

/// The library of a type. A library that is not imported has no arrays, so that none is
/// imported to find out.
fn library(kind: &Bound<PyType>) -> PyResult<Library> {
    let py = kind.py();
    if let Some(torch) = imported(py, "torch")? {
        let tensor = torch.getattr(intern!(py, "Tensor"))?;
        let parameter = torch
            .getattr(intern!(py, "nn"))?
            .getattr(intern!(py, "Parameter"))?;
        if kind.is(&tensor) || kind.is(&parameter) {
            return Ok(Library::Torch);
        }
        if kind.is_subclass(&tensor)? {
            return Ok(Library::TorchSubclass);
        }
    }
    if let Some(numpy) = imported(py, "numpy")?
        && kind.is_subclass(&numpy.getattr(intern!(py, "ndarray"))?)?
    {
        return Ok(Library::NumPy);
    }
    Ok(Library::Other)
}

/// A module, if the program has imported it.
fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    let module = modules.call_method1(intern!(py, "get"), (name,))?;
    Ok((!module.is_none()).then_some(module))
}

/// The interface in the type's attribute, if there is one of the version known here.
fn exchange(kind: &Bound<PyType>) -> PyResult<Option<&'static ExchangeApi>> {
    let attribute = intern!(kind.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = kind.getattr_opt(attribute)? else {
        return Ok(None);
    };
    let Ok(capsule) = capsule.cast_into::<PyCapsule>() else {
        return Ok(None);
    };
    let pointer = capsule.pointer_checked(Some(dlpack::EXCHANGE_CAPSULE))?;
    // SAFETY: DLPack promises a structure of this layout, up to its version for every major
    // version, for as long as the process lives.
    let api = unsafe { pointer.cast::<ExchangeApi>().as_ref() };
    Ok((api.version[0] == dlpack::MAJOR).then_some(api))
}
