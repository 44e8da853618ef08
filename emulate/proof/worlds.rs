//! The two worlds: a GPU and the emulator. Neither may keep the program waiting.

use std::cell::RefCell;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gpu_kernels::KernelInfo;
use gpu_kernels::entry::KERNELS;
use tilewise::Device;
use tilewise::emulator::EmulatedGpu;
use tilewise::probe::{self, Launch, PROBES};
use tilewise::select::Catalog;

/// The longest that one launch may take. They take milliseconds on a GPU, and seconds
/// in the emulator.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The GPU and the emulator, in which launches run.
pub struct Worlds {
    /// A GPU, or the CPU for the emulator alone.
    pub device: Device,
    /// Random products to compare.
    pub problems: usize,
    /// The launch in which the GPU failed or hung; the GPU runs nothing after that.
    lost_in: RefCell<Option<String>>,
}

impl Worlds {
    pub fn new(device: &Device, problems: usize) -> Self {
        Worlds {
            device: device.clone(),
            problems,
            lost_in: RefCell::new(None),
        }
    }

    /// Makes the driver compile the probes, and with `products` the kernels, before they
    /// are launched: all at once, and outside of the time limit of launches.
    pub fn load(&self, products: bool) -> Result<(), tilewise::Error> {
        let Some(gpu) = self.device.gpu_info() else {
            return Ok(());
        };
        let (major, minor) = gpu.compute_capability;
        let catalog = Catalog::embedded();
        let runs = |kernel: &&KernelInfo| {
            kernel.arch.runs_on(major, minor) && (catalog.is_built)(kernel.entry)
        };
        let mut kernels: Vec<KernelInfo> = PROBES.iter().map(|probe| probe.info).collect();
        if products {
            kernels.extend(KERNELS.iter().filter(runs));
        }
        eprintln!("loading {} kernels", kernels.len());
        probe::load(&self.device, &kernels)
    }

    /// Runs `launch`, which reports call `name`, on the GPU and in the emulator. Returns
    /// the contents of operand C afterwards, from each.
    pub fn run(&self, name: &str, launch: &Launch) -> Result<(Vec<u8>, Vec<u8>), String> {
        eprintln!("{name}");
        let on_cpu = launch.clone();
        let emulated = within_limit(&format!("emulator, {name}"), move || emulate(&on_cpu))??;
        if !self.device.is_gpu() {
            return Ok((emulated.clone(), emulated));
        }
        let launch = launch.clone();
        let gpu = self.on_gpu(name, move |device| launch.run(device))?;
        let gpu = gpu.map_err(|error| {
            // It stays with the context.
            if matches!(error, tilewise::Error::Driver { .. }) {
                self.lost_in.replace(Some(name.to_owned()));
            }
            error.to_string()
        })?;
        Ok((gpu, emulated))
    }

    /// Runs `work`, which reports call `name`, on the GPU, unless the GPU is lost.
    pub fn on_gpu<R: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Device) -> R + Send + 'static,
    ) -> Result<R, String> {
        if let Some(launch) = &*self.lost_in.borrow() {
            return Err(format!("not run: the GPU was lost in `{launch}`"));
        }
        let device = self.device.clone();
        within_limit(&format!("GPU, {name}"), move || work(&device)).inspect_err(|_| {
            self.lost_in.replace(Some(name.to_owned()));
        })
    }
}

/// The result of `work`, or an error if `work` has not returned in time. `work` runs in its
/// own thread, which is then abandoned.
pub fn within_limit<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, String> {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(LIMIT).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => format!("{name}: not finished in {LIMIT:?}"),
        mpsc::RecvTimeoutError::Disconnected => format!("{name}: panicked"),
    })
}

/// The contents of operand C after `launch` in the emulator, or the emulator's report.
pub fn emulate(launch: &Launch) -> Result<Vec<u8>, String> {
    let device = Device::emulated(EmulatedGpu {
        // The parameters of a probe are no shape of a product, so that the library's estimate
        // of the time means nothing.
        time_limit: Duration::MAX,
        ..EmulatedGpu::default()
    });
    device.and_then(|device| launch.run(&device)).map_err(text)
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}
