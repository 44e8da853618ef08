//! NCCL's communicator of one rank, where ranks are processes.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cudarc::nccl::sys::{self, ncclComm_t, ncclResult_t};
use tilewise::Element;

use super::call::{check, collective, is_found};
use crate::cuda::Rank;
use crate::error::Error;
use crate::program::{Operation, Queue};

/// How long a thread sleeps between two looks at a call that is under way.
const LOOK: Duration = Duration::from_micros(100);

/// The communicator of this rank. No call of it waits for another process without end: calls
/// return while they are under way, and are given up when the group has failed.
#[derive(Debug)]
pub(crate) struct Communicator {
    rank: Arc<Rank>,
    /// `None` once it is aborted.
    comm: Mutex<Option<Comm>>,
}

#[derive(Clone, Copy, Debug)]
struct Comm(ncclComm_t);

// SAFETY: communicators may be used from any thread, one at a time.
unsafe impl Send for Comm {}

/// The first fields of NCCL's configuration, as of its version 2.14; later ones have defaults.
#[repr(C)]
struct Configuration {
    size: usize,
    magic: u32,
    version: u32,
    is_blocking: i32,
}

impl Communicator {
    /// Why there is none, if the library is not there.
    pub fn obstacle() -> Option<String> {
        (!is_found()).then(|| "libnccl.so.2 is not found".into())
    }

    /// A new name for communicators, which one rank makes and gives to the others.
    pub fn name() -> Result<Vec<u8>, Error> {
        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        // SAFETY: the name outlives the call.
        check("ncclGetUniqueId", unsafe { sys::ncclGetUniqueId(&mut id) })?;
        Ok(id.internal.map(|byte| byte.to_ne_bytes()[0]).into())
    }

    /// Joins the communicator `name` as number `own` of `ranks`, unless `failure` says meanwhile
    /// that it is in vain.
    pub fn new(
        rank: &Arc<Rank>,
        (own, ranks): (usize, usize),
        name: &[u8],
        failure: impl Fn() -> Option<Error>,
    ) -> Result<Self, Error> {
        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        for (to, &from) in id.internal.iter_mut().zip(name) {
            *to = std::ffi::c_char::from_ne_bytes([from]);
        }
        let mut configuration = Configuration {
            size: size_of::<Configuration>(),
            magic: 0xcafe_beef,
            version: 21400,
            is_blocking: 0,
        };
        let mut comm = ptr::null_mut();
        let _current = rank.make_current()?;
        let call = "ncclCommInitRankConfig";
        // SAFETY: all outlive the call. NCCL reads as much of the configuration as it says it has.
        let result = unsafe {
            let configuration = (&raw mut configuration).cast();
            sys::ncclCommInitRankConfig(&mut comm, ranks as i32, id, own as i32, configuration)
        };
        if comm.is_null() {
            check(call, result)?;
        }
        let communicator = Communicator {
            rank: Arc::clone(rank),
            comm: Mutex::new(Some(Comm(comm))),
        };
        let finished = finish(call, Comm(comm), result, failure);
        if finished.is_err() {
            communicator.abort();
        }
        finished.map(|()| communicator)
    }

    /// Enqueues this rank's part of the collective of `operation`, behind the library's stream.
    ///
    /// # Safety
    /// The memory at the addresses `from` and `to` is live until that stream has finished, and used
    /// by nothing else until then but by later work of the stream.
    pub unsafe fn exchange<T: Element>(
        &self,
        operation: Operation,
        memory: (u64, u64),
        count: usize,
        failure: impl Fn() -> Option<Error>,
    ) -> Result<(), Error> {
        let comm = self.comm.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(comm) = *comm else {
            return Err(aborted());
        };
        let _current = self.rank.make_current()?;
        let stream = self.rank.stream(Queue::Compute).cast();
        // SAFETY: the caller's duty; communicator and stream exist.
        let (call, result) = unsafe { collective::<T>(operation, memory, count, comm.0, stream) };
        finish(call, comm, result, failure)
    }

    /// Ends what is under way, so that the stream goes on.
    pub fn abort(&self) {
        let comm = (self.comm.lock().unwrap_or_else(PoisonError::into_inner)).take();
        if let Some(Comm(comm)) = comm {
            let _current = self.rank.make_current();
            // SAFETY: created by `new`, given back once.
            unsafe { sys::ncclCommAbort(comm) };
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let comm = self.comm.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Comm(comm)) = comm.take() {
            let _current = self.rank.make_current();
            // SAFETY: created by `new`, given back once; its work has finished.
            unsafe { sys::ncclCommDestroy(comm) };
        }
    }
}

/// Waits until a call of `comm` is no longer under way.
fn finish(
    call: &'static str,
    comm: Comm,
    mut result: ncclResult_t,
    failure: impl Fn() -> Option<Error>,
) -> Result<(), Error> {
    while result == ncclResult_t::ncclInProgress {
        if let Some(failure) = failure() {
            return Err(failure);
        }
        thread::sleep(LOOK);
        let mut state = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator exists, and the state outlives the call.
        let asked = unsafe { sys::ncclCommGetAsyncError(comm.0, &mut state) };
        check("ncclCommGetAsyncError", asked)?;
        result = state;
    }
    check(call, result)
}

fn aborted() -> Error {
    Error::Nccl {
        call: "ncclCommAbort",
        name: "the communicator was aborted".into(),
    }
}
