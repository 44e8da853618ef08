//! [`Call`]: the arguments of one call of `matmul`, and what becomes of them.

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use tilewise::{Epilogue, Gemm};

use crate::allocate;
use crate::array::{Array, Element};
use crate::error::to_python;
use crate::framework::{Framework, Library};
use crate::options::{self, Forced};
use crate::product::{Product, device};
use crate::read::{Argument, read};
use crate::shape::Shape;
use crate::stream;

/// The arguments of `matmul`.
pub struct Call<'a, 'py> {
    pub a: &'a Bound<'py, PyAny>,
    pub b: &'a Bound<'py, PyAny>,
    pub c: Option<&'a Bound<'py, PyAny>>,
    pub alpha: f32,
    pub beta: Option<f32>,
    pub bias: Option<&'a Bound<'py, PyAny>>,
    pub row_scale: Option<&'a Bound<'py, PyAny>>,
    pub col_scale: Option<&'a Bound<'py, PyAny>>,
    pub activation: Option<&'a Bound<'py, PyAny>>,
    pub gated: Option<&'a str>,
    pub out: Option<&'a Bound<'py, PyAny>>,
    pub out_dtype: Option<&'a Bound<'py, PyAny>>,
    pub forced: Forced<'a>,
    pub stream: Option<&'a Bound<'py, PyAny>>,
}

/// A product whose arguments were checked, and the object that gets its result.
pub struct Prepared<'py> {
    /// The product.
    pub product: Product,
    result: Bound<'py, PyAny>,
    /// Whether PyTorch must hear that `result` was written.
    announces: bool,
}

impl<'py> Call<'_, 'py> {
    /// The arrays among the arguments.
    fn arrays(&self) -> impl Iterator<Item = &Bound<'py, PyAny>> {
        let optional = [self.c, self.bias, self.row_scale, self.col_scale, self.out];
        [self.a, self.b]
            .into_iter()
            .chain(optional.into_iter().flatten())
    }

    /// Whether PyTorch must see the call: to record it for gradients, or because a subclass of
    /// its tensors is among the arrays.
    pub fn belongs_to_torch(&self) -> PyResult<bool> {
        let py = self.a.py();
        for array in self.arrays() {
            let belongs = match Framework::of(array)?.library {
                Library::NumPy | Library::Other => false,
                Library::TorchSubclass => true,
                Library::Torch => {
                    let requires_grad = array.getattr(intern!(py, "requires_grad"))?;
                    requires_grad.is_truthy()? && grad_enabled(py)?
                }
            };
            if belongs {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an array stands for others, within a transform such as `torch.func.vmap`, and
    /// has no memory of its own.
    pub fn is_transformed(&self) -> PyResult<bool> {
        for array in self.arrays() {
            if Framework::of(array)?.library == Library::Torch {
                let torch = array.py().import("torch._C._functorch")?;
                let wrapped = torch.call_method1("is_functorch_wrapped_tensor", (array,))?;
                if wrapped.is_truthy()? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The same call through PyTorch's dispatcher.
    pub fn by_torch(&self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.a.py();
        if self.out.is_some() {
            return Err(PyRuntimeError::new_err(
                "out is given, and it or an operand requires a gradient or is a subclass of \
                 torch.Tensor; accepted there: no out",
            ));
        }
        let options = PyDict::new(py);
        options.set_item("c", self.c)?;
        options.set_item("alpha", self.alpha)?;
        options.set_item("beta", self.beta)?;
        options.set_item("bias", self.bias)?;
        options.set_item("row_scale", self.row_scale)?;
        options.set_item("col_scale", self.col_scale)?;
        options.set_item("activation", self.activation)?;
        options.set_item("gated", self.gated)?;
        options.set_item("out_dtype", self.out_dtype)?;
        options.set_item("order", self.forced.order)?;
        options.set_item("schedule", self.forced.schedule)?;
        options.set_item("kernel", self.forced.kernel)?;
        options.set_item("precision", self.forced.precision)?;
        options.set_item("batch_invariant", self.forced.batch_invariant)?;
        options.set_item("stream", self.stream)?;
        let module = py.import("tilewise._torch")?;
        module.call_method("matmul", (self.a, self.b), Some(&options))
    }

    /// Reads and checks the arguments, and makes the result.
    pub fn prepare(&self) -> PyResult<Prepared<'py>> {
        let asked = self.stream.map(stream::handle).transpose()?;
        let a = read(self.a, "a", asked)?;
        let b = read(self.b, "b", asked)?;
        let optional = |object: Option<&Bound<'py, PyAny>>, argument| {
            object
                .map(|object| read(object, argument, asked))
                .transpose()
        };
        let c = optional(self.c, "c")?;
        let bias = optional(self.bias, "bias")?;
        let row_scale = optional(self.row_scale, "row_scale")?;
        let col_scale = optional(self.col_scale, "col_scale")?;
        let out = optional(self.out, "out")?;

        let element = self.element(&a.array, out.as_ref())?;
        check_element("b", Some(&b), a.array.element, "the type of a")?;
        check_element("c", c.as_ref(), element, "the type of the result")?;
        check_element("bias", bias.as_ref(), element, "the type of the result")?;
        check_element(
            "row_scale",
            row_scale.as_ref(),
            Element::F32,
            "the type of scales",
        )?;
        check_element(
            "col_scale",
            col_scale.as_ref(),
            Element::F32,
            "the type of scales",
        )?;

        let gated = options::gated(self.gated)?;
        let shape = Shape::of(&a.array, &b.array, gated)?;
        for (argument, array) in [("c", &c), ("out", &out)] {
            if let Some(found) = array {
                shape.check_output(argument, &found.array)?;
            }
        }
        let array = |argument: &Option<Argument>| argument.as_ref().map(|found| found.array);
        let bias_vector = array(&bias).map(|found| shape.bias(found)).transpose()?;
        let row_vector = array(&row_scale).map(|found| shape.row_vector("row_scale", found));
        let col_vector = array(&col_scale).map(|found| shape.col_vector("col_scale", found));
        let (row_vector, col_vector) = (row_vector.transpose()?, col_vector.transpose()?);

        let beta = self.source_factor()?;
        let mut epilogue = Epilogue::new()
            .alpha(self.alpha)
            .beta(beta)
            .activation(options::activation(self.activation)?);
        if let Some((along, _)) = bias_vector {
            epilogue = epilogue.bias(along);
        }
        if row_vector.is_some() {
            epilogue = epilogue.row_scale();
        }
        if col_vector.is_some() {
            epilogue = epilogue.col_scale();
        }
        if let Some(gated) = gated {
            epilogue = epilogue.gated(gated);
        }
        let device = device(a.array.place)?;
        let gemm = self.forced.apply(Gemm::new(&device).epilogue(epilogue))?;

        let stream = match asked {
            Some(stream) => stream,
            None => {
                let given = [&c, &bias, &row_scale, &col_scale, &out].into_iter();
                let given = given.filter_map(Option::as_ref);
                stream::common([&a, &b].into_iter().chain(given))?
            }
        };
        let (result, target) = match (self.out, out) {
            (Some(object), Some(out)) if out.read_only => {
                return Err(PyValueError::new_err(format!(
                    "out is a read-only {}; accepted: an array that may be written",
                    object.get_type().name()?
                )));
            }
            (Some(object), Some(out)) => (object.clone(), out),
            _ => {
                let extents = shape.output();
                let made = allocate::empty(self.a, a.library, a.array.place, element, extents)?;
                let target = read(&made, "out", Some(stream))?;
                (made, target)
            }
        };
        let mut product = Product {
            gemm,
            device,
            stream,
            a: a.array,
            b: b.array,
            out: target.array,
            // β = 0 reads no source.
            source: array(&c).filter(|_| beta != 0.0),
            bias: bias_vector,
            row_scale: row_vector,
            col_scale: col_vector,
        };
        product.check_devices()?;
        if self.out.is_some() {
            product.check_overlap()?;
        }
        product.fold_batches();
        Ok(Prepared {
            product,
            result,
            announces: self.out.is_some() && target.library == Library::Torch,
        })
    }

    /// β: 1 where a source is given and nothing else is said.
    fn source_factor(&self) -> PyResult<f32> {
        match (self.c, self.beta) {
            (Some(_), None) => Ok(1.0),
            (None, None) => Ok(0.0),
            (None, Some(beta)) if beta != 0.0 => Err(PyValueError::new_err(format!(
                "beta is {beta} and there is no c to scale; accepted without c: None, 0"
            ))),
            (_, Some(beta)) => Ok(beta),
        }
    }

    /// The type of the result.
    fn element(&self, a: &Array, out: Option<&Argument>) -> PyResult<Element> {
        let asked = self.out_dtype.map(element_named).transpose()?;
        match (asked, out.map(|out| out.array.element)) {
            (Some(asked), Some(found)) if asked != found => Err(PyTypeError::new_err(format!(
                "out is {} and out_dtype {}; accepted: the same type",
                found.name(),
                asked.name()
            ))),
            (asked, found) => Ok(found.or(asked).unwrap_or(a.element)),
        }
    }
}

impl<'py> Prepared<'py> {
    /// Computes the product, and returns the result.
    pub fn run(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.detach(|| self.product.run()).map_err(to_python)?;
        if self.announces
            && !self
                .result
                .call_method0(intern!(py, "is_inference"))?
                .is_truthy()?
        {
            // A gradient that needs the former values of `out` must fail, not be wrong.
            static ANNOUNCE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let announce = ANNOUNCE.import(py, "torch.autograd.graph", "increment_version")?;
            announce.call1((&self.result,))?;
        }
        Ok(self.result)
    }
}

/// Whether PyTorch records operations for gradients.
fn grad_enabled(py: Python) -> PyResult<bool> {
    static ENABLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let enabled = ENABLED.import(py, "torch", "is_grad_enabled")?;
    enabled.call0()?.is_truthy()
}

/// Returns an error unless the argument, if it is given, has the type `accepted`.
fn check_element(
    argument: &str,
    found: Option<&Argument>,
    accepted: Element,
    what: &str,
) -> PyResult<()> {
    match found.map(|found| found.array.element) {
        Some(element) if element != accepted => Err(PyTypeError::new_err(format!(
            "{argument} has the dtype {}; accepted: {}, {what}",
            element.name(),
            accepted.name()
        ))),
        _ => Ok(()),
    }
}

/// The type that a name, a `torch.dtype`, a `numpy.dtype` or a scalar type stands for.
fn element_named(value: &Bound<PyAny>) -> PyResult<Element> {
    let py = value.py();
    let name = match value.getattr_opt(intern!(py, "__name__"))? {
        Some(name) => name,
        None => value.str()?.into_any(),
    };
    Element::parse("out_dtype", &name.cast::<PyString>()?.to_cow()?)
}
