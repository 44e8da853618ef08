//! One product of arrays that were read: checks of their memory, and the call of the library.

use std::ffi::c_void;
use std::ptr;
use std::sync::{LazyLock, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewise::{
    Bias, CudaStream, Device, Element as Scalar, Error, Gemm, Inputs, MatrixView, MatrixViewMut,
    Output, bf16, f16,
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

/// The device that holds `place`. It stays open, because it keeps its plans no longer than
/// its last handle lives.
pub fn device(place: Place) -> PyResult<Device> {
    static CPU: LazyLock<Device> = LazyLock::new(Device::cpu);
    static OPEN: Mutex<Vec<(usize, Device)>> = Mutex::new(Vec::new());

    let Place::Gpu(ordinal) = place else {
        return Ok(CPU.clone());
    };
    let mut open = OPEN.lock().unwrap_or_else(|poison| poison.into_inner());
    if let Some((_, device)) = open.iter().find(|(known, _)| *known == ordinal) {
        return Ok(device.clone());
    }
    let device = Device::gpu(ordinal).map_err(to_python)?;
    open.push((ordinal, device.clone()));
    Ok(device)
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
