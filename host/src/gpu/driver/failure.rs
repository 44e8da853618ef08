//! The errors of failed calls of the driver.

use std::ffi::{CStr, c_char, c_int};

use super::libcuda;
use crate::error::Error;

/// Returns an error unless the code that `call` returned is success.
pub(super) fn check(call: &'static str, code: u32) -> Result<(), Error> {
    const SUCCESS: u32 = 0;
    match code {
        SUCCESS => Ok(()),
        failed => Err(failure(call, failed)),
    }
}

/// The error for `call`, which returned `code`.
pub(super) fn failure(call: &'static str, code: u32) -> Error {
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
pub(super) fn driver_version() -> (u32, u32) {
    type DriverGetVersion = unsafe extern "C" fn(*mut c_int) -> u32;
    let mut version = 0;
    // SAFETY: the driver API documents this signature in "Version Management".
    if let Some(get) = unsafe { libcuda::function::<DriverGetVersion>(c"cuDriverGetVersion") } {
        // SAFETY: the number outlives the call. A failure leaves it 0.
        unsafe { get(&mut version) };
    }
    // "(1000 × major + 10 × minor)".
    let version = version as u32;
    (version / 1000, version % 1000 / 10)
}

/// The driver's name for a `CUresult`.
fn code_name(code: u32) -> String {
    // The argument is a number here, because a Rust enum must not hold an unknown code.
    type GetErrorName = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
    let mut name = std::ptr::null();
    // SAFETY: the driver API documents this signature in "Error Handling".
    if let Some(get) = unsafe { libcuda::function::<GetErrorName>(c"cuGetErrorName") } {
        // SAFETY: `name` is written with a static string or null.
        unsafe { get(code, &mut name) };
    }
    if name.is_null() {
        return "no name known".into();
    }
    // SAFETY: not null, so a static string of the driver's.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_a_driver_has_no_name() {
        if !libcuda::is_present() {
            assert_eq!(driver_version(), (0, 0));
            assert_eq!(
                failure("cuInit", 100).to_string(),
                "cuInit failed with CUDA error 100 (no name known)"
            );
        }
    }
}
