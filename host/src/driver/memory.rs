//! Memory on a GPU.

use std::sync::Arc;

use cust_raw::cudaError_enum as Code;

use super::check;
use super::gpu::Gpu;
use crate::error::Error;

/// Bytes in the memory of one GPU, freed on drop.
#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    gpu: Arc<Gpu>,
    /// 0 for a buffer without bytes. The driver aligns others to 256 bytes.
    address: u64,
    bytes: usize,
}

impl DeviceBuffer {
    /// `bytes` zeros.
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self, Error> {
        gpu.make_current()?;
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: `address` outlives the call.
            let result = unsafe { cust_raw::cuMemAlloc_v2(&mut address, bytes) };
            if result == Code::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(out_of_memory(gpu, bytes));
            }
            check("cuMemAlloc", result)?;
        }
        let buffer = DeviceBuffer {
            gpu: gpu.clone(),
            address,
            bytes,
        };
        buffer.enqueue_zeros()?;
        Ok(buffer)
    }

    /// Overwrites all of it with zeros, after all work enqueued so far. The
    /// context is current.
    pub(crate) fn enqueue_zeros(&self) -> Result<(), Error> {
        if self.bytes == 0 {
            return Ok(());
        }
        let stream = self.gpu.stream().as_inner();
        // SAFETY: the buffer has that many bytes.
        check("cuMemsetD8Async", unsafe {
            cust_raw::cuMemsetD8Async(self.address, 0, self.bytes, stream)
        })
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Copies bytes from `offset` on into `to`, after all work enqueued so far.
    pub(crate) fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.check_range(offset, to.len());
        self.gpu.make_current()?;
        // SAFETY: both ranges exist; `to` is not touched before the
        // synchronisation below.
        check("cuMemcpyDtoHAsync", unsafe {
            cust_raw::cuMemcpyDtoHAsync_v2(
                to.as_mut_ptr().cast(),
                self.address + offset as u64,
                to.len(),
                self.gpu.stream().as_inner(),
            )
        })?;
        self.gpu.synchronize()
    }

    /// Copies `from` to the bytes from `offset` on, after all work enqueued so
    /// far, and waits.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.gpu.make_current()?;
        self.enqueue_write(offset, from)?;
        self.gpu.synchronize()
    }

    /// Copies `from` to the bytes from `offset` on, after all work enqueued so
    /// far. The driver has read `from` when this returns: pageable memory is
    /// staged (CUDA driver API, "API synchronization behavior"). The context
    /// is current.
    pub(crate) fn enqueue_write(&self, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.check_range(offset, from.len());
        // SAFETY: both ranges exist.
        check("cuMemcpyHtoDAsync", unsafe {
            cust_raw::cuMemcpyHtoDAsync_v2(
                self.address + offset as u64,
                from.as_ptr().cast(),
                from.len(),
                self.gpu.stream().as_inner(),
            )
        })
    }

    fn check_range(&self, offset: usize, len: usize) {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{len} bytes at {offset} of {}",
            self.bytes
        );
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        // Enqueued work may still use the memory. Waiting fails when the
        // context is broken, the GPU is overdue, or the stream records a graph
        // that may use the memory later: then it stays allocated.
        if self.gpu.synchronize().is_ok() {
            // SAFETY: allocated by `zeroed`, and nothing is under way.
            unsafe { cust_raw::cuMemFree_v2(self.address) };
        }
    }
}

/// The error for `wanted` bytes that the GPU refused; its context is current.
fn out_of_memory(gpu: &Gpu, wanted: usize) -> Error {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both outlive the call.
    let result = unsafe { cust_raw::cuMemGetInfo_v2(&mut free, &mut total) };
    match check("cuMemGetInfo", result) {
        Err(error) => error,
        Ok(()) => Error::OutOfMemory {
            device: gpu.to_string(),
            wanted: wanted as u64,
            free: free as u64,
        },
    }
}
