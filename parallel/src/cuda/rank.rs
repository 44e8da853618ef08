//! One GPU of a group: its context, and its streams.

use std::ptr;

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUevent, CUstream};
use tilewise::Device;

use super::error::check;
use crate::error::Error;
use crate::lines::Lines;
use crate::program::Queue;

/// A GPU as a rank. Two ranks may be one GPU.
#[derive(Debug)]
pub(crate) struct Rank {
    name: String,
    device: CUdevice,
    context: CUcontext,
    /// The library's stream, which lives as long as the device.
    compute: CUstream,
    aside: CUstream,
    copy: CUstream,
    local: CUstream,
}

// SAFETY: contexts and streams of the driver may be used from any thread.
unsafe impl Send for Rank {}
// SAFETY: as above.
unsafe impl Sync for Rank {}

impl Rank {
    /// Retains the primary context of `device`, which the library uses too, and creates the
    /// other streams.
    pub(crate) fn new(device: &Device) -> Result<Self, Error> {
        let (Some(info), Some(stream)) = (device.gpu_info(), device.stream()) else {
            return Err(Error::NoRanks);
        };
        let mut rank = Rank {
            name: device.to_string(),
            device: 0,
            context: ptr::null_mut(),
            compute: stream.as_raw().cast(),
            aside: ptr::null_mut(),
            copy: ptr::null_mut(),
            local: ptr::null_mut(),
        };
        // SAFETY: the handles outlive the calls; the library has initialised the driver.
        unsafe {
            let ordinal = info.ordinal as i32;
            check("cuDeviceGet", sys::cuDeviceGet(&mut rank.device, ordinal))?;
            check(
                "cuDevicePrimaryCtxRetain",
                sys::cuDevicePrimaryCtxRetain(&mut rank.context, rank.device),
            )?;
        }
        let current = rank.make_current()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        for stream in [&mut rank.aside, &mut rank.copy, &mut rank.local] {
            // SAFETY: the handle outlives the call.
            check("cuStreamCreate", unsafe {
                sys::cuStreamCreate(stream, flags)
            })?;
        }
        drop(current);
        Ok(rank)
    }

    /// The GPU, as the driver numbers it.
    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    /// By which GPUs are told apart, on whatever host.
    pub(crate) fn uuid(&self) -> Result<[u8; 16], Error> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the result outlives the call.
        check("cuDeviceGetUuid", unsafe {
            sys::cuDeviceGetUuid_v2(&mut uuid, self.device)
        })?;
        Ok(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its primary context.
    pub(super) fn context(&self) -> CUcontext {
        self.context
    }

    /// The stream of a queue.
    pub(crate) fn stream(&self, queue: Queue) -> CUstream {
        match queue {
            Queue::Compute => self.compute,
            Queue::Aside => self.aside,
            Queue::Copy => self.copy,
            Queue::Local => self.local,
        }
    }

    /// Makes the context current until the result is dropped; then the context is current again
    /// that was before.
    pub(crate) fn make_current(&self) -> Result<Current, Error> {
        let mut found = ptr::null_mut();
        // SAFETY: the handle outlives the call, and the context is retained.
        unsafe {
            check("cuCtxGetCurrent", sys::cuCtxGetCurrent(&mut found))?;
            check("cuCtxSetCurrent", sys::cuCtxSetCurrent(self.context))?;
        }
        Ok(Current { found })
    }

    /// Lets this GPU access the memory of `peer`, another GPU.
    pub(super) fn enable_access_to(&self, peer: &Rank) -> Result<(), Error> {
        let mut can = 0;
        // SAFETY: the integer outlives the call.
        check("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(&mut can, self.device, peer.device)
        })?;
        if can == 0 {
            return Err(Error::NoPeerAccess {
                from: self.name.clone(),
                to: peer.name.clone(),
            });
        }
        let _current = self.make_current()?;
        // SAFETY: both contexts are retained.
        match unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            result => check("cuCtxEnablePeerAccess", result),
        }
    }

    /// Lets all `ranks` access the pool that the library's matrices on `device`, this GPU, are
    /// from. Peer access of contexts does not cover pools.
    pub(super) fn share_pool(&self, device: &Device, ranks: &[Rank]) -> Result<(), Error> {
        let probe = device.zeros::<f32>(1, 1)?;
        let address = probe.view().address();
        let _current = self.make_current()?;
        let mut pool: sys::CUmemoryPool = ptr::null_mut();
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        // SAFETY: the attribute is a handle, which outlives the call.
        check("cuPointerGetAttribute", unsafe {
            sys::cuPointerGetAttribute((&raw mut pool).cast(), attribute, address)
        })?;
        if pool.is_null() {
            // The device has no pools; the matrix is from `cuMemAlloc`.
            return Ok(());
        }
        let mut peers: Vec<CUdevice> = ranks.iter().map(Rank::device).collect();
        peers.sort_unstable();
        peers.dedup();
        let access = peers.into_iter().filter(|&peer| peer != self.device);
        let access: Vec<_> = (access)
            .map(|id| sys::CUmemAccessDesc {
                location: sys::CUmemLocation {
                    type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                    id,
                },
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            })
            .collect();
        if access.is_empty() {
            return Ok(());
        }
        // SAFETY: the pool lives as long as `device`, and the descriptions outlive the call.
        check("cuMemPoolSetAccess", unsafe {
            sys::cuMemPoolSetAccess(pool, access.as_ptr(), access.len())
        })
    }

    /// Whether the library's stream captures a graph.
    pub(crate) fn captures(&self) -> Result<bool, Error> {
        let none = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as u32;
        let mut status = none;
        let _current = self.make_current()?;
        // SAFETY: the stream exists, and the status, an integer of this size, outlives the call.
        check("cuStreamIsCapturing", unsafe {
            sys::cuStreamIsCapturing(self.compute, (&raw mut status).cast())
        })?;
        Ok(status != none)
    }

    /// Waits until all streams have finished, or have failed.
    pub(crate) fn finish(&self) {
        let _current = self.make_current();
        for stream in [self.compute, self.aside, self.copy, self.local] {
            // SAFETY: the stream exists.
            unsafe { sys::cuStreamSynchronize(stream) };
        }
    }

    /// Enqueues a copy in `queue`. Each end may be on this GPU, or what this process has opened of
    /// another one.
    ///
    /// # Safety
    /// Both are live until the copy is done, and nothing writes to them meanwhile.
    pub(crate) unsafe fn copy(
        &self,
        queue: Queue,
        from: (u64, Lines),
        to: (u64, Lines),
    ) -> Result<(), Error> {
        let (Lines { bytes, count, .. }, stream) = (from.1, self.stream(queue));
        assert!(
            (bytes, count) == (to.1.bytes, to.1.count),
            "both ends of a copy have the same lines"
        );
        if count == 0 || bytes == 0 {
            return Ok(());
        }
        let _current = self.make_current()?;
        if from.1.is_dense() && to.1.is_dense() {
            // SAFETY: the caller's duty.
            let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes * count, stream) };
            return check("cuMemcpyDtoDAsync", result);
        }
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: from.0,
            srcArray: ptr::null_mut(),
            srcPitch: from.1.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: to.0,
            dstArray: ptr::null_mut(),
            dstPitch: to.1.pitch,
            WidthInBytes: bytes,
            Height: count,
        };
        // SAFETY: the caller's duty; the description outlives the call.
        check("cuMemcpy2DAsync", unsafe {
            sys::cuMemcpy2DAsync_v2(&copy, stream)
        })
    }

    /// A new event, which measures no time.
    pub(crate) fn event(&self) -> Result<Event, Error> {
        let _current = self.make_current()?;
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = ptr::null_mut();
        // SAFETY: the handle outlives the call.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&mut event, flags)
        })?;
        Ok(Event(event))
    }

    /// Makes `queue` wait for `event`, of any GPU.
    pub(crate) fn wait(&self, queue: Queue, event: &Event) -> Result<(), Error> {
        let _current = self.make_current()?;
        // SAFETY: the stream and the event exist.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.stream(queue), event.0, 0)
        })
    }

    /// Records `event`, of this GPU, behind all that `queue` has.
    pub(crate) fn record(&self, queue: Queue, event: &Event) -> Result<(), Error> {
        let _current = self.make_current()?;
        // SAFETY: the stream and the event exist, in one context.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(event.0, self.stream(queue))
        })
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if self.context.is_null() {
            return;
        }
        // SAFETY: all were made by `new`, and are given back once. The driver finishes what the
        // stream still has. Nobody could handle a failure.
        unsafe {
            let current = self.make_current();
            for stream in [self.aside, self.copy, self.local] {
                if !stream.is_null() {
                    sys::cuStreamDestroy_v2(stream);
                }
            }
            drop(current);
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

/// See [`Rank::make_current`].
#[must_use]
pub(crate) struct Current {
    found: CUcontext,
}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: the context was current before on this thread.
        unsafe { sys::cuCtxSetCurrent(self.found) };
    }
}

/// An event of the driver.
#[derive(Debug)]
pub(crate) struct Event(CUevent);

// SAFETY: events of the driver may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `Rank::event`, destroyed once; the driver waits for what uses it.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
