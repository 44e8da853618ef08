//! NCCL's communicator of one rank, where ranks are processes.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cudarc::nccl::sys::{self, ncclComm_t, ncclResult_t};
use tilewise::Element;

use super::call::{check, collective, missing, too_old};
use super::closing::Closing;
use crate::cuda::Rank;
use crate::error::Error;
use crate::program::{Operation, Queue};

/// The first version that has calls which return while they are under way: 2.14.
const OLDEST: i32 = 21_400;

/// How often a thread looks at a call that is under way before it sleeps between two looks.
const LOOKS: u32 = 100;

/// How long a thread sleeps between two looks at first, and at most: a call may be under way for
/// hours where other ranks keep their plans.
const LOOK: Duration = Duration::from_micros(50);
const LONGEST_LOOK: Duration = Duration::from_millis(5);

/// The communicator of this rank. No call of it waits for another process without end: calls
/// return while they are under way, and are given up when the group has failed.
#[derive(Debug)]
pub(crate) struct Communicator {
    rank: Arc<Rank>,
    /// `None` once it is aborted.
    comm: Mutex<Option<Comm>>,
    closing: Arc<Closing>,
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
    /// Why there is none, if the library is not there, or too old.
    pub fn obstacle() -> Option<String> {
        missing().or_else(|| too_old(OLDEST))
    }

    /// A new name for communicators, which one rank makes and gives to the others.
    pub fn name() -> Result<Vec<u8>, Error> {
        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        // SAFETY: the name outlives the call.
        check("ncclGetUniqueId", unsafe { sys::ncclGetUniqueId(&mut id) })?;
        Ok(id.internal.map(|byte| byte.to_ne_bytes()[0]).into())
    }

    /// Joins the communicator `name` as number `own` of `ranks`, unless `failure` says meanwhile
    /// that it is in vain. When it is dropped, `closing` counts it until it is closed.
    pub fn new(
        rank: &Arc<Rank>,
        (own, ranks): (usize, usize),
        name: &[u8],
        closing: &Arc<Closing>,
        failure: impl Fn() -> Option<Error>,
    ) -> Result<Self, Error> {
        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        for (to, &from) in id.internal.iter_mut().zip(name) {
            *to = std::ffi::c_char::from_ne_bytes([from]);
        }
        let mut configuration = Configuration {
            size: size_of::<Configuration>(),
            magic: 0xcafe_beef,
            version: OLDEST as u32,
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
            let name = "there is no communicator".into();
            return Err(Error::Nccl { call, name });
        }
        let communicator = Communicator {
            rank: Arc::clone(rank),
            comm: Mutex::new(Some(Comm(comm))),
            closing: Arc::clone(closing),
        };
        let finished = finish(call, Comm(comm), result, failure);
        if finished.is_err() {
            communicator.abort();
        }
        finished.map(|()| communicator)
    }

    /// Enqueues this rank's part of the collective of `operation`, behind the library's stream.
    /// NCCL may connect the ranks first, so the call may wait for them, until `failure` says that
    /// it is in vain.
    ///
    /// # Safety
    /// The memory at the addresses `from` and `to` is live until that stream has finished, and used
    /// by nothing else until then but by later work of the stream. After an error, the communicator
    /// is aborted before the memory is freed: a thread of NCCL may still be about to enqueue.
    pub unsafe fn exchange<T: Element>(
        &self,
        operation: Operation,
        memory: (u64, u64),
        count: usize,
        failure: impl Fn() -> Option<Error>,
    ) -> Result<(), Error> {
        let comm = self.comm.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(comm) = *comm else {
            return Err(failure().unwrap_or_else(aborted));
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
    /// Closes the communicator behind the work of the streams. That waits for the other ranks of
    /// this host, which may keep theirs as long as they like, so it has a thread of its own.
    fn drop(&mut self) {
        let comm = self.comm.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(comm) = comm.take() else {
            return;
        };
        let (rank, closing) = (Arc::clone(&self.rank), Arc::clone(&self.closing));
        let closed = closing.begin();
        let close = move || {
            close(&rank, comm, &closing);
            drop(closed);
        };
        // Without a thread, the communicator is left to the end of the process.
        let _ = thread::Builder::new().name("close".into()).spawn(close);
    }
}

/// Closes `comm`. What the others have not closed in time is left to the end of the process: they
/// may still read what NCCL has allocated here.
fn close(rank: &Rank, comm: Comm, closing: &Closing) {
    let _current = rank.make_current();
    let call = "ncclCommFinalize";
    // SAFETY: the communicator exists, and nobody else uses it any more.
    let result = unsafe { sys::ncclCommFinalize(comm.0) };
    let given_up = || closing.is_over().then(aborted);
    if finish(call, comm, result, given_up).is_ok() {
        // SAFETY: created by `Communicator::new`, given back once, and finalised, so that this
        // waits for nobody.
        unsafe { sys::ncclCommDestroy(comm.0) };
    }
}

/// Waits until a call of `comm` is no longer under way.
fn finish(
    call: &'static str,
    comm: Comm,
    mut result: ncclResult_t,
    failure: impl Fn() -> Option<Error>,
) -> Result<(), Error> {
    let mut looks = 0_u32;
    while result == ncclResult_t::ncclInProgress {
        if let Some(failure) = failure() {
            return Err(failure);
        }
        looks = looks.saturating_add(1);
        match looks.checked_sub(LOOKS) {
            None => thread::yield_now(),
            Some(more) => thread::sleep(LOOK.saturating_mul(more + 1).min(LONGEST_LOOK)),
        }
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
