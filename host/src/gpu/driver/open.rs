//! Opens GPUs of the driver, each GPU once.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::binding::{
    self, CUdevice, CUdevice_attribute, CUdevice_attribute_enum as Attribute, CUstream, Context,
    Stream,
};
use super::libcuda::{self, NO_DEVICE};
use super::module::Modules;
use super::pool::Pool;
use super::{check, context, driver_version};
use crate::error::Error;
use crate::gpu::opened::{Gpu, GpuInfo};

/// A GPU of the driver: its primary context, its stream, its loaded kernels.
pub(super) struct DriverGpu {
    // The fields are dropped in this order, with the context current; the context is last.
    pub(super) modules: Modules,
    /// `None` where the device has no pools.
    pub(super) pool: Option<Pool>,
    pub(super) stream: Stream,
    pub(super) context: Context,
}

/// Number of GPUs that the driver offers.
pub(crate) fn count() -> Result<usize, Error> {
    let mut count = 0;
    // SAFETY: `count` outlives its call.
    unsafe {
        check("cuInit", binding::cuInit(0))?;
        check("cuDeviceGetCount", binding::cuDeviceGetCount(&mut count))?;
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
        Err(Error::Driver {
            call,
            code: NO_DEVICE,
            name,
        }) => return Err(no_device(format!("{call} answers {name}"))),
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
    let mut device = 0;
    // SAFETY: the driver refuses numbers that no device has; `device` outlives the call.
    check("cuDeviceGet", unsafe {
        binding::cuDeviceGet(&mut device, ordinal as c_int)
    })?;
    let attribute = |attribute| device_attribute(device, attribute);
    let info = GpuInfo {
        name: device_name(device)?,
        ordinal,
        compute_capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        memory_bytes: device_memory(device)?,
        shared_bytes_per_cta: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        max_clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        driver_version: driver_version(),
    };
    let _found = context::keep_current()?;
    let context = Context::retain(ordinal as u32)?;
    context::make_current(context.as_raw())?.keep();
    let stream = Stream::new()?;
    let has_pools = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    // An older driver does not know the attribute.
    let pool = match has_pools {
        Ok(1) => Some(Pool::new(ordinal)?),
        _ => None,
    };
    let gpu = DriverGpu {
        modules: Modules::default(),
        pool,
        stream,
        context,
    };
    Ok(Gpu::new(Box::new(gpu), info))
}

/// One attribute of a device that exists.
fn device_attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<u32, Error> {
    let mut value = 0;
    // SAFETY: `value` outlives the call.
    let result = unsafe { binding::cuDeviceGetAttribute(&mut value, attribute, device) };
    check("cuDeviceGetAttribute", result).map(|()| value as u32)
}

/// The product name of a device that exists.
fn device_name(device: CUdevice) -> Result<String, Error> {
    // The names that the driver has are shorter, and it cuts a longer one.
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the name has the stated bytes and outlives the call.
    let result =
        unsafe { binding::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int - 1, device) };
    check("cuDeviceGetName", result)?;
    // SAFETY: the driver has not written the last byte, which is NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}

/// Bytes of memory of a device that exists.
fn device_memory(device: CUdevice) -> Result<u64, Error> {
    let mut bytes = 0;
    // SAFETY: `bytes` outlives the call.
    let result = unsafe { binding::cuDeviceTotalMem_v2(&mut bytes, device) };
    check("cuDeviceTotalMem", result).map(|()| bytes as u64)
}

impl DriverGpu {
    /// The driver's handle of the stream.
    pub(super) fn stream(&self) -> CUstream {
        self.stream.as_raw()
    }
}
