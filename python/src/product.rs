//! One product of arrays that were read: checks that belong to several arguments, and the
//! call of the library.

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewise::{
    Bias, CudaStream, Device, Element as Scalar, Error, Gated, Gemm, Inputs, MatrixView,
    MatrixViewMut, Output, bf16, f16,
};

use crate::array::{Array, Element, Place};
use crate::error::to_python;
use crate::overlap::may_overlap;

/// Everything that a product reads and writes. The views are made when it runs, because the
/// element types are known only here.
pub struct Product {
    /// The device, the forced choices and the epilogue.
    pub gemm: Gemm,
    /// The device of all arrays.
    pub device: Device,
    /// The stream to work on; no other than null on the CPU.
    pub stream: usize,
    /// A.
    pub a: Array,
    /// B.
    pub b: Array,
    /// C, the output.
    pub out: Array,
    /// The source, which β scales.
    pub source: Option<Array>,
    /// One value a row or a column.
    pub bias: Option<(Bias, Array)>,
    /// One factor a row of the product.
    pub row_scale: Option<Array>,
    /// One factor a column of the product.
    pub col_scale: Option<Array>,
}

/// The device that holds `place`.
pub fn device(place: Place) -> PyResult<Device> {
    static OPEN: Mutex<Vec<(usize, Device)>> = Mutex::new(Vec::new());

    let Place::Gpu(ordinal) = place else {
        return Ok(Device::cpu());
    };
    let mut open = OPEN.lock().unwrap_or_else(|poison| poison.into_inner());
    if let Some((_, device)) = open.iter().find(|(known, _)| *known == ordinal) {
        return Ok(device.clone());
    }
    let device = Device::gpu(ordinal).map_err(to_python)?;
    open.push((ordinal, device.clone()));
    Ok(device)
}

/// M, N, K and the batches of a product, from its operands.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Batches; `None` where both operands are matrices.
    pub batches: Option<usize>,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B.
    pub n: usize,
    /// Columns of C: half of `n` with gated pairs.
    pub out_cols: usize,
}

impl Shape {
    /// Returns an error unless the operands belong together.
    pub fn of(a: &Array, b: &Array, gated: Option<Gated>) -> PyResult<Shape> {
        a.check_matrix("a")?;
        b.check_matrix("b")?;
        if a.cols() != b.rows() {
            return Err(PyValueError::new_err(format!(
                "a is {:?} and b is {:?}; accepted: as many columns of a as rows of b",
                a.dimensions(),
                b.dimensions()
            )));
        }
        let (x, y) = (a.batches(), b.batches());
        if x != y && x != 1 && y != 1 {
            return Err(PyValueError::new_err(format!(
                "a has {x} batches and b has {y}; accepted: as many, or 1 for a matrix that all \
                 batches share"
            )));
        }
        let n = b.cols();
        if gated.is_some() && n % 2 == 1 {
            return Err(PyValueError::new_err(format!(
                "b has {n} columns; accepted with gated: an even number"
            )));
        }
        Ok(Shape {
            // A batch of zero meets a shared matrix in zero batches.
            batches: (a.rank == 3 || b.rank == 3).then_some(if x == 1 { y } else { x }),
            m: a.rows(),
            n,
            out_cols: if gated.is_some() { n / 2 } else { n },
        })
    }

    /// The extents of C.
    pub fn output(&self) -> Vec<usize> {
        self.batches
            .into_iter()
            .chain([self.m, self.out_cols])
            .collect()
    }

    /// Returns an error unless the argument has the extents of C.
    pub fn check_output(&self, argument: &str, array: &Array) -> PyResult<()> {
        let expected = self.output();
        if array.dimensions() != expected {
            return Err(PyValueError::new_err(format!(
                "{argument} is {:?}; accepted: {expected:?}",
                array.dimensions()
            )));
        }
        Ok(())
    }

    /// A vector along the rows (M values), with the layout that the library takes.
    pub fn row_vector(&self, argument: &str, array: Array) -> PyResult<Array> {
        match *array.dimensions() {
            [len] if len == self.m => contiguous(argument, array, Bias::PerRow),
            [len, 1] if len == self.m => contiguous(argument, array, Bias::PerRow),
            _ => Err(self.wrong_vector(argument, &array, format!("[{0}], [{0}, 1]", self.m))),
        }
    }

    /// A vector along the columns (N values).
    pub fn col_vector(&self, argument: &str, array: Array) -> PyResult<Array> {
        match *array.dimensions() {
            [len] if len == self.n => contiguous(argument, array, Bias::PerColumn),
            [1, len] if len == self.n => contiguous(argument, array, Bias::PerColumn),
            _ => Err(self.wrong_vector(argument, &array, format!("[{0}], [1, {0}]", self.n))),
        }
    }

    /// A bias as NumPy would broadcast it: a vector, or a single row, has a value for each
    /// column; a single column has a value for each row.
    pub fn bias(&self, array: Array) -> PyResult<(Bias, Array)> {
        match *array.dimensions() {
            [rows, 1] if rows == self.m && self.n != 1 => {
                Ok((Bias::PerRow, contiguous("bias", array, Bias::PerRow)?))
            }
            [len] | [1, len] if len == self.n => {
                Ok((Bias::PerColumn, contiguous("bias", array, Bias::PerColumn)?))
            }
            [rows, 1] if rows == self.m => {
                Ok((Bias::PerRow, contiguous("bias", array, Bias::PerRow)?))
            }
            _ => {
                let accepted = format!("[{0}], [1, {0}], [{1}, 1]", self.n, self.m);
                Err(self.wrong_vector("bias", &array, accepted))
            }
        }
    }

    fn wrong_vector(&self, argument: &str, array: &Array, accepted: String) -> PyErr {
        PyValueError::new_err(format!(
            "{argument} is {:?}; accepted: {accepted}",
            array.dimensions()
        ))
    }
}

/// The vector as a row or a column without gaps.
fn contiguous(argument: &str, array: Array, along: Bias) -> PyResult<Array> {
    let (len, stride) = (0..3)
        .map(|at| (array.shape[at], array.strides[at]))
        .find(|&(extent, _)| extent != 1)
        .unwrap_or((1, 1));
    if stride != 1 && len > 1 {
        return Err(PyValueError::new_err(format!(
            "{argument} has the stride {stride}; accepted: 1"
        )));
    }
    let (shape, strides) = match along {
        Bias::PerRow => ([1, len, 1], [len, 1, 1]),
        Bias::PerColumn => ([1, 1, len], [len, len, 1]),
    };
    Ok(Array {
        shape,
        strides,
        ..array
    })
}

impl Product {
    /// Returns an error unless all arrays are on one device.
    pub fn check_devices(&self) -> PyResult<()> {
        for (argument, array) in self.inputs() {
            if array.place != self.a.place {
                return Err(PyValueError::new_err(format!(
                    "{argument} is on {}; accepted: {}, where a is",
                    array.place, self.a.place
                )));
            }
        }
        Ok(())
    }

    /// Returns an error if `out`, which the caller gave, overlaps an input. The source may be
    /// `out` itself.
    pub fn check_overlap(&self) -> PyResult<()> {
        for (argument, array) in self.inputs() {
            let itself = argument == "out" || (argument == "c" && *array == self.out);
            if !itself && may_overlap(&self.out, array) {
                let or = if argument == "c" {
                    ", or out itself"
                } else {
                    ""
                };
                return Err(PyValueError::new_err(format!(
                    "out overlaps {argument} in memory; accepted: memory of its own{or}"
                )));
            }
        }
        Ok(())
    }

    /// The arrays and the names of their arguments.
    fn inputs(&self) -> impl Iterator<Item = (&'static str, &Array)> {
        let optional = [
            ("c", self.source.as_ref()),
            ("bias", self.bias.as_ref().map(|(_, array)| array)),
            ("row_scale", self.row_scale.as_ref()),
            ("col_scale", self.col_scale.as_ref()),
        ];
        let optional = optional.into_iter();
        [("a", &self.a), ("b", &self.b), ("out", &self.out)]
            .into_iter()
            .chain(optional.filter_map(|(name, array)| Some((name, array?))))
    }

    /// Makes a batch of A by one B one product, where its rows follow each other.
    pub fn fold_batches(&mut self) {
        let of_rows = self.row_scale.is_some() || matches!(self.bias, Some((Bias::PerRow, _)));
        let folds = self.a.batches() > 1
            && self.a.batches() == self.out.batches()
            && self.b.batches() == 1
            && !of_rows
            && self.a.is_one_matrix()
            && self.out.is_one_matrix()
            && self.source.as_ref().is_none_or(Array::is_one_matrix);
        if folds {
            self.a = self.a.as_one_matrix();
            self.out = self.out.as_one_matrix();
            self.source = self.source.map(Array::as_one_matrix);
        }
    }

    /// Computes the product; on a GPU, enqueues it.
    pub fn run(&self) -> Result<(), Error> {
        self.call(RunOnce)
    }

    /// Calls `work` with views of the arrays' types.
    pub fn call<R>(&self, work: impl Work<R>) -> Result<R, Error> {
        use Element::{Bf16, F16, F32};
        match (self.a.element, self.out.element) {
            (F16, F16) => self.typed::<f16, f16, R>(work),
            (F16, Bf16) => self.typed::<f16, bf16, R>(work),
            (F16, F32) => self.typed::<f16, f32, R>(work),
            (Bf16, F16) => self.typed::<bf16, f16, R>(work),
            (Bf16, Bf16) => self.typed::<bf16, bf16, R>(work),
            (Bf16, F32) => self.typed::<bf16, f32, R>(work),
            (F32, F16) => self.typed::<f32, f16, R>(work),
            (F32, Bf16) => self.typed::<f32, bf16, R>(work),
            (F32, F32) => self.typed::<f32, f32, R>(work),
        }
    }

    fn typed<T: Scalar, O: Output<T>, R>(&self, work: impl Work<R>) -> Result<R, Error> {
        let mut inputs = Inputs::<O>::new();
        if let Some(source) = &self.source {
            inputs = match source == &self.out {
                true => inputs.in_place(),
                false => inputs.source(self.view(source)?),
            };
        }
        if let Some((_, bias)) = &self.bias {
            inputs = inputs.bias(self.view(bias)?);
        }
        if let Some(scale) = &self.row_scale {
            inputs = inputs.row_scale(self.view(scale)?);
        }
        if let Some(scale) = &self.col_scale {
            inputs = inputs.col_scale(self.view(scale)?);
        }
        let (a, b) = (self.view::<T>(&self.a)?, self.view::<T>(&self.b)?);
        // SAFETY: as for `view`; nothing else uses the output until control returns to the
        // caller, whose stream orders it afterwards.
        let c = unsafe {
            MatrixViewMut::<O>::from_raw(&self.device, self.out.address, self.out.layout())
        }?;
        work.call(self, a, b, c, &inputs)
    }

    /// An array as the library sees it.
    fn view<T: Scalar>(&self, array: &Array) -> Result<MatrixView<'_, T>, Error> {
        // SAFETY: the array's library says that the memory is there, and the caller holds the
        // array until the product is enqueued; `check_devices` has compared the devices.
        unsafe { MatrixView::from_raw(&self.device, array.address, array.layout()) }
    }

    /// The stream as the driver names it.
    pub fn cuda_stream(&self) -> CudaStream {
        let handle = ptr::without_provenance_mut::<c_void>(self.stream);
        // SAFETY: the caller or its framework says that this is a stream of the device.
        unsafe { CudaStream::from_raw(handle) }
    }
}

/// What is done with the views of a product.
pub trait Work<R> {
    /// Does it.
    fn call<T: Scalar, O: Output<T>>(
        self,
        product: &Product,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<R, Error>;
}

/// Runs the product, by a plan that the device keeps.
struct RunOnce;

impl Work<()> for RunOnce {
    fn call<T: Scalar, O: Output<T>>(
        self,
        product: &Product,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        match product.device.is_gpu() {
            // SAFETY: the stream is of this device, and the arrays outlive the work on it by
            // the rules of their library.
            true => unsafe { product.gemm.run_on(product.cuda_stream(), a, b, c, inputs) },
            false => product.gemm.run(a, b, c, inputs),
        }
    }
}
