//! [`Blas`]: products on a stream of cudarc.

use std::sync::Arc;

use cudarc::driver::{CudaStream, SyncOnDrop};
use tilewise::{
    Bias, Device, Element, Epilogue, Gemm, Layout, MatrixView, MatrixViewMut, Output, Plan,
};

use crate::config::{Activation, MatmulConfig};
use crate::error::Error;
use crate::inputs::{Inputs, Source};
use crate::slice::{MatrixSlice, MatrixSliceMut, Slice, SliceMut};

/// Products on one stream of cudarc, in the place of `cudarc::cublaslt::CudaBlasLT`.
///
/// Every call enqueues its work on the stream and returns. Slices of other streams may be
/// operands: the calls wait for and record cudarc's events, as cudarc's own do.
///
/// tilewise keeps the plans of a device, with their kernels and workspaces, as long as there
/// is a handle of the device. A `Blas` holds one, so keep it between calls.
///
/// The stream may capture a CUDA graph. Compute the product once before, so that its plan is
/// made. The graph holds the addresses of the operands and of the plan's workspace: keep the
/// slices and a `Blas` of the device until the graph is destroyed, and launch it on one stream
/// at a time. cudarc's event tracking must be off, because a capture cannot wait for an event
/// from outside.
#[derive(Clone, Debug)]
pub struct Blas {
    stream: Arc<CudaStream>,
    gemm: Gemm,
    device: Device,
}

impl Blas {
    /// Products on `stream`.
    ///
    /// # Errors
    /// [`Error::NotPrimary`] unless the stream belongs to the primary context of its device,
    /// as those of `CudaContext::new` do; the errors of [`Device::gpu`].
    pub fn new(stream: Arc<CudaStream>) -> Result<Blas, Error> {
        let context = stream.context();
        let ordinal = context.ordinal();
        if !context.is_primary() {
            return Err(Error::NotPrimary { ordinal });
        }
        let device = Device::gpu(ordinal)?;
        Ok(Blas {
            gemm: Gemm::new(&device),
            stream,
            device,
        })
    }

    /// The same, with options for [`Blas::matmul`], such as TF32 for f32:
    /// `blas.options(|gemm| gemm.precision(Precision::Tf32))`.
    ///
    /// cudarc's `Matmul<f32>` rounds f32 to TF32. tilewise does not unless told.
    pub fn options(mut self, options: impl FnOnce(Gemm) -> Gemm) -> Blas {
        self.gemm = options(self.gemm);
        self
    }

    /// The device that computes the products.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream of the products.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Computes C ← act(alpha · op(A) · op(B) + beta · C + bias) on column-major matrices, as
    /// `cudarc::cublaslt::Matmul::matmul` does. The bias has m elements, one a row of C.
    ///
    /// Unlike there, the call is safe: it returns an error where a slice is too short.
    ///
    /// # Errors
    /// [`Error::Argument`], [`Error::TooShort`], [`Error::OtherContext`], [`Error::Driver`],
    /// and the errors of [`Gemm::run_on`].
    pub fn matmul<T: Element + Output<T>, I: Slice<T>, O: SliceMut<T>>(
        &self,
        config: MatmulConfig,
        a: &I,
        b: &I,
        c: &mut O,
        bias: Option<&I>,
        act: Option<&Activation>,
    ) -> Result<(), Error> {
        let layouts = config.layouts()?;
        let (a, b) = (
            MatrixSlice::new(a, layouts.a),
            MatrixSlice::new(b, layouts.b),
        );
        let mut c = MatrixSliceMut::new(c, layouts.c);
        let mut epilogue = Epilogue::new().alpha(config.alpha).beta(config.beta);
        let mut inputs = Inputs::new();
        if config.beta != 0.0 {
            inputs = inputs.in_place();
        }
        if let Some(&act) = act {
            epilogue = epilogue.activation(act.into());
        }
        let Some(bias) = bias else {
            return self.run(&self.gemm.clone().epilogue(epilogue), a, b, c, &inputs);
        };
        let bias = MatrixSlice::new(bias, layouts.bias);
        let gemm = self.gemm.clone().epilogue(epilogue.bias(Bias::PerRow));
        if bias.layout.batches == 1 {
            return self.run(&gemm, a, b, c, &inputs.bias(bias));
        }
        // tilewise has one bias for all products of a launch.
        self.check_read("a", &a)?;
        self.check_read("b", &b)?;
        self.check_write("c", &c)?;
        self.check_read("bias", &bias)?;
        for index in 0..bias.layout.batches {
            let inputs = inputs.bias(bias.batch(index));
            self.run(
                &gemm,
                a.batch(index),
                b.batch(index),
                c.batch(index),
                &inputs,
            )?;
        }
        Ok(())
    }

    /// Runs any product of tilewise, with any strides, epilogue and output type, through the
    /// plans that the device keeps.
    ///
    /// # Errors
    /// [`Error::TooShort`], [`Error::OtherContext`], [`Error::Driver`], and the errors of
    /// [`Gemm::run_on`].
    pub fn run<T: Element, O: Output<T>>(
        &self,
        gemm: &Gemm,
        a: MatrixSlice<'_, T>,
        b: MatrixSlice<'_, T>,
        c: MatrixSliceMut<'_, O>,
        inputs: &Inputs<'_, O>,
    ) -> Result<(), Error> {
        self.enqueue(a, b, c, inputs, |stream, a, b, c, inputs| {
            // SAFETY: `enqueue` passes memory and a stream of the device's primary context,
            // ordered by cudarc's events.
            unsafe { gemm.run_on(stream, a, b, c, inputs) }
        })
    }

    /// Runs a plan, which must be for [`Blas::device`].
    ///
    /// # Errors
    /// [`Error::TooShort`], [`Error::OtherContext`], [`Error::Driver`], and the errors of
    /// [`Plan::run_on`].
    pub fn run_plan<T: Element, O: Output<T>>(
        &self,
        plan: &mut Plan<T, O>,
        a: MatrixSlice<'_, T>,
        b: MatrixSlice<'_, T>,
        c: MatrixSliceMut<'_, O>,
        inputs: &Inputs<'_, O>,
    ) -> Result<(), Error> {
        self.enqueue(a, b, c, inputs, |stream, a, b, c, inputs| {
            // SAFETY: as in `run`.
            unsafe { plan.run_on(stream, a, b, c, inputs) }
        })
    }

    /// Calls `run` with views of the operands, after the stream waits for their events, and
    /// records their events afterwards.
    fn enqueue<T: Element, O: Element>(
        &self,
        a: MatrixSlice<'_, T>,
        b: MatrixSlice<'_, T>,
        mut c: MatrixSliceMut<'_, O>,
        inputs: &Inputs<'_, O>,
        run: impl FnOnce(
            tilewise::CudaStream,
            MatrixView<'_, T>,
            MatrixView<'_, T>,
            MatrixViewMut<'_, O>,
            &tilewise::Inputs<'_, O>,
        ) -> Result<(), tilewise::Error>,
    ) -> Result<(), Error> {
        self.stream.context().bind_to_thread()?;
        // The guards record the events when they are dropped, which is after `run`.
        let (a, _a) = self.read("a", a)?;
        let (b, _b) = self.read("b", b)?;
        let (c, _c) = self.write("c", &mut c)?;
        let mut views = tilewise::Inputs::new();
        let (mut _source, mut _bias, mut _row_scale, mut _col_scale) = (None, None, None, None);
        match inputs.source {
            Source::None => {}
            Source::InPlace => views = views.in_place(),
            Source::Matrix(source) => {
                let (source, guard) = self.read("source", source)?;
                views = views.source(source);
                _source = Some(guard);
            }
        }
        if let Some(bias) = inputs.bias {
            let (bias, guard) = self.read("bias", bias)?;
            views = views.bias(bias);
            _bias = Some(guard);
        }
        if let Some(row_scale) = inputs.row_scale {
            let (row_scale, guard) = self.read("row_scale", row_scale)?;
            views = views.row_scale(row_scale);
            _row_scale = Some(guard);
        }
        if let Some(col_scale) = inputs.col_scale {
            let (col_scale, guard) = self.read("col_scale", col_scale)?;
            views = views.col_scale(col_scale);
            _col_scale = Some(guard);
        }
        // `device_ptr` cannot return the error of a wait; the context keeps it.
        self.stream.context().check_err()?;
        // SAFETY: the stream is one of the device's primary context and outlives the call.
        let stream = unsafe { tilewise::CudaStream::from_raw(self.stream.cu_stream().cast()) };
        run(stream, a, b, c, &views)?;
        Ok(())
    }

    /// A view of a matrix that is read. The stream waits until it is written.
    fn read<'a, T: Element>(
        &'a self,
        argument: &'static str,
        matrix: MatrixSlice<'a, T>,
    ) -> Result<(MatrixView<'a, T>, SyncOnDrop<'a>), Error> {
        self.check_read(argument, &matrix)?;
        let (first, guard) = matrix.slice.device_ptr(&self.stream);
        let address = first.wrapping_add(matrix.offset.wrapping_mul(size_of::<T>()) as u64);
        // SAFETY: the slice, which is borrowed as long as the view, holds the layout.
        let view = unsafe { MatrixView::from_raw(&self.device, address, matrix.layout) }?;
        Ok((view, guard))
    }

    /// A view of a matrix that is written. The stream waits until it is neither read nor
    /// written.
    fn write<'a, T: Element>(
        &'a self,
        argument: &'static str,
        matrix: &'a mut MatrixSliceMut<'_, T>,
    ) -> Result<(MatrixViewMut<'a, T>, SyncOnDrop<'a>), Error> {
        self.check_write(argument, matrix)?;
        let (first, guard) = matrix.slice.device_ptr_mut(&self.stream);
        let address = first.wrapping_add(matrix.offset.wrapping_mul(size_of::<T>()) as u64);
        // SAFETY: as in `read`, and the slice is borrowed exclusively.
        let view = unsafe { MatrixViewMut::from_raw(&self.device, address, matrix.layout) }?;
        Ok((view, guard))
    }

    /// [`Blas::check`] of a matrix that is read.
    fn check_read<T: Element>(
        &self,
        argument: &'static str,
        matrix: &MatrixSlice<'_, T>,
    ) -> Result<(), Error> {
        let &MatrixSlice {
            slice,
            offset,
            layout,
        } = matrix;
        self.check(argument, (offset, slice.len()), slice.stream(), layout)
    }

    /// [`Blas::check`] of a matrix that is written.
    fn check_write<T: Element>(
        &self,
        argument: &'static str,
        matrix: &MatrixSliceMut<'_, T>,
    ) -> Result<(), Error> {
        let MatrixSliceMut {
            slice,
            offset,
            layout,
        } = matrix;
        self.check(argument, (*offset, slice.len()), slice.stream(), *layout)
    }

    /// Returns an error unless the elements of a slice from `offset` to `len` hold `layout`,
    /// in the context handle of the stream.
    fn check(
        &self,
        argument: &'static str,
        (offset, len): (usize, usize),
        owner: &CudaStream,
        layout: Layout,
    ) -> Result<(), Error> {
        let (found, expected) = (owner.context(), self.stream.context());
        // Two handles of one CUDA context count their streams apart, so that neither sees
        // that the other's streams have to be waited for.
        if !Arc::ptr_eq(found, expected) {
            return Err(Error::OtherContext {
                argument,
                found: found.ordinal(),
                expected: expected.ordinal(),
            });
        }
        let rest = len.saturating_sub(offset);
        if layout.span().is_none_or(|span| span > rest) {
            return Err(Error::TooShort {
                argument,
                len: rest,
                layout,
            });
        }
        Ok(())
    }
}
