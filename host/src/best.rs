//! The device that a program gets if it does not choose one.

use std::io::Write as _;
use std::sync::Once;

use log::LevelFilter;

use crate::device::Device;
use crate::embedded;
use crate::error::Error;

impl Device {
    /// The first GPU that opens and that a kernel was built for, else the CPU. The
    /// environment variable `TILEWISE_DEVICE` overrides this: `cpu` selects the CPU, and
    /// `emulated` (with the feature `emulator`) selects an emulated H200.
    ///
    /// On a machine that has a GPU and cannot use it, the first call says why, in the
    /// program's log or, without a logger, on stderr. [`Device::best_gpu`] returns the
    /// reason.
    pub fn best() -> Device {
        match std::env::var("TILEWISE_DEVICE").as_deref() {
            Ok("cpu") => return Device::cpu(),
            #[cfg(feature = "emulator")]
            Ok("emulated") => {
                let gpu = crate::gpu::emulated::options::EmulatedGpu::default();
                return Device::emulated(gpu).expect("an H200 is in range");
            }
            _ => {}
        }
        Device::best_gpu().unwrap_or_else(|reason| {
            if !matches!(reason, Error::NoDevice { .. }) {
                say_once(&reason);
            }
            Device::cpu()
        })
    }

    /// The first GPU that opens and that a kernel was built for.
    ///
    /// ```
    /// use tilewise::Device;
    ///
    /// match Device::best_gpu() {
    ///     Ok(gpu) => println!("{gpu}"),
    ///     Err(reason) => println!("the CPU, because {reason}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// What is wrong with the first GPU, if no other GPU will do:
    /// [`Error::NoDevice`] where there is no GPU or no driver,
    /// [`Error::NoKernels`] where this build has no kernel for it, or an error of
    /// [`Device::gpu`].
    pub fn best_gpu() -> Result<Device, Error> {
        let first = match usable(0) {
            Ok(device) => return Ok(device),
            Err(reason) => reason,
        };
        let mut others = (1..Device::gpu_count()).filter_map(|ordinal| usable(ordinal).ok());
        others.next().ok_or(first)
    }
}

/// GPU `ordinal`, if a kernel was built for it.
fn usable(ordinal: usize) -> Result<Device, Error> {
    let device = Device::gpu(ordinal)?;
    match device.gpu_info() {
        Some(gpu) if !embedded::runs_on(gpu.compute_capability) => Err(Error::NoKernels {
            device: device.to_string(),
            compute_capability: gpu.compute_capability,
            built: embedded::description(),
        }),
        _ => Ok(device),
    }
}

/// Says once in a process that the CPU computes, and why. A program without a logger would
/// never tell its user, so there it goes to stderr.
fn say_once(reason: &Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        if log::max_level() == LevelFilter::Off {
            // A program may have closed it.
            let _ = writeln!(
                std::io::stderr(),
                "warning: tilewise computes on the CPU: {reason}"
            );
        } else {
            log::warn!("tilewise computes on the CPU: {reason}");
        }
    });
}
