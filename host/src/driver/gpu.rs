//! One opened GPU: its primary context, its stream, its loaded kernels.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cust::context::{Context, CurrentContext};
use cust::stream::{Stream, StreamFlags};
use cust_raw::CUdevice_attribute_enum as Attribute;

use super::module::Modules;
use super::wait::Overdue;
use super::{check, cust_failure, libcuda};
use crate::error::Error;
use crate::problem::Target;

/// What the driver says of a GPU.
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

    /// What cycles of an SM take at its highest clock.
    pub(crate) fn time_of(&self, cycles: u64) -> Duration {
        let per_second = 1e3 * f64::from(self.max_clock_khz.max(1));
        Duration::try_from_secs_f64(cycles as f64 / per_second).unwrap_or(Duration::MAX)
    }
}

/// An opened GPU.
pub(crate) struct Gpu {
    // Dropped in this order: the context last.
    modules: Modules,
    stream: Stream,
    context: Context,
    info: GpuInfo,
    overdue: Overdue,
}

/// GPUs the driver offers.
pub(crate) fn count() -> Result<usize, Error> {
    let mut count = 0;
    // SAFETY: `count` outlives its call.
    unsafe {
        check("cuInit", cust_raw::cuInit(0))?;
        check("cuDeviceGetCount", cust_raw::cuDeviceGetCount(&mut count))?;
    }
    Ok(count as usize)
}

/// The newest CUDA version the driver supports; (0, 0) without a driver.
pub(crate) fn driver_version() -> (u32, u32) {
    cust::CudaApiVersion::get().map_or((0, 0), |version| {
        (version.major() as u32, version.minor() as u32)
    })
}

/// Opens GPU `ordinal`, or finds it opened: two handles of one GPU share its
/// stream, so that their work stays in order.
pub(crate) fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
    static OPENED: Mutex<Vec<Weak<Gpu>>> = Mutex::new(Vec::new());

    let no_device = |found: String| Error::NoDevice { ordinal, found };
    if !libcuda::is_present() {
        return Err(no_device("libcuda.so.1 is not on this machine".into()));
    }
    let count = match count() {
        Err(Error::Driver { call, name, .. }) => {
            return Err(no_device(format!("{call} answers {name}")));
        }
        other => other?,
    };
    if ordinal >= count {
        return Err(no_device(format!("the driver offers {count}, from 0")));
    }

    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.resize(count, Weak::new());
    if let Some(gpu) = opened[ordinal].upgrade() {
        return Ok(gpu);
    }
    let gpu = Arc::new(Gpu::new(ordinal)?);
    opened[ordinal] = Arc::downgrade(&gpu);
    Ok(gpu)
}

impl Gpu {
    fn new(ordinal: usize) -> Result<Self, Error> {
        let device = cust::device::Device::get_device(ordinal as u32)
            .map_err(cust_failure("cuDeviceGet"))?;
        let attribute = |attribute: Attribute| {
            let mut value = 0;
            // SAFETY: `value` outlives the call, and the device exists.
            let result =
                unsafe { cust_raw::cuDeviceGetAttribute(&mut value, attribute, device.as_raw()) };
            check("cuDeviceGetAttribute", result)?;
            Ok::<_, Error>(value as u32)
        };
        let info = GpuInfo {
            name: device.name().map_err(cust_failure("cuDeviceGetName"))?,
            ordinal,
            compute_capability: (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            memory_bytes: device
                .total_memory()
                .map_err(cust_failure("cuDeviceTotalMem"))? as u64,
            shared_bytes_per_cta: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            max_clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            driver_version: driver_version(),
        };
        let context = Context::new(device).map_err(cust_failure("cuDevicePrimaryCtxRetain"))?;
        let stream =
            Stream::new(StreamFlags::DEFAULT, None).map_err(cust_failure("cuStreamCreate"))?;
        Ok(Gpu {
            modules: Modules::default(),
            stream,
            context,
            info,
            overdue: Overdue::default(),
        })
    }

    pub(crate) fn info(&self) -> &GpuInfo {
        &self.info
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    pub(crate) fn overdue(&self) -> &Overdue {
        &self.overdue
    }

    /// The error of a wait of this GPU that took `waited`.
    pub(crate) fn timed_out(&self, waited: Duration) -> Error {
        Error::TimedOut {
            device: self.to_string(),
            waited,
        }
    }

    /// Makes this GPU's context the calling thread's. Whatever may block begins with this,
    /// because it fails while the GPU is overdue.
    pub(crate) fn make_current(&self) -> Result<(), Error> {
        match self.overdue.waited() {
            None => self.make_current_always(),
            Some(waited) => Err(self.timed_out(waited)),
        }
    }

    /// The same, for what does not block.
    pub(crate) fn make_current_always(&self) -> Result<(), Error> {
        CurrentContext::set_current(&self.context).map_err(cust_failure("cuCtxSetCurrent"))
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.make_current()?;
        // SAFETY: the stream is ours.
        let result = unsafe { cust_raw::cuStreamSynchronize(self.stream.as_inner()) };
        check("cuStreamSynchronize", result)
    }

    /// Whether the stream records a graph instead of running.
    pub(crate) fn is_capturing(&self) -> Result<bool, Error> {
        use cust_raw::CUstreamCaptureStatus_enum as Status;
        let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` outlives the call, and the stream is ours.
        let result = unsafe { cust_raw::cuStreamIsCapturing(self.stream.as_inner(), &mut status) };
        check("cuStreamIsCapturing", result)?;
        Ok(status != Status::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // The fields' own drops need the context current; should that fail,
        // they fail too, and the driver frees everything with the process. An
        // overdue GPU is never dropped.
        let _ = self.make_current();
    }
}

/// The same text as the device's.
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
