//! The tests' own calls of the driver, on the stream of a device.

use std::ffi::c_void;
use std::ptr;

use cust::function::Function;
use cust_raw::{CUresult, CUstream};
use tilewise::{Device, Error};

/// The stream of `device`, a GPU of the driver.
pub fn stream(device: &Device) -> CUstream {
    let stream = device.stream().expect("a GPU of the driver has a stream");
    stream.as_raw().cast()
}

/// Enqueues a launch on the stream of `device`.
///
/// # Safety
/// `params` points at as many parameters as `function` takes, each of the right type.
pub unsafe fn launch(
    device: &Device,
    function: &Function<'_>,
    (ctas, threads): (u32, u32),
    params: &mut [*mut c_void],
) -> Result<(), Error> {
    let (no_shared_bytes, no_extra) = (0, ptr::null_mut());
    // SAFETY: the function is loaded; the caller ensures the rest.
    check("cuLaunchKernel", unsafe {
        cust_raw::cuLaunchKernel(
            function.to_raw(),
            ctas,
            1,
            1,
            threads,
            1,
            1,
            no_shared_bytes,
            stream(device),
            params.as_mut_ptr(),
            no_extra,
        )
    })
}

/// Returns an error unless `result` is success.
pub fn check(call: &'static str, result: CUresult) -> Result<(), Error> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(driver_error(call, code as u32)),
    }
}

/// The library's error for a call of the tests.
pub fn driver_error(call: &'static str, code: u32) -> Error {
    Error::Driver {
        call,
        code,
        name: "called by the test".into(),
    }
}
