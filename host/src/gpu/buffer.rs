//! Memory on a GPU.

use std::sync::Arc;

use super::backend::{Lines, Pattern};
use super::opened::Gpu;
use crate::error::Error;

/// An allocation in the memory of one GPU, which is freed on drop.
#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    gpu: Arc<Gpu>,
    /// 0 for a buffer without bytes; else a multiple of 256.
    address: u64,
    bytes: usize,
}

impl DeviceBuffer {
    /// Allocates `bytes` bytes and enqueues zeros for them.
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self, Error> {
        let _current = gpu.make_current()?;
        let buffer = DeviceBuffer::undefined(gpu, bytes)?;
        buffer.enqueue_zeros()?;
        Ok(buffer)
    }

    /// Allocates `bytes` bytes with undefined values.
    pub(crate) fn undefined(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self, Error> {
        let _current = gpu.make_current()?;
        let address = match bytes {
            0 => 0,
            _ => match gpu.backend().allocate(bytes)? {
                Some(address) => address,
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
            address,
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
        unsafe { self.gpu.backend().zero(None, self.address, self.bytes) }
    }

    /// Size of the buffer, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// All bytes of the buffer.
    pub(crate) fn all(&self) -> DeviceBytes<'_> {
        DeviceBytes {
            gpu: &self.gpu,
            address: self.address,
            bytes: self.bytes,
        }
    }

    /// Marks `len` bytes from `offset` on as undefined:
    /// see [`Backend::leave_undefined`](super::backend::Backend::leave_undefined).
    pub(crate) fn leave_undefined(&self, offset: usize, len: usize) {
        self.all().check_range(offset, len);
        let backend = self.gpu.backend();
        backend.leave_undefined(self.address + offset as u64, len as u64);
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        // Enqueued work may still use the memory. Waiting fails when the
        // context is broken, the GPU is overdue, or the stream records a graph
        // that may use the memory later; the memory then stays allocated.
        if self.gpu.synchronize().is_ok() {
            // SAFETY: allocated by `zeroed`, and nothing is under way.
            unsafe { self.gpu.backend().free(self.address) };
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
        let _current = self.gpu.make_current()?;
        self.enqueue_write(offset, from)?;
        self.gpu.synchronize()
    }

    /// Copies `from` to the bytes from `offset` on, after all work enqueued so
    /// far. `from` has been read when this returns. The context is current.
    pub(crate) fn enqueue_write(self, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.check_range(offset, from.len());
        let backend = self.gpu.backend();
        // SAFETY: both ranges exist.
        unsafe { backend.write(self.address + offset as u64, from) }
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
