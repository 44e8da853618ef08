//! NCCL's communicators of a group that one process has.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::nccl::sys::{self, ncclComm_t};
use tilewise::{Device, Element};

use super::call::{check, collective, missing};
use crate::cuda::Links;
use crate::error::Error;
use crate::program::Operation;

/// One communicator for each rank, all in this process.
#[derive(Debug)]
pub(crate) struct Nccl {
    links: Arc<Links>,
    streams: Vec<u64>,
    /// A communicator may be used by one thread at a time.
    comms: Mutex<Comms>,
}

#[derive(Debug)]
struct Comms(Vec<ncclComm_t>);

// SAFETY: communicators may be used from any thread, one at a time.
unsafe impl Send for Comms {}

/// What each rank gives and gets: addresses in its own memory, and a number of elements.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Where each rank's elements are.
    pub from: Vec<u64>,
    /// Where each rank's result goes; may be where its elements are.
    pub to: Vec<u64>,
    /// Elements: of one part in an all-gather and a reduce-scatter, of all in an all-reduce.
    pub count: usize,
}

impl Nccl {
    /// Why `devices` cannot have communicators, if they cannot.
    pub(crate) fn obstacle(devices: &[Device]) -> Option<String> {
        let mut ordinals: Vec<_> = (devices.iter())
            .map(|device| Some(device.gpu_info()?.ordinal))
            .collect();
        ordinals.sort_unstable();
        let ranks = ordinals.len();
        ordinals.dedup();
        if ordinals.len() < ranks {
            return Some("ranks share a device".into());
        }
        missing()
    }

    /// Communicators for `devices`, the GPUs of `links`, which have no obstacle.
    pub(crate) fn new(links: &Arc<Links>, devices: &[Device]) -> Result<Self, Error> {
        let ordinal = |device: &Device| device.gpu_info().map(|info| info.ordinal as i32);
        let ordinals: Vec<i32> = devices.iter().filter_map(ordinal).collect();
        let stream = |device: &Device| device.stream().map(|stream| stream.as_raw() as u64);
        let streams: Vec<u64> = devices.iter().filter_map(stream).collect();
        if ordinals.len() < devices.len() || streams.len() < devices.len() {
            return Err(Error::NoRanks);
        }
        let mut comms = vec![ptr::null_mut(); devices.len()];
        let _current = links.keep_current()?;
        // SAFETY: both lists have as many entries as stated, and outlive the call.
        let result = unsafe {
            sys::ncclCommInitAll(comms.as_mut_ptr(), comms.len() as i32, ordinals.as_ptr())
        };
        check("ncclCommInitAll", result)?;
        Ok(Nccl {
            links: links.clone(),
            streams,
            comms: Mutex::new(Comms(comms)),
        })
    }

    /// Enqueues the collective of `operation` on the streams of all ranks, as one group: all
    /// ranks get the elements of each, one rank's after the other's; or each gets its part of
    /// the sums, or all sums.
    ///
    /// # Safety
    /// All memory of `exchange` is live until the streams of the devices have finished, and used
    /// by nothing else until then but by later work of these streams.
    pub(crate) unsafe fn exchange<T: Element>(
        &self,
        operation: Operation,
        exchange: &Exchange,
    ) -> Result<(), Error> {
        let comms = self.comms.lock().unwrap_or_else(PoisonError::into_inner);
        let _current = self.links.keep_current()?;
        // SAFETY: a group that is begun is ended.
        check("ncclGroupStart", unsafe { sys::ncclGroupStart() })?;
        let mut result = Ok(());
        for (rank, &comm) in comms.0.iter().enumerate() {
            let (from, to) = (exchange.from[rank], exchange.to[rank]);
            let stream = self.streams[rank] as sys::cudaStream_t;
            result = result.and_then(|()| {
                let _current = self.links.make_current(rank)?;
                // SAFETY: the caller's duty; communicator and stream exist.
                let (call, result) =
                    unsafe { collective::<T>(operation, (from, to), exchange.count, comm, stream) };
                check(call, result)
            });
        }
        // SAFETY: as above.
        check("ncclGroupEnd", unsafe { sys::ncclGroupEnd() })?;
        result
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        let _current = self.links.keep_current();
        let comms = self.comms.get_mut().unwrap_or_else(PoisonError::into_inner);
        for &comm in &comms.0 {
            // SAFETY: created by `new`, destroyed once.
            unsafe { sys::ncclCommDestroy(comm) };
        }
    }
}
