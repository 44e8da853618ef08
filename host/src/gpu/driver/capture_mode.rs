//! Calls that a stream capture of the same thread would not allow.

use super::libcuda;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: u32 = 2;

/// `cuThreadExchangeStreamCaptureMode`, which the bindings lack.
type Exchange = unsafe extern "C" fn(mode: *mut u32) -> u32;

/// What `run` returns. Meanwhile this thread may allocate and wait although it records a graph from
/// another stream, and the capture stays valid.
pub(super) fn relaxed<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: the driver API has had this signature since CUDA 10.1.
    let exchange = unsafe { libcuda::function::<Exchange>(c"cuThreadExchangeStreamCaptureMode") };
    let mut mode = RELAXED;
    let exchanged = exchange.filter(|exchange| {
        // SAFETY: the mode outlives the call, which replaces it by the mode of before.
        unsafe { exchange(&mut mode) == 0 }
    });
    let result = run();
    if let Some(exchange) = exchanged {
        // SAFETY: as above.
        unsafe { exchange(&mut mode) };
    }
    result
}
