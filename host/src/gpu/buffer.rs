//! Memory on a GPU.

use std::sync::Arc;

use super::backend::{Allocation, Lines, Pattern, Streams};
use super::opened::Gpu;
use crate::error::Error;

/// An allocation in the memory of one GPU, which is freed on drop.
#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    gpu: Arc<Gpu>,
    /// `None` for a buffer without bytes.
    allocation: Option<Allocation>,
    bytes: usize,
}

impl DeviceBuffer {
    /// Allocates `bytes` bytes for the library's own stream, and enqueues zeros for them.
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self, Error> {
        let _current = gpu.make_current()?;
        let buffer = DeviceBuffer::undefined(gpu, bytes, Streams::Own)?;
        buffer.enqueue_zeros()?;
        Ok(buffer)
    }

    /// Allocates `bytes` bytes with undefined values for `streams`.
    pub(crate) fn undefined(gpu: &Arc<Gpu>, bytes: usize, streams: Streams) -> Result<Self, Error> {
        let _current = gpu.make_current()?;
        let allocation = match bytes {
            0 => None,
            _ => match gpu.backend().allocate(bytes, streams)? {
                Some(allocation) => Some(allocation),
                None => {
                    return Err(Error::OutOfMemory {
                        device: gpu.to_string(),
                        wanted: bytes as u64,
                        free: gpu.backend().free_bytes()?,
                    });
                }
            },
        };
        let buffer = DeviceBuffer {
            gpu: gpu.clone(),
            allocation,
            bytes,
        };
        buffer.leave_undefined(0, bytes);
        Ok(buffer)
    }

    /// Enqueues zeros for the whole buffer, after all work enqueued so far. The context
    /// is current.
    pub(crate) fn enqueue_zeros(&self) -> Result<(), Error> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the buffer has that many bytes.
        unsafe { self.gpu.backend().zero(None, self.address(), self.bytes) }
    }

    /// Size of the buffer, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device address of the first byte, a multiple of 256; 0 for a buffer without bytes.
    pub(crate) fn address(&self) -> u64 {
        self.allocation.map_or(0, |allocation| allocation.address)
    }

    /// All bytes of the buffer.
    pub(crate) fn all(&self) -> DeviceBytes<'_> {
        DeviceBytes {
            gpu: &self.gpu,
            address: self.address(),
            bytes: self.bytes,
        }
    }

    /// Marks `len` bytes from `offset` on as undefined:
    /// see [`Backend::leave_undefined`](super::backend::Backend::leave_undefined).
    pub(crate) fn leave_undefined(&self, offset: usize, len: usize) {
        self.all().check_range(offset, len);
        let backend = self.gpu.backend();
        backend.leave_undefined(self.address() + offset as u64, len as u64);
    }

    /// Frees `allocation`, which is the buffer's, behind the work that uses it. While the
    /// library's stream records a graph, it stays allocated.
    fn free(&self, allocation: Allocation) -> Result<(), Error> {
        let _current = self.gpu.make_current()?;
        let backend = self.gpu.backend();
        if backend.capture(None)?.is_some() {
            // The graph may use it later, and waiting would break the capture.
            return Ok(());
        }
        if !allocation.is_ordered {
            backend.synchronize()?;
        }
        // SAFETY: allocated by `undefined`, and freed once, after the work that uses it.
        unsafe { backend.free(allocation) };
        Ok(())
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation {
            // This fails when the context is broken or the GPU is overdue. The memory then
            // stays allocated.
            let _ = self.free(allocation);
        }
    }
}

/// Bytes in the memory of one GPU, which stay allocated for `'a`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceBytes<'a> {
    gpu: &'a Arc<Gpu>,
    address: u64,
    bytes: usize,
}

impl<'a> DeviceBytes<'a> {
    /// `bytes` bytes at `address`.
    ///
    /// # Safety
    /// They are allocated, in the context of `gpu`, for `'a`.
    pub(crate) unsafe fn new(gpu: &'a Arc<Gpu>, address: u64, bytes: usize) -> Self {
        DeviceBytes {
            gpu,
            address,
            bytes,
        }
    }

    /// The device address of the first byte.
    pub(crate) fn address(self) -> u64 {
        self.address
    }

    /// Copies bytes from `offset` on into `to`, after all work enqueued so far.
    pub(crate) fn read(self, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.check_range(offset, to.len());
        let _current = self.gpu.make_current()?;
        // SAFETY: both ranges exist; `to` is not used before the
        // synchronisation below.
        unsafe { self.gpu.backend().read(self.address + offset as u64, to)? };
        self.gpu.synchronize()
    }

    /// Copies `from` to the bytes from `offset` on, after all work enqueued so
    /// far, and waits for the copy.
    pub(crate) fn write(self, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.check_range(offset, from.len());
        let _current = self.gpu.make_current()?;
        // SAFETY: both ranges exist.
        unsafe {
            self.gpu
                .backend()
                .write(self.address + offset as u64, from)?
        };
        self.gpu.synchronize()
    }

    /// Fills `count` lines of `length` elements with one value, after all work enqueued
    /// so far, and waits. For each of `offsets`, the first line begins at that byte, and
    /// each further line begins `pitch_bytes` after the previous line.
    pub(crate) fn fill(
        self,
        offsets: impl IntoIterator<Item = usize>,
        (length, count, pitch_bytes): (usize, usize, usize),
        value: Pattern,
    ) -> Result<(), Error> {
        let _current = self.gpu.make_current()?;
        let element = match value {
            Pattern::Two(_) => 2,
            Pattern::Four(_) => 4,
        };
        let span = pitch_bytes * (count - 1) + length * element;
        for offset in offsets {
            self.check_range(offset, span);
            let lines = Lines {
                address: self.address + offset as u64,
                length,
                count,
                pitch_bytes,
            };
            // SAFETY: the lines lie in the buffer.
            unsafe { self.gpu.backend().fill(lines, value)? };
        }
        self.gpu.synchronize()
    }

    fn check_range(self, offset: usize, len: usize) {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{len} bytes at {offset} of {}",
            self.bytes
        );
    }
}
