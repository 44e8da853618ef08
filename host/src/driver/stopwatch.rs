//! How long work takes on a GPU that did something else before.
//!
//! As Triton's `do_bench` does: the L2 cache is overwritten first, so that the
//! work finds its operands in DRAM whoever ran before, and two events on the
//! stream take the time on the GPU's own clock. The overwrite also keeps the
//! GPU busy while the host enqueues the work, so that no gap is timed.

use std::sync::Arc;

use cust::event::{Event, EventFlags};

use super::cust_failure;
use super::gpu::Gpu;
use super::memory::DeviceBuffer;
use crate::error::Error;

/// Times work on the stream of one GPU.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    start: Event,
    stop: Event,
    /// What overwrites L2: twice as large.
    overwrite: DeviceBuffer,
    // Last: dropping the others needs the context.
    gpu: Arc<Gpu>,
}

impl Stopwatch {
    /// Allocates two events, and twice the bytes of the L2 cache.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self, Error> {
        let overwrite = DeviceBuffer::zeroed(gpu, 2 * gpu.info().l2_bytes as usize)?;
        let event = || Event::new(EventFlags::DEFAULT).map_err(cust_failure("cuEventCreate"));
        Ok(Stopwatch {
            start: event()?,
            stop: event()?,
            overwrite,
            gpu: gpu.clone(),
        })
    }

    /// Milliseconds that the GPU takes for what `work` enqueues. Waits for it.
    pub(crate) fn time(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
        self.gpu.make_current()?;
        let record = |event: &Event| {
            let stream = self.gpu.stream();
            event.record(stream).map_err(cust_failure("cuEventRecord"))
        };
        self.overwrite.enqueue_zeros()?;
        record(&self.start)?;
        work()?;
        record(&self.stop)?;
        self.stop
            .synchronize()
            .map_err(cust_failure("cuEventSynchronize"))?;
        let elapsed = self.stop.elapsed_time_f32(&self.start);
        let milliseconds = elapsed.map_err(cust_failure("cuEventElapsedTime"))?;
        Ok(milliseconds.into())
    }
}
