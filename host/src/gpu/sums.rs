//! [`Sums`]: the stream-K workspace, in which CTAs leave the accumulators of shared tiles.

use std::sync::Arc;

use gpu_kernels::KernelInfo;

use super::backend::{Backend, Streams};
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use super::run_order::Turn;
use crate::error::Error;

/// Bytes of the flag at the end of each CTA's part. The flag has a cache line of its own.
const FLAG_BYTES: usize = 128;

/// A part for each CTA: room for its accumulators, and at the end a flag. The flags must be
/// 0 before the first launch, and each launch leaves them at 0. The rest may be undefined.
#[derive(Debug)]
pub(crate) struct Sums {
    buffer: DeviceBuffer,
    /// Bytes of each part.
    each: usize,
    /// Whether the flags are 0 before each further launch.
    is_clear: bool,
}

impl Sums {
    /// Allocates so many parts for `kernel`.
    pub(crate) fn new(gpu: &Arc<Gpu>, kernel: &KernelInfo, parts: u32) -> Result<Self, Error> {
        let each = kernel.stream_k_bytes as usize;
        Ok(Sums {
            buffer: DeviceBuffer::undefined(gpu, parts as usize * each, Streams::Any)?,
            each,
            is_clear: false,
        })
    }

    /// Enqueues zeros for the flags, unless that has happened. It happens on the stream of
    /// the first launch, so that the launch need not wait for another stream. A capture
    /// does not run now, so a captured launch takes the zeros into its graph. The context is
    /// current.
    pub(crate) fn clear_flags(&mut self, backend: &dyn Backend, turn: Turn) -> Result<(), Error> {
        if self.is_clear {
            return Ok(());
        }
        let (address, bytes) = (self.buffer.address(), self.buffer.bytes());
        // SAFETY: the buffer has that many bytes; the caller's stream is valid.
        unsafe { backend.zero(turn.stream(), address, bytes)? };
        for part in (0..bytes).step_by(self.each) {
            self.buffer.leave_undefined(part, self.each - FLAG_BYTES);
        }
        self.is_clear = !turn.is_captured();
        Ok(())
    }

    /// Address of the first part.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Bytes of all parts.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.bytes()
    }
}
