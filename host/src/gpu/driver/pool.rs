//! A pool of device memory, allocated and freed in the order of a stream.
//!
//! Before memory is freed by `cuMemFree`, the host has to wait for the work that uses it. A
//! pool takes memory back behind that work, and hands it out again to later work (CUDA
//! driver API, "Stream Ordered Memory Allocator"). The pool is the library's own, because
//! all libraries of the process share the device's default pool and its settings.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::binding::CUstream;
use super::failure::check;
use super::libcuda::Entry;
use crate::error::Error;

/// Bytes that the pool keeps at most while nothing uses them. More goes back to the device
/// when the library waits for its stream.
const KEPT_BYTES: u64 = 256 << 20;

/// Values of the driver's enums (cuda.h).
mod cuda_h {
    pub(super) const OUT_OF_MEMORY: u32 = 2;
    pub(super) const MEM_ALLOCATION_TYPE_PINNED: u32 = 1;
    pub(super) const MEM_LOCATION_TYPE_DEVICE: u32 = 1;
    pub(super) const MEMPOOL_ATTR_RELEASE_THRESHOLD: u32 = 4;
}

/// `CUmemPoolProps`.
#[repr(C)]
struct Properties {
    allocation_type: u32,
    handle_types: u32,
    location_type: u32,
    location_id: c_int,
    security_attributes: *const c_void,
    reserved: [u64; 8],
}

type Create = unsafe extern "C" fn(pool: *mut *mut c_void, properties: *const Properties) -> u32;
type SetAttribute =
    unsafe extern "C" fn(pool: *mut c_void, attribute: u32, value: *mut c_void) -> u32;
type Allocate = unsafe extern "C" fn(
    address: *mut u64,
    bytes: usize,
    pool: *mut c_void,
    stream: CUstream,
) -> u32;
type Free = unsafe extern "C" fn(address: u64, stream: CUstream) -> u32;
type TrimTo = unsafe extern "C" fn(pool: *mut c_void, bytes: usize) -> u32;
type Destroy = unsafe extern "C" fn(pool: *mut c_void) -> u32;

// SAFETY: the driver API has had these signatures since CUDA 11.2.
static CREATE: Entry<Create> = unsafe { Entry::new("cuMemPoolCreate\0") };
// SAFETY: as above.
static SET_ATTRIBUTE: Entry<SetAttribute> = unsafe { Entry::new("cuMemPoolSetAttribute\0") };
// SAFETY: as above.
static ALLOCATE: Entry<Allocate> = unsafe { Entry::new("cuMemAllocFromPoolAsync\0") };
// SAFETY: as above.
static FREE: Entry<Free> = unsafe { Entry::new("cuMemFreeAsync\0") };
// SAFETY: as above.
static TRIM_TO: Entry<TrimTo> = unsafe { Entry::new("cuMemPoolTrimTo\0") };
// SAFETY: as above.
static DESTROY: Entry<Destroy> = unsafe { Entry::new("cuMemPoolDestroy\0") };

/// A pool of one GPU. The context must be current when it is dropped.
pub(super) struct Pool(*mut c_void);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool on the device that the driver numbers `ordinal`.
    pub(super) fn new(ordinal: usize) -> Result<Self, Error> {
        let properties = Properties {
            allocation_type: cuda_h::MEM_ALLOCATION_TYPE_PINNED,
            handle_types: 0,
            location_type: cuda_h::MEM_LOCATION_TYPE_DEVICE,
            location_id: ordinal as c_int,
            security_attributes: ptr::null(),
            reserved: [0; 8],
        };
        let mut pool = ptr::null_mut();
        // SAFETY: the handle and the properties outlive the call.
        check("cuMemPoolCreate", unsafe {
            call(&CREATE, |create| create(&mut pool, &properties))
        })?;
        let pool = Pool(pool);
        let mut kept = KEPT_BYTES;
        // SAFETY: the pool exists; the attribute is a `cuuint64_t`, which outlives the call.
        check("cuMemPoolSetAttribute", unsafe {
            let attribute = cuda_h::MEMPOOL_ATTR_RELEASE_THRESHOLD;
            call(&SET_ATTRIBUTE, |set| {
                set(pool.0, attribute, (&raw mut kept).cast())
            })
        })?;
        Ok(pool)
    }

    /// Allocates `bytes` bytes, at least one, for the work of `stream` from here on; `None`
    /// if there is not enough memory.
    pub(super) fn allocate(&self, bytes: usize, stream: CUstream) -> Result<Option<u64>, Error> {
        let mut address = 0;
        // SAFETY: the pool and the stream exist; the address outlives the call.
        let code = unsafe {
            call(&ALLOCATE, |allocate| {
                allocate(&mut address, bytes, self.0, stream)
            })
        };
        if code == cuda_h::OUT_OF_MEMORY {
            return Ok(None);
        }
        check("cuMemAllocFromPoolAsync", code).map(|()| Some(address))
    }

    /// Frees `address` behind the work of `stream` so far.
    ///
    /// # Safety
    /// The address is from [`Pool::allocate`], and is freed once. Other streams no longer use
    /// it.
    pub(super) unsafe fn free(&self, address: u64, stream: CUstream) {
        // SAFETY: the caller ensures it. A failure would come from an earlier call.
        unsafe { call(&FREE, |free| free(address, stream)) };
    }

    /// Gives the memory that nothing uses back to the device.
    pub(super) fn trim(&self) {
        // SAFETY: the pool exists. A failure leaves the memory in the pool.
        unsafe { call(&TRIM_TO, |trim_to| trim_to(self.0, 0)) };
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { call(&DESTROY, |destroy| destroy(self.0)) };
    }
}

/// What `call` of the function returns, or the code of a call that the driver lacks.
fn call<F: Copy>(function: &Entry<F>, call: impl FnOnce(F) -> u32) -> u32 {
    match function.get() {
        Ok(function) => call(function),
        Err(code) => code,
    }
}
