//! Which device a command runs on, and how records name it.

use crate::cli::DeviceChoice;
use crate::error::Error;
use crate::peak::Chip;
use tilewise::Device;

/// The device that was asked for; the best there is when none was.
///
/// # Errors
/// A GPU was asked for and there is none.
pub fn open(choice: Option<DeviceChoice>) -> Result<Device, Error> {
    Ok(match choice {
        None => Device::best(),
        Some(DeviceChoice::Cpu) => Device::cpu(),
        Some(DeviceChoice::Gpu) => Device::gpu(0)?,
    })
}

/// What a record says of its machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Name of the GPU or CPU.
    pub device: String,
    /// CUDA version of the driver; empty on a CPU.
    pub driver: String,
    /// Such as `9.0`; empty on a CPU.
    pub compute_capability: String,
    /// The chip, for its peak; `None` on a CPU.
    pub chip: Option<Chip>,
    /// Which device toolchain built the kernels.
    pub toolchain: String,
}

impl Machine {
    /// Asks the device and the library.
    pub fn of(device: &Device) -> Self {
        let toolchain = tilewise::build_info()
            .toolchain
            .unwrap_or("none: built without device code")
            .to_owned();
        let Some(info) = device.gpu_info() else {
            return Machine {
                device: cpu_name(),
                toolchain,
                ..Machine::default()
            };
        };
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        Machine {
            device: info.name.clone(),
            driver: version(info.driver_version),
            compute_capability: version(info.compute_capability),
            chip: Some(Chip {
                compute_capability: info.compute_capability,
                sms: info.sms,
                max_clock_khz: info.max_clock_khz,
            }),
            toolchain,
        }
    }
}

/// The processor's name where Linux tells it.
fn cpu_name() -> String {
    let described = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = described
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("CPU", |(_, name)| name);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {threads} threads")
}
