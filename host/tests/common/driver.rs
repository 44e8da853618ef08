//! The tests' own calls of the driver.
#![allow(dead_code, reason = "each test program uses its part")]

use std::ffi::{CString, c_void};
use std::ptr;

use tilewise::{CudaStream, Device, Error};

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
        // SAFETY: the caller ensures it.
        unsafe { self.launch_on(device, stream(device), name, (ctas, threads), params) }
    }

    /// The same on another stream of the device.
    ///
    /// # Safety
    /// As for [`Module::launch`], and the stream exists.
    pub unsafe fn launch_on(
        &self,
        device: &Device,
        stream: sys::CUstream,
        name: &str,
        (ctas, threads): (u32, u32),
        params: &mut [*mut c_void],
    ) -> Result<(), Error> {
        device.make_current()?;
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
                stream,
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

/// A stream of the test's own, destroyed on drop. It does not wait for the legacy default
/// stream.
pub struct Stream(sys::CUstream);

impl Stream {
    /// A stream in the context of `device`.
    pub fn new(device: &Device) -> Result<Self, Error> {
        const NON_BLOCKING: u32 = 1;
        device.make_current()?;
        let mut stream = ptr::null_mut();
        // SAFETY: the handle outlives the call.
        check("cuStreamCreateWithPriority", unsafe {
            sys::cuStreamCreateWithPriority(&mut stream, NON_BLOCKING, 0)
        })?;
        Ok(Stream(stream))
    }

    /// The driver's handle.
    pub fn as_raw(&self) -> sys::CUstream {
        self.0
    }

    /// The stream as the library takes it.
    pub fn as_cuda(&self) -> CudaStream {
        // SAFETY: the stream belongs to the device's primary context; the tests keep it until
        // their calls have returned.
        unsafe { CudaStream::from_raw(self.0.cast()) }
    }

    /// Waits for all work on the stream.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the stream exists.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.0)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; the driver finishes its work first.
        unsafe { sys::cuStreamDestroy_v2(self.0) };
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
