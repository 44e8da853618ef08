//! Opens GPUs of the driver, each GPU once.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cust::context::Context;
use cust::stream::{Stream, StreamFlags};
use cust_raw::{CUdevice_attribute_enum as Attribute, CUstream};

use super::module::Modules;
use super::{check, context, cust_failure, driver_version, libcuda};
use crate::error::Error;
use crate::gpu::opened::{Gpu, GpuInfo};

/// A GPU of the driver: its primary context, its stream, its loaded kernels.
pub(super) struct DriverGpu {
    // The fields are dropped in this order, with the context current; the context is last.
    pub(super) modules: Modules,
    stream: Stream,
    pub(super) context: Context,
}

/// Number of GPUs that the driver offers.
pub(crate) fn count() -> Result<usize, Error> {
    let mut count = 0;
    // SAFETY: `count` outlives its call.
    unsafe {
        check("cuInit", cust_raw::cuInit(0))?;
        check("cuDeviceGetCount", cust_raw::cuDeviceGetCount(&mut count))?;
    }
    Ok(count as usize)
}

/// Opens GPU `ordinal`, or returns the open one: two handles of one GPU share its
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
    let gpu = open_first(ordinal)?;
    opened[ordinal] = Arc::downgrade(&gpu);
    Ok(gpu)
}

/// Opens GPU `ordinal`; the library must have no handle of it yet.
fn open_first(ordinal: usize) -> Result<Arc<Gpu>, Error> {
    let device =
        cust::device::Device::get_device(ordinal as u32).map_err(cust_failure("cuDeviceGet"))?;
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
    let _current = context::keep_current()?;
    let context = Context::new(device).map_err(cust_failure("cuDevicePrimaryCtxRetain"))?;
    let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(cust_failure("cuStreamCreate"))?;
    let gpu = DriverGpu {
        modules: Modules::default(),
        stream,
        context,
    };
    Ok(Gpu::new(Box::new(gpu), info))
}

impl DriverGpu {
    /// The stream as a `cust` type.
    #[cfg(feature = "cust")]
    pub(super) fn as_cust(&self) -> &Stream {
        &self.stream
    }

    /// The driver's handle of the stream.
    pub(super) fn stream(&self) -> CUstream {
        self.stream.as_inner()
    }
}
