//! Memory that the processes of one host share with a GPU: device memory of another process, and
//! words in host memory that streams write and wait for.

use std::ffi::c_char;
use std::mem;
use std::sync::Arc;

use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

use super::error::check;
use super::rank::Rank;
use crate::error::Error;
use crate::program::Queue;

/// Allocations of this size share no block of memory with others, which a process that opens
/// their handle would get too.
const BLOCK: usize = 2 << 20;

/// Device memory that other processes may open.
#[derive(Debug)]
pub(crate) struct Arena {
    rank: Arc<Rank>,
    address: u64,
}

/// By which another process opens an [`Arena`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Handle(Vec<u8>);

impl Arena {
    /// At least `bytes` on the GPU of `rank`.
    pub fn new(rank: &Arc<Rank>, bytes: usize) -> Result<Self, Error> {
        let bytes = bytes.max(1).checked_next_multiple_of(BLOCK);
        let bytes = bytes.unwrap_or(usize::MAX);
        let _current = rank.make_current()?;
        let mut address = 0;
        // Not from a pool, whose memory has no such handles.
        // SAFETY: the address outlives the call.
        check("cuMemAlloc", unsafe {
            sys::cuMemAlloc_v2(&mut address, bytes)
        })?;
        let rank = Arc::clone(rank);
        Ok(Arena { rank, address })
    }

    /// Where it begins, for this process.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The handle for other processes of this host.
    pub fn handle(&self) -> Result<Handle, Error> {
        let _current = self.rank.make_current()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: the memory is this process's own, and the handle outlives the call.
        check("cuIpcGetMemHandle", unsafe {
            sys::cuIpcGetMemHandle(&mut handle, self.address)
        })?;
        Ok(Handle(
            handle.reserved.map(|byte| byte.to_ne_bytes()[0]).into(),
        ))
    }

    /// Leaves the memory to the end of the process, because others may still write to it.
    pub fn leak(self) {
        mem::forget(self);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _current = self.rank.make_current();
        // SAFETY: allocated by `new`, freed once. Whoever had opened it has closed it.
        unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// The [`Arena`] of another process.
#[derive(Debug)]
pub(crate) struct Opened {
    rank: Arc<Rank>,
    address: u64,
}

impl Opened {
    /// Opens what `peer`, another process, has allocated, for the GPU of `rank`.
    pub fn new(rank: &Arc<Rank>, peer: usize, handle: &Handle) -> Result<Self, Error> {
        let _current = rank.make_current()?;
        let mut opened = sys::CUipcMemHandle { reserved: [0; 64] };
        for (to, from) in opened.reserved.iter_mut().zip(&handle.0) {
            *to = c_char::from_ne_bytes([*from]);
        }
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: the address outlives the call, and the driver checks the handle.
        match unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, opened, flags) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => Err(Error::NoPeerAccess {
                from: rank.name().into(),
                to: format!("the GPU of rank {peer}"),
            }),
            result => {
                check("cuIpcOpenMemHandle", result)?;
                let rank = Arc::clone(rank);
                Ok(Opened { rank, address })
            }
        }
    }

    /// Where it begins, for this process.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _current = self.rank.make_current();
        // SAFETY: opened by `new`, closed once; the streams that used it have finished.
        unsafe { sys::cuIpcCloseMemHandle(self.address) };
    }
}

/// Host memory that the streams of a GPU access.
#[derive(Debug)]
pub(crate) struct Words {
    rank: Arc<Rank>,
    memory: *mut u8,
    /// Where the GPU finds it.
    address: u64,
    /// How streams wait.
    flags: u32,
}

// SAFETY: the pointer is only given back to the driver, which may be called from any thread.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Lets the GPU of `rank` access `bytes` at `memory`.
    ///
    /// # Safety
    /// The memory consists of whole pages, lives longer than the result, and is accessed by
    /// atomics alone.
    pub unsafe fn new(rank: &Arc<Rank>, memory: *mut u8, bytes: usize) -> Result<Self, Error> {
        let _current = rank.make_current()?;
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: the caller's duty.
        check("cuMemHostRegister", unsafe {
            sys::cuMemHostRegister_v2(memory.cast(), bytes, flags)
        })?;
        let mut words = Words {
            rank: Arc::clone(rank),
            memory,
            address: 0,
            flags: sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32,
        };
        let mut can_flush = 0;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
        // SAFETY: the memory is registered, and the results outlive the calls.
        unsafe {
            check(
                "cuMemHostGetDevicePointer",
                sys::cuMemHostGetDevicePointer_v2(&mut words.address, memory.cast(), 0),
            )?;
            check(
                "cuDeviceGetAttribute",
                sys::cuDeviceGetAttribute(&mut can_flush, attribute, rank.device()),
            )?;
        }
        if can_flush != 0 {
            // What another GPU has written before it wrote the word is visible behind the wait.
            words.flags |= sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH as u32;
        }
        Ok(words)
    }

    /// Writes `value` at `byte`, behind all that `queue` has, whose writes are visible to whoever
    /// sees the value: the driver puts a fence for the whole system before it.
    pub fn write(&self, queue: Queue, byte: usize, value: u32) -> Result<(), Error> {
        let _current = self.rank.make_current()?;
        let flags = sys::CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
        let address = self.address + byte as u64;
        // SAFETY: the stream exists, and the word is mapped.
        check("cuStreamWriteValue32", unsafe {
            sys::cuStreamWriteValue32_v2(self.rank.stream(queue), address, value, flags)
        })
    }

    /// Makes `queue` wait until the word at `byte` is `value`, or up to 2³¹ − 1 beyond it.
    pub fn wait(&self, queue: Queue, byte: usize, value: u32) -> Result<(), Error> {
        let _current = self.rank.make_current()?;
        let address = self.address + byte as u64;
        // SAFETY: the stream exists, and the word is mapped.
        check("cuStreamWaitValue32", unsafe {
            sys::cuStreamWaitValue32_v2(self.rank.stream(queue), address, value, self.flags)
        })
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let _current = self.rank.make_current();
        // SAFETY: registered by `new`, given back once; the streams that used it have finished.
        unsafe { sys::cuMemHostUnregister(self.memory.cast()) };
    }
}
