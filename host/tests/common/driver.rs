//! The tests' own calls of the driver, on the stream of a device.

use std::ffi::{CString, c_void};
use std::ptr;

use tilewise::{Device, Error};

#[cfg(not(feature = "cust"))]
pub use cudarc::driver::sys;
/// The driver's functions by their own names: of the binding that the library has, where a
/// program can link it, and else of cudarc, which loads the driver at run time too.
#[cfg(feature = "cust")]
pub use cust_raw as sys;

/// The stream of `device`, a GPU of the driver.
pub fn stream(device: &Device) -> sys::CUstream {
    let stream = device.stream().expect("a GPU of the driver has a stream");
    stream.as_raw().cast()
}

/// A loaded module. The context must be current when it is dropped, which unloads it.
pub struct Module(sys::CUmodule);

impl Module {
    /// Compiles and loads `ptx` on `device`.
    pub fn load(device: &Device, ptx: &str) -> Result<Self, Error> {
        device.make_current()?;
        let text = CString::new(ptx).expect("PTX is text");
        let mut module = ptr::null_mut();
        let (no_options, no_values) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the text ends in NUL; text and handle outlive the call.
        check("cuModuleLoadDataEx", unsafe {
            let image = text.as_ptr().cast();
            sys::cuModuleLoadDataEx(&mut module, image, 0, no_options, no_values)
        })?;
        Ok(Module(module))
    }

    /// Enqueues a launch of the kernel `name` on the stream of `device`.
    ///
    /// # Safety
    /// The module is loaded on `device`. `params` points at as many parameters as the
    /// kernel takes, each of the right type.
    pub unsafe fn launch(
        &self,
        device: &Device,
        name: &str,
        (ctas, threads): (u32, u32),
        params: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let name = CString::new(name).expect("an identifier holds no NUL");
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded; name and handle outlive the call.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&mut function, self.0, name.as_ptr())
        })?;
        let (no_shared_bytes, no_extra) = (0, ptr::null_mut());
        // SAFETY: the function is loaded; the caller ensures the rest.
        check("cuLaunchKernel", unsafe {
            sys::cuLaunchKernel(
                function,
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
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once.
        unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// Returns an error unless `result` is success.
pub fn check(call: &'static str, result: sys::CUresult) -> Result<(), Error> {
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Error::Driver {
            call,
            code: code as u32,
            name: "called by the test".into(),
        }),
    }
}
