//! The properties of an emulated GPU, and the options of its emulation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tilewise_emulator::Fault;

use crate::error::Error;
use crate::l2::gpu::GPUS;

/// Most SMs of an emulated GPU, several times as many as the largest GPU has.
const MAX_SMS: u32 = 1024;

/// A GPU to emulate; the default is an H200.
///
/// ```
/// use tilewise::emulator::EmulatedGpu;
///
/// // This GPU selects kernels of compute capability 8.0.
/// let ampere = EmulatedGpu {
///     name: "emulated A100".into(),
///     compute_capability: (8, 0),
///     sms: 108,
///     shared_bytes_per_cta: 163 << 10,
///     l2_bytes: 40 << 20,
///     ..EmulatedGpu::default()
/// };
/// # assert_eq!(ampere.seed, 0);
/// ```
#[derive(Clone, Debug)]
pub struct EmulatedGpu {
    /// Name, which error messages contain.
    pub name: String,
    /// Compute capability, (major, minor): decides which kernels run.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors, 1 to 1024.
    pub sms: u32,
    /// CTAs that an SM holds at once. `None` means as many as the kernel's launch bounds
    /// promise.
    pub ctas_per_sm: Option<u32>,
    /// Most shared memory of a CTA, bytes.
    pub shared_bytes_per_cta: u32,
    /// Capacity of L2, bytes. Only the selection uses it; the emulator has no cache.
    pub l2_bytes: u64,
    /// Device memory, bytes. Each byte that is used takes nine bytes of host memory: one for
    /// the byte itself, and eight that record which threads have accessed it.
    pub memory_bytes: u64,
    /// A launch that would take longer than this, by [`Estimate`](super::estimate::Estimate), is
    /// refused: [`Error::EmulationTooLong`].
    pub time_limit: Duration,
    /// Whether accesses to memory are checked. Deadlocks and divergence are found in any
    /// case.
    pub checks: bool,
    /// Selects one of the possible orders of events: 0 selects a simple order, and any other
    /// number selects a random order that is the same each time.
    pub seed: u64,
    /// Number of clusters that are emulated at once. Under stream-K, all clusters are,
    /// because its CTAs wait for each other.
    pub slots: u32,
    /// Number of host threads. `None` means one per core; under stream-K it means a single
    /// thread, so that a run with the same seed is repeatable.
    pub workers: Option<usize>,
    /// Whether [`Counts`](tilewise_emulator::Counts) records each request to L2.
    pub trace: bool,
    /// Faults to insert into the kernels, for tests which show that the emulator finds them.
    pub faults: Vec<Fault>,
    /// A function that is called when CTAs have ended.
    pub progress: Option<Progress>,
}

impl Default for EmulatedGpu {
    /// An H200 SXM with a gigabyte of memory (data sheet; CUDA C++ programming guide,
    /// "Technical specifications per compute capability").
    fn default() -> Self {
        let h200 = &GPUS[0];
        EmulatedGpu {
            name: "emulated H200".into(),
            compute_capability: h200.compute_capability,
            sms: h200.sms,
            ctas_per_sm: None,
            shared_bytes_per_cta: 227 << 10,
            l2_bytes: h200.l2_bytes,
            memory_bytes: 1 << 30,
            time_limit: Duration::from_secs(3600),
            checks: true,
            seed: 0,
            slots: 4,
            workers: None,
            trace: false,
            faults: Vec::new(),
            progress: None,
        }
    }
}

impl EmulatedGpu {
    /// Returns an error if a field is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(1..=MAX_SMS).contains(&self.sms) {
            return Err(Error::InvalidEmulatedGpu {
                field: "sms",
                value: self.sms.into(),
                accepted: "1 to 1024",
            });
        }
        if self.ctas_per_sm == Some(0) {
            return Err(Error::InvalidEmulatedGpu {
                field: "ctas_per_sm",
                value: 0,
                accepted: "None, or 1 and more",
            });
        }
        Ok(())
    }

    /// Number of host threads for a launch.
    pub(crate) fn workers(&self, is_stream_k: bool) -> usize {
        let default = || match is_stream_k {
            true => 1,
            false => std::thread::available_parallelism().map_or(1, usize::from),
        };
        self.workers.unwrap_or_else(default)
    }
}

/// A function that is called with the number of CTAs that have ended, whenever some have.
/// It must not call the device, because that would wait for the launch.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(u32) + Send + Sync>);

impl Progress {
    /// Calls `ended` with the number of CTAs that have ended since the last call.
    pub fn new(ended: impl Fn(u32) + Send + Sync + 'static) -> Progress {
        Progress(Arc::new(ended))
    }

    pub(crate) fn ended(&self, ctas: u32) {
        (self.0)(ctas);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
