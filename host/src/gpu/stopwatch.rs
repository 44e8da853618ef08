//! Timing of work on a GPU, once with a cold L2 cache, or many times back to back.
//!
//! The method is the same as in Triton's `do_bench`. First, the work runs once and is not timed, so
//! that the instruction caches have its code: otherwise that would depend on what ran before. Next,
//! the L2 cache is overwritten, so that the work finds its operands in DRAM. Then two events on
//! the stream take the time on the GPU's own clock. The overwrite also keeps the GPU busy
//! while the host enqueues the work, so that no gap is timed.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use super::backend::Timer;
use super::buffer::DeviceBuffer;
use super::opened::Gpu;
use super::wait;
use crate::error::Error;

/// Times work on the stream of one GPU.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    /// The start and stop events.
    timer: ManuallyDrop<Box<dyn Timer>>,
    /// Writing this buffer overwrites L2; it is twice as large as L2.
    overwrite: DeviceBuffer,
    // This field is dropped last, because dropping the others needs the context.
    gpu: Arc<Gpu>,
}

impl Stopwatch {
    /// Allocates two events, and twice the bytes of the L2 cache.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self, Error> {
        let overwrite = DeviceBuffer::zeroed(gpu, 2 * gpu.info().l2_bytes as usize)?;
        Ok(Stopwatch {
            timer: ManuallyDrop::new(gpu.backend().timer()?),
            overwrite,
            gpu: gpu.clone(),
        })
    }

    /// The milliseconds that the GPU takes for the work that `work` enqueues, of which this
    /// enqueues one ahead and then `repeats`, back to back, which are timed. Waits for the GPU, and
    /// returns [`Error::TimedOut`] if all of that takes longer than `limit`.
    pub(crate) fn time(
        &self,
        limit: Duration,
        repeats: u32,
        mut work: impl FnMut() -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let _current = self.gpu.make_current()?;
        work()?;
        self.overwrite.enqueue_zeros()?;
        self.timer.start()?;
        for _ in 0..repeats {
            work()?;
        }
        self.timer.stop()?;
        wait::within(&self.gpu, limit)?;
        Ok(f64::from(self.timer.milliseconds()?) / f64::from(repeats.max(1)))
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        // Destroying the events of an overdue GPU might wait for it, so they are leaked.
        if let Ok(_current) = self.gpu.make_current() {
            // SAFETY: it is dropped here, and this value is gone.
            unsafe { ManuallyDrop::drop(&mut self.timer) };
        }
    }
}
