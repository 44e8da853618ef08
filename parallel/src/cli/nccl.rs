//! NCCL's collectives, to compare with. The library is opened at run time, where there is one.

use std::ptr;

use cudarc::nccl::sys::{self, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use tilewise::Device;
use tilewise_parallel::Error;

use super::timer::stream;

/// One communicator for each rank, all in this process.
pub struct Nccl<'d> {
    devices: &'d [Device],
    comms: Vec<ncclComm_t>,
}

impl<'d> Nccl<'d> {
    /// Communicators for `devices`; `None` without the library, or where two ranks share a GPU.
    pub fn new(devices: &'d [Device]) -> Option<Self> {
        // SAFETY: this only looks for the library.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let ordinal = |device: &Device| Some(device.gpu_info()?.ordinal as i32);
        let ordinals: Vec<i32> = devices.iter().map(ordinal).collect::<Option<_>>()?;
        let mut comms = vec![ptr::null_mut(); devices.len()];
        // SAFETY: both lists have as many entries as stated, and outlive the call.
        let result = unsafe {
            sys::ncclCommInitAll(comms.as_mut_ptr(), comms.len() as i32, ordinals.as_ptr())
        };
        (result == ncclResult_t::ncclSuccess).then_some(Nccl { devices, comms })
    }

    /// Copies `count` elements of bf16 of every rank to all ranks, one after the other.
    pub fn all_gather(&self, from: &[u64], to: &[u64], count: usize) -> Result<(), Error> {
        self.grouped("ncclAllGather", |rank| {
            // SAFETY: the caller's matrices have that many elements, and are live until the
            // stream has finished.
            unsafe {
                sys::ncclAllGather(
                    from[rank] as *const _,
                    to[rank] as *mut _,
                    count,
                    ncclDataType_t::ncclBfloat16,
                    self.comms[rank],
                    stream(&self.devices[rank]).cast(),
                )
            }
        })
    }

    /// Adds up the matrices of all ranks, and gives each rank `count` elements of bf16.
    pub fn reduce_scatter(&self, from: &[u64], to: &[u64], count: usize) -> Result<(), Error> {
        self.grouped("ncclReduceScatter", |rank| {
            // SAFETY: as above.
            unsafe {
                sys::ncclReduceScatter(
                    from[rank] as *const _,
                    to[rank] as *mut _,
                    count,
                    ncclDataType_t::ncclBfloat16,
                    ncclRedOp_t::ncclSum,
                    self.comms[rank],
                    stream(&self.devices[rank]).cast(),
                )
            }
        })
    }

    /// Adds up the matrices of all ranks, and gives each rank all `count` elements of bf16.
    pub fn all_reduce(&self, from: &[u64], to: &[u64], count: usize) -> Result<(), Error> {
        self.grouped("ncclAllReduce", |rank| {
            // SAFETY: as above.
            unsafe {
                sys::ncclAllReduce(
                    from[rank] as *const _,
                    to[rank] as *mut _,
                    count,
                    ncclDataType_t::ncclBfloat16,
                    ncclRedOp_t::ncclSum,
                    self.comms[rank],
                    stream(&self.devices[rank]).cast(),
                )
            }
        })
    }

    fn grouped(
        &self,
        call: &'static str,
        each: impl Fn(usize) -> ncclResult_t,
    ) -> Result<(), Error> {
        let check = |result: ncclResult_t| match result {
            ncclResult_t::ncclSuccess => Ok(()),
            other => Err(Error::Driver {
                call,
                code: other as u32,
                name: format!("{other:?}"),
            }),
        };
        // SAFETY: a group that is begun is ended.
        check(unsafe { sys::ncclGroupStart() })?;
        let mut result = Ok(());
        for rank in 0..self.comms.len() {
            result = result.and_then(|()| {
                self.devices[rank].make_current()?;
                check(each(rank))
            });
        }
        // SAFETY: as above.
        check(unsafe { sys::ncclGroupEnd() })?;
        result
    }
}

impl Drop for Nccl<'_> {
    fn drop(&mut self) {
        for &comm in &self.comms {
            // SAFETY: created by `new`, destroyed once.
            unsafe { sys::ncclCommDestroy(comm) };
        }
    }
}
