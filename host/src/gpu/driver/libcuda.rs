//! The shared library of the CUDA driver, opened at run time: on a machine without a driver,
//! the same binary runs and finds no GPU.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The code of a call without a driver: `CUDA_ERROR_NO_DEVICE`.
pub const NO_DEVICE: u32 = 100;

/// The code of a call that the driver lacks: `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;

/// The driver library, opened once; `None` if there is no driver.
fn library() -> Option<&'static libloading::Library> {
    static LIBRARY: OnceLock<Option<libloading::Library>> = OnceLock::new();
    LIBRARY
        // SAFETY: the driver's initialisers can run in any process.
        .get_or_init(|| unsafe { libloading::Library::new("libcuda.so.1").ok() })
        .as_ref()
}

/// Whether this machine has a driver.
pub fn is_present() -> bool {
    library().is_some()
}

/// The driver function `name`; `None` without a driver or where the driver is older than
/// the function.
///
/// # Safety
/// `F` is a function pointer with a signature by which the function can be called.
pub unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the caller ensures it.
    let symbol = unsafe { library()?.get::<F>(name.to_bytes_with_nul()) };
    symbol.ok().map(|symbol| *symbol)
}

thread_local! {
    static MISSING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The function that this thread last called although the driver is too old to have it.
/// Resets it to `None`.
pub fn take_missing_function() -> Option<&'static str> {
    MISSING.take()
}

/// One driver function of the type `F`, looked up on its first call.
pub struct Entry<F> {
    name: &'static CStr,
    function: OnceLock<Option<F>>,
}

impl<F: Copy> Entry<F> {
    /// The function `name`, which ends in NUL.
    ///
    /// # Safety
    /// As for [`function`].
    pub const unsafe fn new(name: &'static str) -> Self {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
            panic!("the name ends in its one NUL");
        };
        Entry {
            name,
            function: OnceLock::new(),
        }
    }

    /// The function; `None` without a driver or where the driver is older than the function.
    pub fn find(&self) -> Option<F> {
        *self.function.get_or_init(|| {
            // SAFETY: the caller of `new` has ensured it.
            unsafe { function(self.name) }
        })
    }

    /// The function, or the code with which a call of it fails.
    pub fn get(&self) -> Result<F, u32> {
        match self.find() {
            Some(function) => Ok(function),
            None if is_present() => {
                MISSING.set(self.name.to_str().ok());
                Err(NOT_SUPPORTED)
            }
            None => Err(NO_DEVICE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_the_driver_lacks_is_named() {
        // SAFETY: it is never called.
        let entry: Entry<unsafe extern "C" fn()> = unsafe { Entry::new("cuNoSuchFunction\0") };
        let code = entry.get().err();
        if is_present() {
            assert_eq!(code, Some(NOT_SUPPORTED));
            assert_eq!(take_missing_function(), Some("cuNoSuchFunction"));
            assert_eq!(take_missing_function(), None, "asking forgets");
        } else {
            assert_eq!(code, Some(NO_DEVICE));
            assert_eq!(take_missing_function(), None);
        }
    }

    #[test]
    fn a_call_of_a_missing_function_says_that_the_driver_is_too_old() {
        MISSING.set(Some("cuNoSuchFunction"));
        match crate::gpu::driver::failure("cuInit", NOT_SUPPORTED) {
            crate::Error::DriverTooOld { lacks, .. } => {
                assert_eq!(lacks, "function cuNoSuchFunction");
            }
            other => panic!("{other}"),
        }
    }
}
