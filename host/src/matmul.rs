//! [`Device::matmul`], [`Gemm::run`] and [`Gemm::run_on`]: a product in one line.

use crate::device::{Device, Kind};
use crate::element::{Element, Output};
use crate::error::Error;
use crate::gemm::Gemm;
use crate::gpu::stream::CudaStream;
use crate::inputs::Inputs;
use crate::matrix::Matrix;
use crate::operands::{check_batches, check_shapes};
use crate::plan::Plan;
use crate::untyped_plan::UntypedPlan;
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

impl Device {
    /// The product of A (M×K) and B (K×N): M×N, in the input type, accumulated
    /// in f32. If A or B is a batch, the result is a batch of products; one matrix is a
    /// factor of all of them. The kernel and its order are chosen by [`select`](crate::select).
    ///
    /// The first product of given layouts is planned, as by [`Gemm::plan`]: kernels are
    /// loaded and workspaces allocated. The device keeps the plan, so that another product
    /// of the same layouts, type and alignment only allocates C and calls [`Plan::run`].
    /// The device keeps at most 64 plans, with workspaces of at most 256 MiB in all. It
    /// drops the least recently used plan first, and keeps no plan with a larger workspace.
    /// It also drops its plans if an allocation would otherwise fail with
    /// [`Error::OutOfMemory`], and with the last handle of the device.
    ///
    /// Several threads may call this at once. Use [`Gemm::run`] or [`Gemm::plan`] to write to
    /// an existing C, for another type of C, for an epilogue, for another stream and for
    /// forced choices.
    ///
    /// ```
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = tilewise::Device::best();
    /// let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
    /// let product = device.matmul(&a, a.view().t())?;
    /// assert_eq!(product.to_vec()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::BatchMismatch`], [`Error::DeviceMismatch`],
    /// [`Error::OutOfMemory`], and the errors of [`Gemm::plan`].
    pub fn matmul<T: Element>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
    ) -> Result<Matrix<T>, Error> {
        self.multiply(a.as_view(), b.as_view())
    }

    /// [`Device::matmul`], compiled once for all kinds of operands.
    fn multiply<T: Element>(&self, a: MatrixView<T>, b: MatrixView<T>) -> Result<Matrix<T>, Error> {
        check_shapes(a.layout(), b.layout(), (a.rows(), b.cols()))?;
        let batches = check_batches(a.layout(), b.layout(), None)?;
        let mut c = Matrix::unwritten(self, batches, a.rows(), b.cols())?;
        // SAFETY: the stream is the library's own, and the views' memory is freed behind it.
        unsafe { Gemm::new(self).run_views(None, a, b, c.view_mut(), &Inputs::new())? };
        Ok(c)
    }
}

impl Gemm {
    /// Computes the product once: like [`Gemm::plan`] and [`Plan::run_with`], but the device
    /// keeps the plan, as for [`Device::matmul`]. A kept plan serves all products of the same
    /// layouts, types, alignment, forced choices and parts of the epilogue; α, β, the slope of
    /// a leaky ReLU and the inputs may be others.
    ///
    /// # Errors
    /// Those of [`Gemm::plan`] and [`Plan::run_with`].
    pub fn run<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        // SAFETY: the stream is the library's own, and the views' memory is freed behind it.
        unsafe { self.run_views(None, a, b, c, inputs) }
    }

    /// [`Gemm::run`] on a stream of yours: like [`Gemm::plan`] and [`Plan::run_on`], but the
    /// device keeps the plan.
    ///
    /// A kept plan serves products on whatever streams. Products that use the workspace of
    /// one plan wait for each other on the GPU; products that two threads enqueue at once use
    /// two plans.
    ///
    /// While `stream` captures a CUDA graph, the product is captured. If its plan has a
    /// workspace, the plan belongs to the graph from then on: it serves other products of
    /// the same capture, and is kept until the last handle of the device is dropped. A plan
    /// that is not kept yet must be made, which allocates and loads kernels; the driver
    /// refuses that in most captures, so compute the product once before.
    ///
    /// # Errors
    /// Those of [`Gemm::plan`] and [`Plan::run_on`].
    ///
    /// # Safety
    /// What [`Plan::run_on`] asks for. If the product is captured, a handle of the device
    /// lives until the graph is destroyed, and the launches of the graph are ordered one
    /// after the other.
    pub unsafe fn run_on<T: Element, O: Output<T>>(
        &self,
        stream: CudaStream,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        // SAFETY: the caller ensures it.
        unsafe { self.run_views(Some(stream), a, b, c, inputs) }
    }

    /// [`Gemm::run_on`], or [`Gemm::run`] without a stream, compiled once for all kinds
    /// of operands.
    ///
    /// # Safety
    /// What [`Gemm::run_on`] asks for, if there is a stream.
    unsafe fn run_views<T: Element, O: Output<T>>(
        &self,
        stream: Option<CudaStream>,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        let device = self.device();
        let operands = self.operands(a, b, &c)?;
        let key = self.key::<T, O>(operands)?;
        let gpu = match device.kind() {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => Some(gpu),
        };
        let _current = gpu.map(|gpu| gpu.make_current()).transpose()?;
        let capture = match gpu {
            None => None,
            Some(gpu) => gpu.backend().capture(stream)?,
        };
        let plan = match device.plans().take(&key, capture) {
            Some(plan) => UntypedPlan {
                epilogue: self.epilogue,
                ..plan
            },
            None => self.untyped_plan::<T, O>(operands)?,
        };
        let mut plan = Plan::<T, O>::new(device, plan);
        // SAFETY: the caller ensures it.
        let result = unsafe { plan.run_views(stream, a, b, c, inputs) };
        // A capture holds what was enqueued before a failure, too.
        let is_kept = match &result {
            Ok(()) | Err(Error::OrderWhileCapturing) => true,
            Err(_) => capture.is_some(),
        };
        if is_kept {
            device.plans().put(key, plan.into_untyped(), capture);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bf16, f16};

    /// Takes all plans for A·B out of the cache of the operands' device and returns their
    /// number.
    fn kept<T: Element>(a: MatrixView<T>, b: MatrixView<T>) -> usize {
        let device = a.device().clone();
        let mut c = device.zeros::<T>(a.rows(), b.cols()).unwrap();
        let gemm = Gemm::new(&device);
        let operands = gemm.operands(a, b, &c.view_mut()).unwrap();
        let key = gemm.key::<T, T>(operands).unwrap();
        std::iter::from_fn(|| device.plans().take(&key, None)).count()
    }

    #[test]
    fn a_plan_is_made_once_for_each_type_and_layout() {
        // This handle outlives the products, and no other test uses these shapes.
        let device = Device::cpu();
        let a = device.from_slice(&[f16::ONE; 33], 3, 11).unwrap();
        let b = device.from_slice(&[f16::ONE; 55], 11, 5).unwrap();
        let turned = device.from_slice(&[f16::ONE; 55], 5, 11).unwrap();
        let others = [(3, 11), (11, 5)].map(|(m, n)| device.zeros::<bf16>(m, n).unwrap());
        for _ in 0..3 {
            let c = device.matmul(&a, &b).unwrap();
            assert_eq!(c.to_vec().unwrap(), [f16::from_f32(11.0); 15]);
            let c = Device::cpu().matmul(&a, turned.view().t()).unwrap();
            assert_eq!(c.to_vec().unwrap(), [f16::from_f32(11.0); 15]);
            device.matmul(&others[0], &others[1]).unwrap();
        }
        assert_eq!(kept(a.view(), b.view()), 1);
        assert_eq!(kept(a.view(), turned.view().t()), 1);
        assert_eq!(kept(others[0].view(), others[1].view()), 1);
    }

    /// The operands of this product are packed, so that workspaces are kept, too.
    #[cfg(feature = "emulator")]
    #[test]
    fn an_emulated_gpu_keeps_plans() {
        let device = Device::emulated(crate::emulator::EmulatedGpu {
            sms: 4,
            ..Default::default()
        })
        .unwrap();
        let a = device.from_slice(&[f16::ONE; 72 * 65], 72, 65).unwrap();
        let b = device.from_slice(&[f16::ONE; 65 * 40], 65, 40).unwrap();
        for _ in 0..3 {
            let c = device.matmul(&a, &b).unwrap();
            assert_eq!(c.to_vec().unwrap(), [f16::from_f32(65.0); 72 * 40]);
        }
        assert_eq!(kept(a.view(), b.view()), 1);
        // A plan is made for the alignment of its operands, too.
        let wide = device.zeros::<f16>(72, 72).unwrap();
        for first in [0, 1, 8, 0] {
            let a = wide.view().slice(0..72, first..first + 64).unwrap();
            let b = b.view().slice(0..64, 0..40).unwrap();
            device.matmul(a, b).unwrap();
        }
        let part = |first| wide.view().slice(0..72, first..first + 64).unwrap();
        let b = b.view().slice(0..64, 0..40).unwrap();
        assert_eq!([0, 1, 8].map(|first| kept(part(first), b)), [1, 1, 1]);
    }

    #[test]
    fn threads_multiply_at_once() {
        let device = Device::cpu();
        let operand = |factor: f32| {
            let elements: Vec<f16> = (0..169)
                .map(|i| f16::from_f32(factor * (i % 7) as f32))
                .collect();
            device.from_slice(&elements, 13, 13).unwrap()
        };
        let (threads, rounds) = (4, 50);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (a, b) = (operand(1.0 + thread as f32), operand(1.0));
                scope.spawn(move || {
                    let expected = crate::oracle::product(a.view(), b.view()).unwrap();
                    for _ in 0..rounds {
                        let c = Device::cpu().matmul(&a, &b).unwrap().to_vec().unwrap();
                        assert_eq!(expected.worst(&c, f16::DTYPE), None);
                    }
                });
            }
        });
        let any = operand(1.0);
        let plans = kept(any.view(), any.view());
        assert!((1..=threads).contains(&plans), "{plans}");
    }
}
