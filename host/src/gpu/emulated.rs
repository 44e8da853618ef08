//! The [`Backend`] of an emulated GPU: memory, tensor maps and launches of the emulator.
//!
//! All enqueued work is done when the call returns.

pub(crate) mod estimate;
pub(crate) mod options;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpu_kernels::entry::{ENTRIES, FUNCTIONS, KERNELS};
use gpu_kernels::problem::MapAddress;
use gpu_kernels::{Form, GemmParams, KernelInfo, Schedule, TensorMaps};
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::tensor_map::{Planes, TensorMap};
use tilewise_emulator::{self as machine, Counts, Grid, Memory, NoSuchMemory, Options};

use super::backend::{
    Allocation, Backend, Event, Function, FunctionHandle, LaunchConfig, Lines, Pattern, Streams,
    Timer,
};
use super::current::Current;
use super::opened::{Gpu, GpuInfo};
use super::placement::Placement;
use super::stream::CudaStream;
use super::tensor_map::{EncodedMap, TensorMapSpec};
use crate::error::Error;
use crate::operand::Operand;
use crate::problem::Catalog;
use estimate::time;
use options::EmulatedGpu;

/// `CUDA_ERROR_INVALID_VALUE`, which the driver returns for maps that it cannot encode.
const INVALID_VALUE: u32 = 1;

/// Highest SM clock of an H200, kHz (data sheet).
const CLOCK_KHZ: u32 = 1_980_000;

/// An emulated GPU.
struct Emulated {
    gpu: EmulatedGpu,
    state: Mutex<State>,
    /// Number of executed instructions, which serves as the time.
    clock: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    memory: Memory,
    /// The counts of the last launch.
    counts: Option<Counts>,
}

/// Opens an emulated GPU; every call opens a new one.
pub(crate) fn open(gpu: EmulatedGpu) -> Result<Arc<Gpu>, Error> {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    gpu.check()?;
    let info = GpuInfo {
        name: gpu.name.clone(),
        ordinal: OPENED.fetch_add(1, Ordering::Relaxed),
        compute_capability: gpu.compute_capability,
        sms: gpu.sms,
        l2_bytes: gpu.l2_bytes,
        memory_bytes: gpu.memory_bytes,
        shared_bytes_per_cta: gpu.shared_bytes_per_cta,
        max_clock_khz: CLOCK_KHZ,
        driver_version: (0, 0),
    };
    let emulated = Emulated {
        gpu,
        state: Mutex::default(),
        clock: Arc::default(),
    };
    Ok(Gpu::new(Box::new(emulated), info))
}

impl Emulated {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of the emulator for a launch of `clusters`.
    fn options(&self, clusters: u32, is_stream_k: bool, overlaps: bool) -> Options {
        let EmulatedGpu { slots, .. } = self.gpu;
        Options {
            checks: self.gpu.checks,
            seed: self.gpu.seed,
            slots: if is_stream_k {
                slots.max(clusters)
            } else {
                slots
            },
            workers: self.gpu.workers(is_stream_k),
            overlaps,
            trace: self.gpu.trace,
            faults: self.gpu.faults.clone(),
        }
    }
}

/// A function that a thread runs.
type Body = unsafe fn(&GemmParams, MapAddress);

/// The function that a thread of `kernel` runs.
fn body_of(kernel: &KernelInfo) -> Option<Body> {
    let named = |other: &KernelInfo| other.entry == kernel.entry;
    if let Some(place) = ENTRIES.iter().position(named) {
        return Some(FUNCTIONS[place]);
    }
    #[cfg(feature = "probes")]
    if let Some(probe) = gpu_kernels::probe::PROBES
        .iter()
        .find(|probe| named(&probe.info))
    {
        return Some(probe.run);
    }
    None
}

impl Backend for Emulated {
    fn catalog(&self) -> Catalog<'static> {
        Catalog {
            kernels: KERNELS,
            is_built: |_| true,
        }
    }

    fn make_current(&self) -> Result<Current, Error> {
        Ok(Current::UNCHANGED)
    }

    fn allocate(&self, bytes: usize, _: Streams) -> Result<Option<Allocation>, Error> {
        let mut state = self.state();
        let left = self.gpu.memory_bytes - state.memory.allocated_bytes();
        if bytes as u64 > left {
            return Ok(None);
        }
        let address = state.memory.try_allocate(bytes as u64);
        Ok(address.map(|address| Allocation {
            address,
            is_ordered: false,
        }))
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        Ok(self.gpu.memory_bytes - self.state().memory.allocated_bytes())
    }

    unsafe fn free(&self, allocation: Allocation) {
        self.state().memory.free(allocation.address);
    }

    unsafe fn zero(&self, _: Option<CudaStream>, address: u64, bytes: usize) -> Result<(), Error> {
        self.state()
            .memory
            .fill(address, bytes as u64, 0)
            .map_err(outside)
    }

    unsafe fn fill(&self, lines: Lines, value: Pattern) -> Result<(), Error> {
        let line = match value {
            Pattern::Two(bits) => bits.to_ne_bytes().repeat(lines.length),
            Pattern::Four(bits) => bits.to_ne_bytes().repeat(lines.length),
        };
        let state = self.state();
        for index in 0..lines.count {
            let address = lines.address + (index * lines.pitch_bytes) as u64;
            state.memory.write(address, &line).map_err(outside)?;
        }
        Ok(())
    }

    unsafe fn write(&self, address: u64, from: &[u8]) -> Result<(), Error> {
        self.state().memory.write(address, from).map_err(outside)
    }

    unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len() as u64;
        let found = self.state().memory.read(address, bytes).map_err(outside)?;
        to.copy_from_slice(&found);
        Ok(())
    }

    fn leave_undefined(&self, address: u64, bytes: u64) {
        self.state().memory.leave_undefined(address, bytes);
    }

    fn encode(
        &self,
        operand: Operand,
        spec: &TensorMapSpec,
        address: u64,
    ) -> Result<EncodedMap, Error> {
        let map = TensorMap {
            address,
            dtype: spec.dtype.into(),
            dims: spec.dims,
            pitch_bytes: spec.pitch_bytes,
            planes: spec.planes.map(|planes| Planes {
                count: planes.count,
                pitch_bytes: planes.pitch_bytes,
            }),
            box_dims: spec.box_dims,
            swizzle: match spec.swizzle_bytes {
                128 => Swizzle::Bytes128,
                64 => Swizzle::Bytes64,
                32 => Swizzle::Bytes32,
                _ => Swizzle::None,
            },
        };
        map.encode()
            .map(|bytes| EncodedMap(bytemuck::cast(bytes)))
            .map_err(|error| Error::TensorMap {
                operand,
                map: format!("{spec:?} at {address:#x}: {error}"),
                code: INVALID_VALUE,
            })
    }

    fn load(&self, kernel: &KernelInfo, _: &Form) -> Result<Function, Error> {
        let body = body_of(kernel).ok_or_else(|| Error::CannotEmulate {
            kernel: kernel.name,
            reason: "no entry point has this name".into(),
        })?;
        Ok(Function {
            kernel: *kernel,
            ctas_per_sm: self.gpu.ctas_per_sm.unwrap_or(kernel.ctas_per_sm),
            clusters_at_once: None,
            handle: FunctionHandle(body as *mut c_void),
        })
    }

    unsafe fn launch(
        &self,
        _: Option<CudaStream>,
        function: &Function,
        config: LaunchConfig,
        params: &GemmParams,
        maps: &TensorMaps,
    ) -> Result<(), Error> {
        let kernel = &function.kernel;
        let (x, y) = config.ctas;
        let is_stream_k = kernel.stream_k_bytes > 0 && params.schedule == Schedule::StreamK;
        let clusters = x.saturating_mul(y) / kernel.cluster.ctas();
        let options = self.options(clusters, is_stream_k, config.overlaps);
        let shape = (params.m, params.n, params.k);
        let estimate = time(kernel, shape, params.batches, options.workers);
        if estimate > self.gpu.time_limit {
            return Err(Error::EmulationTooLong {
                kernel: kernel.name,
                estimate,
                limit: self.gpu.time_limit,
            });
        }
        // SAFETY: `load` made the handle of such a function.
        let run = unsafe { std::mem::transmute::<*mut c_void, Body>(function.handle.0) };
        let ended = |ctas| {
            if let Some(progress) = &self.gpu.progress {
                progress.ended(ctas);
            }
        };
        let mut state = self.state();
        let map_address = place(&mut state.memory, maps)?;
        let maps = MapAddress::new(map_address);
        state.counts = None;
        // SAFETY: the launch has the configuration of the kernel's constants. The parameters
        // describe emulated allocations, in which every access is looked up.
        let body = || unsafe { run(params, maps) };
        let grid = Grid {
            kernel: kernel.name,
            ctas: config.ctas,
            threads: kernel.threads,
            ctas_per_cluster: kernel.cluster.ctas(),
            shared_bytes: kernel.shared_bytes,
            body: &body,
        };
        let launched = machine::launch_watched(&mut state.memory, &grid, &options, &ended);
        state.memory.free(map_address);
        let counts = launched.map_err(|error| failure(kernel.name, error))?;
        self.clock
            .fetch_add(counts.instructions(), Ordering::Relaxed);
        state.counts = Some(counts);
        Ok(())
    }

    fn placement(&self) -> Placement {
        Placement::reversed()
    }

    fn event(&self) -> Result<Box<dyn Event>, Error> {
        Ok(Box::new(Done))
    }

    fn timer(&self) -> Result<Box<dyn Timer>, Error> {
        Ok(Box::new(InstructionTimer {
            clock: self.clock.clone(),
            start: AtomicU64::new(0),
            stop: AtomicU64::new(0),
        }))
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn is_done(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn capture(&self, _: Option<CudaStream>) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn stream_number(&self, _: CudaStream) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn stream(&self) -> Option<CudaStream> {
        None
    }

    fn is_emulated(&self) -> bool {
        true
    }

    fn counts(&self) -> Option<Counts> {
        self.state().counts.clone()
    }
}

/// Copies the tensor maps of a launch, which a GPU reads from its parameters, to emulated
/// memory.
fn place(memory: &mut Memory, maps: &TensorMaps) -> Result<u64, Error> {
    let bytes: Vec<u8> = (maps.0.as_flattened().iter())
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let address = memory.allocate(bytes.len() as u64);
    memory.write(address, &bytes).map_err(outside)?;
    Ok(address)
}

/// The library's error for an error of the emulator.
fn failure(kernel: &'static str, error: machine::Error) -> Error {
    match error {
        machine::Error::Broken(reports) => Error::KernelBroken { reports },
        other => Error::CannotEmulate {
            kernel,
            reason: other.to_string(),
        },
    }
}

/// The error for an access by the library itself outside emulated memory.
fn outside(error: NoSuchMemory) -> Error {
    Error::Driver {
        call: "the emulated memory",
        code: INVALID_VALUE,
        name: error.to_string(),
    }
}

/// An event after work that was done when its call returned.
#[derive(Debug)]
struct Done;

impl Event for Done {
    fn record(&self, _: Option<CudaStream>) -> Result<(), Error> {
        Ok(())
    }

    fn make_wait(&self, _: Option<CudaStream>) -> Result<(), Error> {
        Ok(())
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A timer that reads the clock of executed instructions, so that times are repeatable.
#[derive(Debug)]
struct InstructionTimer {
    clock: Arc<AtomicU64>,
    start: AtomicU64,
    stop: AtomicU64,
}

impl InstructionTimer {
    fn now_to(&self, reading: &AtomicU64) {
        reading.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Timer for InstructionTimer {
    fn start(&self) -> Result<(), Error> {
        self.now_to(&self.start);
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        self.now_to(&self.stop);
        Ok(())
    }

    /// Each instruction counts as a nanosecond.
    fn milliseconds(&self) -> Result<f32, Error> {
        let [start, stop] =
            [&self.start, &self.stop].map(|reading| reading.load(Ordering::Relaxed));
        Ok((stop - start) as f32 * 1e-6)
    }
}
