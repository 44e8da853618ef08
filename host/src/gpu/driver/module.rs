//! Loads embedded PTX as functions that can be launched.
//!
//! Each kernel, for each form of launch, is a module of its own, which is loaded when a plan first needs it. So the
//! driver compiles only the kernels that are used, and keeps the results in its own cache
//! on disk.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpu_kernels::fold::fold;
use gpu_kernels::{Form, KernelInfo};

use super::binding::{
    self, CUfunction_attribute_enum as FunctionAttribute, CUjit_option_enum as JitOption, CUmodule,
    cudaError_enum as Code,
};
use super::{check, driver_version, occupancy};
use crate::embedded;
use crate::error::Error;
use crate::gpu::backend::{Function, FunctionHandle};

/// Shared memory that a CTA may have without opt-in (CUDA C++
/// programming guide, "Technical specifications per compute capability").
const SHARED_BYTES_WITHOUT_OPT_IN: u32 = 48 * 1024;

/// Size of the buffer for the log of the driver's compiler, in bytes.
const LOG_BYTES: usize = 8 * 1024;

/// What a module is compiled for: an entry point, and the form that is folded into its PTX.
type Key = (&'static str, Form);

/// The kernels that one GPU has loaded.
#[derive(Default)]
pub(super) struct Modules {
    loaded: Mutex<HashMap<Key, Loaded>>,
}

/// A loaded module. The context must be current when it is dropped, which unloads it.
struct Loaded {
    module: CUmodule,
    function: Function,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Loaded {}

/// The function of `kernel` for launches of `form`, which is loaded into the current context if it is not among
/// `modules`. The lock is not held while loading, so that threads can load different
/// kernels at once: the driver's compiler takes seconds for one kernel.
pub(super) fn function(
    modules: &Modules,
    kernel: &KernelInfo,
    form: &Form,
) -> Result<Function, Error> {
    let key = (kernel.entry, *form);
    if let Some(found) = modules.lock().get(&key) {
        return Ok(found.function);
    }
    let module = Loaded::new(kernel, form)?;
    // If another thread has loaded the kernel meanwhile, this module is unloaded.
    Ok(modules.lock().entry(key).or_insert(module).function)
}

impl Modules {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loaded {
    fn new(kernel: &KernelInfo, form: &Form) -> Result<Self, Error> {
        let ptx = fold(&embedded::ptx(kernel.entry)?, kernel.entry, form);
        let mut loaded = Loaded {
            module: load(kernel.name, &ptx)?,
            function: Function {
                kernel: *kernel,
                ctas_per_sm: 0,
                clusters_at_once: None,
                handle: FunctionHandle(std::ptr::null_mut()),
            },
        };
        let mut function = std::ptr::null_mut();
        let name = CString::new(kernel.entry).expect("an identifier holds no NUL");
        // SAFETY: the module is loaded; the handle outlives the call.
        check("cuModuleGetFunction", unsafe {
            binding::cuModuleGetFunction(&mut function, loaded.module, name.as_ptr())
        })?;
        loaded.function.handle = FunctionHandle(function.cast());
        if kernel.shared_bytes > SHARED_BYTES_WITHOUT_OPT_IN {
            // SAFETY: the function is loaded.
            check("cuFuncSetAttribute", unsafe {
                binding::cuFuncSetAttribute(
                    function,
                    FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    kernel.shared_bytes as i32,
                )
            })?;
        }
        occupancy::allow_clusters(kernel, function)?;
        loaded.function.ctas_per_sm = occupancy::ctas_per_sm(kernel, function)?;
        loaded.function.clusters_at_once = occupancy::clusters_at_once(kernel, function)?;
        Ok(loaded)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once.
        unsafe { binding::cuModuleUnload(self.module) };
    }
}

/// Compiles and loads `ptx` into the current context.
fn load(kernel: &'static str, ptx: &str) -> Result<CUmodule, Error> {
    let text = CString::new(ptx).expect("PTX is text");
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        JitOption::CU_JIT_ERROR_LOG_BUFFER,
        JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The driver takes integers as pointers ("CUjit_option", `optionValues`).
    let mut values = [log.as_mut_ptr().cast(), LOG_BYTES as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends in NUL; the log has the stated bytes; everything
    // outlives the call.
    let result = unsafe {
        binding::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match result {
        Code::CUDA_SUCCESS => Ok(module),
        Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Err(Error::DriverTooOld {
            driver: driver_version(),
            lacks: format!("PTX ISA {} (kernel {kernel})", ptx_version(ptx)),
        }),
        Code::CUDA_ERROR_INVALID_PTX
        | Code::CUDA_ERROR_NO_BINARY_FOR_GPU
        | Code::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
            Err(Error::Compile {
                kernel,
                code: binding::code(result),
                log: String::from_utf8_lossy(&log[..end]).trim().to_owned(),
            })
        }
        other => check("cuModuleLoadDataEx", other).map(|()| module),
    }
}

/// The version in the `.version` directive of a PTX text.
fn ptx_version(ptx: &str) -> &str {
    ptx.lines()
        .find_map(|line| line.trim().strip_prefix(".version"))
        .map_or("of no stated version", str::trim)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_directive_is_read() {
        let ptx = "//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 8.0\n.target sm_90a\n";
        assert_eq!(super::ptx_version(ptx), "8.0");
    }
}
