//! [`Device`]: where matrices live and products are computed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::error::Error;
use crate::gpu::current::Current;
use crate::gpu::opened::{Gpu, GpuInfo};
use crate::gpu::stream::CudaStream;
use crate::gpu::{self, wait};
use crate::plan_cache::PlanCache;

/// A GPU or the CPU. This is a cheap handle: all clones of a handle refer to the same
/// device, and so do all handles that [`Device::gpu`] returns for the same ordinal.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

/// The state that all handles of one device share.
struct Shared {
    // This field is dropped first, because the plans use the device.
    plans: PlanCache,
    kind: Kind,
}

/// The device that a handle refers to.
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
        Ok(Device::of(Kind::Gpu(gpu::open(ordinal)?)))
    }

    /// An emulated GPU; every call makes a new one. Its kernels run on the CPU, and the
    /// emulator checks what they do. Feature `emulator`.
    ///
    /// # Errors
    /// [`Error::InvalidEmulatedGpu`].
    #[cfg(feature = "emulator")]
    pub fn emulated(gpu: crate::gpu::emulated::options::EmulatedGpu) -> Result<Device, Error> {
        Ok(Device::of(Kind::Gpu(gpu::emulated::open(gpu)?)))
    }

    /// Number of GPUs that the driver offers; 0 without a driver.
    pub fn gpu_count() -> usize {
        gpu::count().unwrap_or(0)
    }

    /// The CPU.
    pub fn cpu() -> Device {
        Device::of(Kind::Cpu)
    }

    /// The handle of a device: a clone of an existing handle if one is left, else a new one.
    fn of(kind: Kind) -> Device {
        static OPENED: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|shared| shared.strong_count() > 0);
        let found = (opened.iter().filter_map(Weak::upgrade)).find(|shared| shared.kind == kind);
        let shared = found.unwrap_or_else(|| {
            let plans = PlanCache::default();
            let shared = Arc::new(Shared { plans, kind });
            opened.push(Arc::downgrade(&shared));
            shared
        });
        Device(shared)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// The plans that [`Device::matmul`] keeps.
    pub(crate) fn plans(&self) -> &PlanCache {
        &self.0.plans
    }

    /// Returns what `allocate` returns. If the device has no memory left, drops the kept
    /// plans, which frees their workspaces, and calls `allocate` once more.
    pub(crate) fn with_room<R>(&self, allocate: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
        match allocate() {
            Err(Error::OutOfMemory { .. }) if self.plans().clear() => allocate(),
            result => result,
        }
    }

    /// Whether this is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.gpu_info().is_some()
    }

    /// The GPU's product name, or `CPU`.
    pub fn name(&self) -> &str {
        self.gpu_info().map_or("CPU", |info| &info.name)
    }

    /// The properties of the GPU that the driver reports; `None` for the CPU.
    pub fn gpu_info(&self) -> Option<&GpuInfo> {
        match self.kind() {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => Some(gpu.info()),
        }
    }

    /// The CUDA stream on which all work of this device is enqueued, except by
    /// [`Plan::run_on`](crate::Plan::run_on) and [`Gemm::run_on`](crate::Gemm::run_on). It
    /// waits for the legacy default stream, and that for it, as any stream does that is
    /// created without flags. `None` for the CPU and for emulated GPUs: there, every call
    /// finishes its work before it returns.
    pub fn stream(&self) -> Option<CudaStream> {
        match self.kind() {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => gpu.backend().stream(),
        }
    }

    /// The same stream as [`Device::stream`], for programs that use `cust` themselves.
    /// Feature `cust`.
    #[cfg(feature = "cust")]
    pub fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        match self.kind() {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => gpu.backend().cust_stream(),
        }
    }

    /// Makes this GPU's context current on the calling thread, and leaves it current. Call
    /// this before your own calls of the driver. The functions of tilewise do not need it:
    /// each makes the context current for its own calls, and then makes current again what
    /// it found, so that another library that uses another GPU on this thread is not
    /// disturbed. Where the context is current already, they only ask for that.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed, [`Error::TimedOut`] when
    /// it is overdue: see [`Device::synchronize_within`].
    pub fn make_current(&self) -> Result<(), Error> {
        match self.kind() {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => gpu.make_current().map(Current::keep),
        }
    }

    /// Waits for all work enqueued so far on [`Device::stream`], however long it takes.
    ///
    /// # Errors
    /// [`Error::Driver`] when any of it failed, [`Error::TimedOut`] when the
    /// device is overdue: see [`Device::synchronize_within`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match self.kind() {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => gpu.synchronize(),
        }
    }

    /// Waits for all work enqueued so far on [`Device::stream`], but no longer than
    /// `timeout`. The call also waits for work that other threads enqueue meanwhile. On the CPU there is nothing to
    /// wait for, because every call finishes its work before it returns.
    ///
    /// CUDA cannot cancel a kernel that never ends: only the end of the process frees the
    /// GPU. When the timeout expires, the device therefore becomes *overdue*, in all its
    /// handles:
    ///
    /// - Calls that could wait for the kernel return [`Error::TimedOut`] at once: copies,
    ///   allocations, plans, launches, [`Device::synchronize`]. (A call in which another
    ///   thread is already waiting keeps waiting.)
    /// - Dropped matrices, plans and devices are not freed, because the driver may wait for
    ///   the kernel before it frees anything.
    /// - Another call of this function checks again. If all work is done by then, the call
    ///   returns `Ok`, and the device works as before; the memory of objects that were
    ///   dropped meanwhile stays allocated.
    ///
    /// So a program can report the problem, save its results and end. Its own handles from
    /// `cust`, and the driver's exit handlers, may still wait for the kernel;
    /// `_exit` of the C library ends a process without running them.
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
    /// // The estimate is 0 on the CPU, and some microseconds for this product on a GPU.
    /// let timeout = Duration::from_secs(10) + 100 * plan.info().estimate();
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
    /// [`Error::TimedOut`] when the work is not done in time; with a timeout of zero, when
    /// the work is not done already. [`Error::Driver`] when any of the work failed,
    /// and while the stream records a graph, as for [`Device::synchronize`].
    pub fn synchronize_within(&self, timeout: Duration) -> Result<(), Error> {
        match self.kind() {
            Kind::Cpu => Ok(()),
            Kind::Gpu(gpu) => wait::within(gpu, timeout),
        }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Kind::Cpu, Kind::Cpu) => true,
            (Kind::Gpu(a), Kind::Gpu(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
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
        match self.kind() {
            Kind::Cpu => f.write_str("the CPU"),
            Kind::Gpu(gpu) => gpu.fmt(f),
        }
    }
}
