//! Launches [`gpu_kernels::probe`]s on a GPU, for the program `emulator-proof`.
//! Feature `probes`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gpu_kernels::problem::GemmParams;
use gpu_kernels::{DType, Form, KernelInfo, TensorMaps, TensorRef};
use tilewise_emulator::semantics::tensor_map::TensorMap;

pub use gpu_kernels::probe::{PROBES, Probe};

use crate::device::{Device, Kind};
use crate::error::Error;
use crate::gpu::backend::LaunchConfig;
use crate::gpu::buffer::DeviceBuffer;
use crate::gpu::opened::Gpu;
use crate::gpu::tensor_map::TensorMapSpec;

/// Whether probes run on `device`.
///
/// # Errors
/// [`Error::NoDevice`] for the CPU, for a GPU that the probes do not support, and if the
/// probes were not built.
pub fn check(device: &Device) -> Result<(), Error> {
    gpu(device).map(drop)
}

/// Loads `kernels` on `device`, as many at once as the host has cores. The driver takes
/// seconds to compile a kernel; launches of loaded kernels do not wait for that.
///
/// # Errors
/// The errors of [`check`], and the first error of a kernel.
pub fn load(device: &Device, kernels: &[KernelInfo]) -> Result<(), Error> {
    let gpu = gpu(device)?;
    let next = AtomicUsize::new(0);
    let load_some = || {
        while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
            gpu.load(kernel, &Form::plain(DType::F32))?;
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let loading: Vec<_> = (0..workers).map(|_| scope.spawn(load_some)).collect();
        let loaded = loading.into_iter().map(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // Wait for all threads before returning the first error.
        loaded.collect::<Vec<_>>().into_iter().collect()
    })
}

/// The GPU, if probes run on it.
fn gpu(device: &Device) -> Result<&Arc<Gpu>, Error> {
    let (ordinal, found) = match device.kind() {
        Kind::Cpu => (0, "the CPU, which runs no PTX".to_owned()),
        Kind::Gpu(gpu) => {
            let (major, minor) = gpu.info().compute_capability;
            let fits = |probe: &Probe| probe.info.arch.runs_on(major, minor);
            let is_built = |probe: &Probe| (gpu.backend().catalog().is_built)(probe.info.entry);
            if !PROBES.iter().all(fits) {
                let found = format!("one of compute capability {major}.{minor}, accepted: 9.0");
                (gpu.info().ordinal, found)
            } else if !PROBES.iter().all(is_built) {
                let found = "no probes in this build, which had no device toolchain";
                (gpu.info().ordinal, found.to_owned())
            } else {
                return Ok(gpu);
            }
        }
    };
    Err(Error::NoDevice { ordinal, found })
}

/// One launch of a probe, the same for a GPU and the emulator.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The probe.
    pub probe: &'static Probe,
    /// Number of CTAs of the one-dimensional grid.
    pub ctas: u32,
    /// The parameters. The launch fills in the addresses.
    pub params: GemmParams,
    /// The bytes of operand A.
    pub a: Vec<u8>,
    /// The bytes of operand B.
    pub b: Vec<u8>,
    /// The bytes of operand C before the launch.
    pub c: Vec<u8>,
    /// The tensor map of operand A, its address counted from the operand's first byte.
    pub a_map: Option<TensorMap>,
    /// The tensor map of operand C, with its address counted likewise.
    pub c_map: Option<TensorMap>,
}

impl Launch {
    /// A launch of the probe with entry point `name`, without operands.
    ///
    /// # Panics
    /// Panics if no probe has that name.
    pub fn new(name: &str, ctas: u32) -> Self {
        let probe = PROBES.iter().find(|probe| probe.info.name == name);
        Launch {
            probe: probe.unwrap_or_else(|| panic!("no probe `{name}`")),
            ctas,
            params: GemmParams::NONE,
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            a_map: None,
            c_map: None,
        }
    }

    /// Runs the launch on `device`. Returns the bytes of C afterwards.
    ///
    /// # Errors
    /// The errors of [`check`], and errors of the driver.
    pub fn run(&self, device: &Device) -> Result<Vec<u8>, Error> {
        let gpu = gpu(device)?;
        let _current = gpu.make_current()?;
        let operand = |bytes: &[u8]| {
            let buffer = DeviceBuffer::zeroed(gpu, bytes.len())?;
            if !bytes.is_empty() {
                buffer.all().write(0, bytes)?;
            }
            Ok::<_, Error>(buffer)
        };
        let (a, b, c) = (operand(&self.a)?, operand(&self.b)?, operand(&self.c)?);
        let mut maps = TensorMaps::NONE;
        for (index, operand, map, address) in [
            (0, crate::Operand::A, self.a_map, a.address()),
            (2, crate::Operand::C, self.c_map, c.address()),
        ] {
            if let Some(map) = map {
                let spec = TensorMapSpec {
                    dtype: map.dtype.into(),
                    dims: map.dims,
                    pitch_bytes: map.pitch_bytes,
                    planes: None,
                    box_dims: map.box_dims,
                    swizzle_bytes: map.swizzle.span_bytes(),
                };
                let encoded = gpu
                    .backend()
                    .encode(operand, &spec, address + map.address)?;
                maps.0[index] = encoded.words();
            }
        }
        let params = self.placed([a.address(), b.address(), c.address()]);
        let function = gpu.load(&self.probe.info, &params.form)?;
        let config = LaunchConfig {
            ctas: (self.ctas, 1),
            overlaps: false,
        };
        // SAFETY: the operands are allocated, and outlive the read below, which waits.
        unsafe { (gpu.backend()).launch(None, &function, config, &params, &maps)? };
        let mut result = vec![0; self.c.len()];
        c.all().read(0, &mut result)?;
        Ok(result)
    }

    /// The parameters with the operands at these addresses.
    pub fn placed(&self, [a, b, c]: [u64; 3]) -> GemmParams {
        let at = |operand: TensorRef, address| TensorRef { address, ..operand };
        GemmParams {
            a: at(self.params.a, a),
            b: at(self.params.b, b),
            c: at(self.params.c, c),
            ..self.params
        }
    }
}
