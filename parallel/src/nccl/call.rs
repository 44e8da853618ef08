//! Calls of NCCL, and their results as errors.

use std::ffi::c_void;

use cudarc::nccl::sys::{self, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use tilewise::{DType, Element};

use crate::error::Error;
use crate::program::Operation;

/// Enqueues one rank's part of the collective of `operation` on `stream`, and returns the call and
/// its result.
///
/// # Safety
/// Communicator and stream exist. The memory `from` and `to` is that rank's, live until the stream
/// has finished, and used by nothing else until then but by later work of the stream.
pub(super) unsafe fn collective<T: Element>(
    operation: Operation,
    (from, to): (u64, u64),
    count: usize,
    comm: ncclComm_t,
    stream: sys::cudaStream_t,
) -> (&'static str, ncclResult_t) {
    let (from, to) = (from as *const c_void, to as *mut c_void);
    let (of, sum) = (data_type::<T>(), ncclRedOp_t::ncclSum);
    // SAFETY: the caller's duty.
    unsafe {
        match operation {
            Operation::AllGather => (
                "ncclAllGather",
                sys::ncclAllGather(from, to, count, of, comm, stream),
            ),
            Operation::ReduceScatter => (
                "ncclReduceScatter",
                sys::ncclReduceScatter(from, to, count, of, sum, comm, stream),
            ),
            Operation::AllReduce => (
                "ncclAllReduce",
                sys::ncclAllReduce(from, to, count, of, sum, comm, stream),
            ),
        }
    }
}

/// Why there is no library, if it is not found.
pub(super) fn missing() -> Option<String> {
    // SAFETY: this only looks for the library.
    let is_found = unsafe { sys::is_culib_present() };
    (!is_found).then(|| "libnccl.so.2 is not found".into())
}

/// Why the library is not of `oldest` or a later version, in NCCL's way of counting, if it is not.
pub(super) fn too_old(oldest: i32) -> Option<String> {
    let mut version = 0;
    // SAFETY: the number outlives the call, which every version has.
    let result = check("ncclGetVersion", unsafe {
        sys::ncclGetVersion(&mut version)
    });
    match result {
        Err(error) => Some(error.to_string()),
        Ok(()) => (version < oldest)
            .then(|| format!("libnccl.so.2 has version {version}; {oldest} is needed")),
    }
}

fn data_type<T: Element>() -> ncclDataType_t {
    match T::DTYPE {
        DType::F16 => ncclDataType_t::ncclFloat16,
        DType::Bf16 => ncclDataType_t::ncclBfloat16,
        _ => ncclDataType_t::ncclFloat32,
    }
}

/// An error unless `result` is success.
pub(super) fn check(call: &'static str, result: ncclResult_t) -> Result<(), Error> {
    match result {
        ncclResult_t::ncclSuccess => Ok(()),
        other => Err(Error::Nccl {
            call,
            name: format!("{other:?}"),
        }),
    }
}
