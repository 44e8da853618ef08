//! Results of the driver as errors.

use std::ffi::CStr;
use std::ptr;

use cudarc::driver::sys;

use crate::error::Error;

/// An error unless `result` is success.
pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<(), Error> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = ptr::null();
    // SAFETY: the driver writes a pointer to a static string, or null.
    let found = unsafe { sys::cuGetErrorName(result, &mut name) };
    let name = match found {
        // SAFETY: as above.
        sys::CUresult::CUDA_SUCCESS if !name.is_null() => unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
        _ => "without a name".into(),
    };
    Err(Error::Driver {
        call,
        code: result as u32,
        name,
    })
}
