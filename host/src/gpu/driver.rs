//! The GPUs of the CUDA driver.
//!
//! `cust` manages contexts, streams and device queries. Calls that it does not wrap, or
//! not well enough (some error codes, the compiler's log, function attributes, tensor
//! maps), go through `cust_raw`, and [`check`] checks each `CUresult`.

mod calls;
mod context;
mod event;
mod launch;
pub(super) mod libcuda;
mod module;
pub(super) mod open;
mod tensor_map;
mod timer;

use std::ffi::CStr;

use cust_raw::{CUresult, cudaError_enum as Code};

use crate::error::Error;

/// Returns an error unless `result` is success.
fn check(call: &'static str, result: CUresult) -> Result<(), Error> {
    match result {
        Code::CUDA_SUCCESS => Ok(()),
        failed => Err(failure(call, failed as u32)),
    }
}

/// The error for a call through `cust`.
fn cust_failure(call: &'static str) -> impl FnOnce(cust::error::CudaError) -> Error {
    move |error| failure(call, error as u32)
}

/// The error for `call`, which returned `code`.
fn failure(call: &'static str, code: u32) -> Error {
    if let Some(function) = libcuda::take_missing_function() {
        return Error::DriverTooOld {
            driver: driver_version(),
            lacks: format!("function {function}"),
        };
    }
    Error::Driver {
        call,
        code,
        name: code_name(code),
    }
}

/// The newest CUDA version the driver supports; (0, 0) without a driver.
fn driver_version() -> (u32, u32) {
    cust::CudaApiVersion::get().map_or((0, 0), |version| {
        (version.major() as u32, version.minor() as u32)
    })
}

/// The driver's name for a `CUresult`.
fn code_name(code: u32) -> String {
    type GetErrorName = unsafe extern "C" fn(u32, *mut *const std::ffi::c_char) -> u32;
    let mut name = std::ptr::null();
    if let Some(address) = libcuda::symbol(c"cuGetErrorName") {
        // The function is called by address, because `cust_raw` declares the argument as an
        // enum, which must not hold an unknown code.
        // SAFETY: the driver API documents this signature in "Error Handling";
        // `name` is written with a static string or null.
        unsafe {
            std::mem::transmute::<*const std::ffi::c_void, GetErrorName>(address)(code, &mut name)
        };
    }
    if name.is_null() {
        return "no name known".into();
    }
    // SAFETY: not null, so a static string of the driver's.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}
