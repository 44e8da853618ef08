//! The context that is current on the calling thread.

use std::ffi::c_void;
use std::ptr;

use super::binding::{self, CUcontext};
use super::check;
use crate::error::Error;
use crate::gpu::current::Current;

/// Makes `context` current until the result is dropped. If it is current already, this is a
/// single call, which reads a variable of the thread.
pub(super) fn make_current(context: CUcontext) -> Result<Current, Error> {
    let found = current()?;
    if found == context {
        return Ok(Current::UNCHANGED);
    }
    // SAFETY: the context is retained.
    check("cuCtxSetCurrent", unsafe {
        binding::cuCtxSetCurrent(context)
    })?;
    Ok(Current::in_place_of(found.cast(), restore))
}

/// Whatever is made current until the result is dropped, the context that is current now is
/// current again then.
pub(super) fn keep_current() -> Result<Current, Error> {
    Ok(Current::in_place_of(current()?.cast(), restore))
}

/// The current context; null if there is none.
fn current() -> Result<CUcontext, Error> {
    let mut context = ptr::null_mut();
    // SAFETY: the handle outlives the call.
    check("cuCtxGetCurrent", unsafe {
        binding::cuCtxGetCurrent(&mut context)
    })?;
    Ok(context)
}

/// Makes `context`, which was current before, current again. A failure would come from an
/// earlier call.
fn restore(context: *mut c_void) {
    // SAFETY: the thread that found the context current has made none of its calls since.
    unsafe { binding::cuCtxSetCurrent(context.cast()) };
}
