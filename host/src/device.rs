//! [`Device`]: where matrices live and products are computed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::element::Element;
use crate::error::Error;
use crate::gemm::{Gemm, check_shapes};
use crate::gpu::backend::CudaStream;
use crate::gpu::opened::{Gpu, GpuInfo};
use crate::gpu::{self, wait};
use crate::layout::Layout;
use crate::matrix::Matrix;
use crate::view::AsView;

/// A GPU or the CPU. A cheap handle: clones, and calls of [`Device::gpu`] with
/// the same ordinal, mean the same device.
#[derive(Clone)]
pub struct Device(Kind);

/// What a handle means.
#[derive(Clone)]
pub(crate) enum Kind {
    /// The processor, through the `gemm` crate.
    Cpu,
    /// A GPU, through our kernels.
    Gpu(Arc<Gpu>),
}

impl Device {
    /// The GPU that the driver numbers `ordinal`.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no such GPU or no driver,
    /// [`Error::DriverTooOld`] where the driver lacks what this library calls.
    pub fn gpu(ordinal: usize) -> Result<Device, Error> {
        Ok(Device(Kind::Gpu(gpu::open(ordinal)?)))
    }

    /// An emulated GPU, another at each call: the kernels run on the CPU, and what they do
    /// is checked. Feature `emulator`.
    ///
    /// # Errors
    /// [`Error::InvalidEmulatedGpu`].
    #[cfg(feature = "emulator")]
    pub fn emulated(gpu: crate::emulator::EmulatedGpu) -> Result<Device, Error> {
        Ok(Device(Kind::Gpu(gpu::emulated::open(gpu)?)))
    }

    /// GPUs the driver offers; 0 without a driver.
    pub fn gpu_count() -> usize {
        gpu::count().unwrap_or(0)
    }

    /// The CPU.
    pub fn cpu() -> Device {
        Device(Kind::Cpu)
    }

    /// The first GPU that opens and that a kernel was built for, else the CPU. With the
    /// environment variable `TILEWISE_DEVICE=cpu` the CPU in any case; with `emulated` (and
    /// the feature `emulator`) an emulated H200.
    pub fn best() -> Device {
        match std::env::var("TILEWISE_DEVICE").as_deref() {
            Ok("cpu") => return Device::cpu(),
            #[cfg(feature = "emulator")]
            Ok("emulated") => {
                let gpu = crate::emulator::EmulatedGpu::default();
                return Device::emulated(gpu).expect("an H200 is in range");
            }
            _ => {}
        }
        (0..Device::gpu_count())
            .filter_map(|ordinal| Device::gpu(ordinal).ok())
            .find(|device| device.gpu_info().is_some_and(crate::embedded::runs_on))
            .unwrap_or_else(Device::cpu)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }

    /// Whether this is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.gpu_info().is_some()
    }

    /// The GPU's product name, or `CPU`.
    pub fn name(&self) -> &str {
        self.gpu_info().map_or("CPU", |info| &info.name)
    }

    /// What the driver says of the GPU; `None` for the CPU.
    pub fn gpu_info(&self) -> Option<&GpuInfo> {
        match &self.0 {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => Some(gpu.info()),
        }
    }

    /// The driver's stream on which all work of this device is enqueued; `None` for the
    /// CPU and emulated GPUs, which work before they return.
    pub fn stream(&self) -> Option<CudaStream> {
        match &self.0 {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => gpu.backend().stream(),
        }
    }

    /// The same, for programs that use `cust` themselves. Feature `cust`.
    #[cfg(feature = "cust")]
    pub fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        match &self.0 {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => gpu.backend().cust_stream(),
        }
    }

    /// Makes this GPU's context the calling thread's, for calls of the
    /// driver of your own. tilewise's calls do so themselves.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed, [`Error::TimedOut`] when
    /// it is overdue: see [`Device::synchronize_within`].
    pub fn make_current(&self) -> Result<(), Error> {
        match &self.0 {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => gpu.make_current(),
        }
    }

    /// Waits for all work enqueued so far, however long it takes.
    ///
    /// # Errors
    /// [`Error::Driver`] when any of it failed, [`Error::TimedOut`] when the
    /// device is overdue: see [`Device::synchronize_within`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.0 {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => gpu.synchronize(),
        }
    }

    /// Waits for all work enqueued so far, but no longer than `timeout`. What
    /// other threads enqueue meanwhile is waited for too. On the CPU, which
    /// works before it returns, there is nothing to wait for.
    ///
    /// A kernel that never ends cannot be cancelled: only the end of the process
    /// frees the GPU of it. When the time is up, the device is therefore
    /// *overdue*, in all its handles:
    ///
    /// - What could wait for the kernel answers [`Error::TimedOut`] at once
    ///   instead: copies, allocations, plans, launches, [`Device::synchronize`].
    ///   (A call in which another thread waits already cannot be helped.)
    /// - What is dropped is not freed, because the driver may wait for the kernel
    ///   before it frees anything: matrices, plans, the device itself.
    /// - Another call of this function asks again. If all work is done by then, it
    ///   returns `Ok`, and the device is as before; what was dropped meanwhile stays
    ///   allocated.
    ///
    /// So a program can report, save what it has, and end. Its own handles from
    /// `cust`, and the driver's exit handlers, may still wait for the kernel;
    /// `_exit` of the C library ends a process without them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tilewise::{Device, Error, Gemm};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::best();
    /// let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
    /// let mut c = device.zeros::<f32>(2, 2)?;
    /// let mut plan = Gemm::new(&device).plan(&a, &a, &mut c)?;
    /// plan.run(&a, &a, &mut c)?;
    /// // The estimate is 0 on the CPU, and some microseconds here on a GPU.
    /// let timeout = Duration::from_secs(10) + 100 * plan.info().estimate;
    /// match device.synchronize_within(timeout) {
    ///     Ok(()) => assert_eq!(c.to_vec()?, [7.0, 10.0, 15.0, 22.0]),
    ///     Err(Error::TimedOut { device, waited }) => eprintln!("{device}: {waited:?}"),
    ///     Err(other) => return Err(other),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TimedOut`] when the work is not done in time; of a timeout of
    /// zero, when it is not done now. [`Error::Driver`] when any of it failed,
    /// and while the stream records a graph, as for [`Device::synchronize`].
    pub fn synchronize_within(&self, timeout: Duration) -> Result<(), Error> {
        match &self.0 {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => wait::within(gpu, timeout),
        }
    }

    /// A `rows`×`cols` matrix of zeros, row-major.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::SizeOverflow`].
    pub fn zeros<T: Element>(&self, rows: usize, cols: usize) -> Result<Matrix<T>, Error> {
        Matrix::zeroed(self, Layout::row_major(rows, cols))
    }

    /// A `rows`×`cols` matrix of zeros with any strides, in elements: a pitch,
    /// a column-major matrix, gaps.
    ///
    /// # Errors
    /// As [`Device::zeros`], and [`Error::Aliasing`] when two elements would
    /// share a place.
    pub fn zeros_strided<T: Element>(
        &self,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Matrix<T>, Error> {
        let layout = Layout {
            rows,
            cols,
            row_stride,
            col_stride,
        };
        Matrix::zeroed(self, layout)
    }

    /// A `rows`×`cols` matrix, row-major, with the elements of `row_major`.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `rows · cols` elements; as
    /// [`Device::zeros`].
    pub fn from_slice<T: Element>(
        &self,
        row_major: &[T],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>, Error> {
        if rows.checked_mul(cols) != Some(row_major.len()) {
            let got = row_major.len();
            return Err(Error::ElementCount { rows, cols, got });
        }
        let mut matrix = self.zeros(rows, cols)?;
        matrix.copy_from_slice(row_major)?;
        Ok(matrix)
    }

    /// The product of A (M×K) and B (K×N): M×N, in the input type, accumulated
    /// in f32. The kernel and its order are chosen by [`select`](crate::select).
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
    /// [`Error::ShapeMismatch`], [`Error::DeviceMismatch`],
    /// [`Error::OutOfMemory`], and those of [`Gemm::plan`].
    pub fn matmul<T: Element>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
    ) -> Result<Matrix<T>, Error> {
        let (a, b) = (a.as_view(), b.as_view());
        check_shapes(a.layout(), b.layout(), None)?;
        let mut c = self.zeros(a.rows(), b.cols())?;
        let mut plan = Gemm::new(self).plan(a, b, c.view_mut())?;
        plan.run(a, b, c.view_mut())?;
        Ok(c)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Cpu, Kind::Cpu) => true,
            (Kind::Gpu(a), Kind::Gpu(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cpu => f.write_str("the CPU"),
            Kind::Gpu(gpu) => gpu.fmt(f),
        }
    }
}
