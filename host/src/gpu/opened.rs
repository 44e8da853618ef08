//! One opened GPU: its properties, its backend, and whether it is overdue.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gpu_kernels::{Form, KernelInfo};

use super::backend::{Backend, Function};
use super::current::Current;
use super::placement::Placement;
use crate::error::Error;
use crate::problem::Target;

/// The properties of a GPU that the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Product name.
    pub name: String,
    /// The driver's number for it.
    pub ordinal: usize,
    /// Compute capability, (major, minor).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// L2 cache, bytes.
    pub l2_bytes: u64,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Most shared memory a CTA may have (with opt-in), bytes.
    pub shared_bytes_per_cta: u32,
    /// Highest SM clock, kHz.
    pub max_clock_khz: u32,
    /// Newest CUDA version the driver supports, (major, minor).
    pub driver_version: (u32, u32),
}

impl GpuInfo {
    /// The GPU as [`select`](crate::select) sees it.
    pub fn target(&self) -> Target {
        Target {
            compute_capability: self.compute_capability,
            sms: self.sms,
            shared_bytes_per_cta: self.shared_bytes_per_cta,
            l2_bytes: self.l2_bytes,
        }
    }

    /// The time that `cycles` cycles of an SM take at its highest clock.
    pub(crate) fn time_of(&self, cycles: u64) -> Duration {
        let per_second = 1e3 * f64::from(self.max_clock_khz.max(1));
        Duration::try_from_secs_f64(cycles as f64 / per_second).unwrap_or(Duration::MAX)
    }
}

/// An opened GPU.
pub(crate) struct Gpu {
    backend: ManuallyDrop<Box<dyn Backend>>,
    info: GpuInfo,
    placement: OnceLock<Placement>,
    overdue: Overdue,
}

impl Gpu {
    pub(super) fn new(backend: Box<dyn Backend>, info: GpuInfo) -> Arc<Gpu> {
        Arc::new(Gpu {
            backend: ManuallyDrop::new(backend),
            info,
            placement: OnceLock::new(),
            overdue: Overdue::default(),
        })
    }

    pub(crate) fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Where this GPU runs clusters, measured when it is first asked for. It is not known while the
    /// library's own stream records a graph.
    pub(crate) fn placement(&self) -> &Placement {
        static UNKNOWN: Placement = Placement::UNKNOWN;
        if let Some(placement) = self.placement.get() {
            return placement;
        }
        let Ok(_current) = self.make_current() else {
            return &UNKNOWN;
        };
        match self.backend.capture(None) {
            Ok(None) => (self.placement).get_or_init(|| self.backend.placement()),
            _ => &UNKNOWN,
        }
    }

    /// The backend of this GPU. Call [`Gpu::make_current`] before any call that may block.
    pub(crate) fn backend(&self) -> &dyn Backend {
        &**self.backend
    }

    pub(crate) fn overdue(&self) -> &Overdue {
        &self.overdue
    }

    /// The error for a wait for this GPU that timed out after `waited`.
    pub(crate) fn timed_out(&self, waited: Duration) -> Error {
        Error::TimedOut {
            device: self.to_string(),
            waited,
        }
    }

    /// Makes this GPU's context current on the calling thread for as long as the result
    /// lives. Every function that may block calls this first, because this fails while the
    /// GPU is overdue.
    pub(crate) fn make_current(&self) -> Result<Current, Error> {
        match self.overdue.waited() {
            None => self.backend.make_current(),
            Some(waited) => Err(self.timed_out(waited)),
        }
    }

    /// The function of `kernel` for launches of `form`, which is loaded if necessary.
    pub(crate) fn load(&self, kernel: &KernelInfo, form: &Form) -> Result<Function, Error> {
        let _current = self.make_current()?;
        self.backend.load(kernel, form)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.make_current()?;
        self.backend.synchronize()
    }

    /// Number of CTAs of `function` that run at once.
    ///
    /// All CTAs of a cluster run in one GPC, so of clusters of four and more not every SM can take a
    /// part. A cluster that has to wait for others would begin all its tiles when they have ended theirs.
    pub(crate) fn resident_ctas(&self, function: &Function) -> u32 {
        match function.clusters_at_once {
            Some(clusters) => clusters.saturating_mul(function.kernel.cluster.ctas()),
            None => self.info.sms.saturating_mul(function.ctas_per_sm),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // The backend's own drop needs the context to be current. If that fails, it
        // fails too, and the driver frees everything when the process ends. An
        // overdue GPU is never dropped.
        let _current = self.make_current();
        // SAFETY: this value is gone.
        unsafe { ManuallyDrop::drop(&mut self.backend) };
    }
}

/// Writes the same text as for the device.
impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} ({})", self.info.ordinal, self.info.name)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// Whether a wait for a GPU has timed out.
#[derive(Default)]
pub(crate) struct Overdue {
    /// Nanoseconds of the wait that timed out; 0 if the GPU is not overdue.
    waited: AtomicU64,
    /// Keeps the GPU open while it is overdue, because closing it might wait forever.
    kept: Mutex<Option<Arc<Gpu>>>,
}

impl Overdue {
    /// The time of the wait that timed out; `None` if the GPU is not overdue.
    pub(crate) fn waited(&self) -> Option<Duration> {
        match self.waited.load(Ordering::Acquire) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds)),
        }
    }

    pub(super) fn set(&self, gpu: &Arc<Gpu>, waited: Duration) {
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        // A wait with a limit of zero can time out, too, and 0 means "not overdue".
        self.store(nanoseconds.max(1), Some(gpu.clone()));
    }

    pub(super) fn lift(&self) {
        if self.waited().is_some() {
            self.store(0, None);
        }
    }

    fn store(&self, waited: u64, gpu: Option<Arc<Gpu>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.waited.store(waited, Ordering::Release);
        // This closes no GPU, because the caller has a handle of its own.
        *kept = gpu;
    }
}
