//! [`CudaStream`]: a stream of the CUDA driver, the library's or the caller's.

use std::ffi::c_void;

/// A stream of the CUDA driver. It is the handle that the driver API names `CUstream`.
///
/// [`Device::stream`](crate::Device::stream) returns the library's stream, for your own calls
/// of the driver; it is valid as long as the device. [`CudaStream::from_raw`] takes a stream
/// of yours, for [`Plan::run_on`](crate::Plan::run_on) and
/// [`Gemm::run_on`](crate::Gemm::run_on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaStream(*mut c_void);

impl CudaStream {
    /// The stream with the handle `stream`. Null is the legacy default stream, which PyTorch
    /// uses unless it is told otherwise. The driver's constants `CU_STREAM_LEGACY` (1) and
    /// `CU_STREAM_PER_THREAD` (2) are handles too.
    ///
    /// # Safety
    /// The stream belongs to the primary context of the device that it is used with, and is
    /// not destroyed before the last call that takes it has returned.
    pub unsafe fn from_raw(stream: *mut c_void) -> Self {
        CudaStream(stream)
    }

    /// The library's stream with this handle.
    pub(super) fn of(stream: *mut c_void) -> Self {
        CudaStream(stream)
    }

    /// The driver's handle.
    pub fn as_raw(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}
