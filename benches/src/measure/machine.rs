//! Which device a command runs on, and how records name it.

use crate::error::Error;
use crate::measure::peak::Chip;
use clap::ValueEnum;
use tilewise::{BuildInfo, Device};

/// Where to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The first GPU; an error without one.
    Gpu,
    /// The library's CPU device.
    Cpu,
}

/// The device that was asked for; by default the first GPU, else the CPU. Its context stays
/// current on the calling thread, for calls of the driver.
///
/// # Errors
/// A GPU was asked for and there is none.
pub fn open(choice: Option<DeviceChoice>) -> Result<Device, Error> {
    let device = match choice {
        None => Device::best(),
        Some(DeviceChoice::Cpu) => Device::cpu(),
        Some(DeviceChoice::Gpu) => Device::gpu(0)?,
    };
    device.make_current()?;
    Ok(device)
}

/// Opens the first GPU for `what`, a command that reports on rows of an earlier run where there
/// is none.
///
/// # Errors
/// There is no GPU.
pub fn open_gpu_for(what: &str) -> Result<Device, Error> {
    open(Some(DeviceChoice::Gpu)).map_err(|error| {
        Error::Usage(format!(
            "the {what} measures a GPU, and there is none here ({error}); --from CSV reports on \
             rows that were measured before"
        ))
    })
}

/// The machine as records describe it.
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
    /// Which code generator made the kernels, and its version.
    pub toolchain: String,
}

impl Machine {
    /// Asks the device and the library.
    pub fn of(device: &Device) -> Self {
        let toolchain = kernels_by(&tilewise::build_info());
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

/// The code generator and its version: figures of two generators are not those
/// of one program.
fn kernels_by(build: &BuildInfo) -> String {
    match (build.code_generator, build.toolchain) {
        (Some(generator), Some(version)) => format!("{} ({version})", generator.name()),
        _ => "none: built without device code".to_owned(),
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

/// The day in UTC, as `2026-11-21`.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise::CodeGenerator;

    #[test]
    fn the_day_has_four_two_and_two_digits() {
        let digits = today().split('-').map(str::len).collect::<Vec<_>>();
        assert_eq!(digits, [4, 2, 2]);
        assert!(today().as_str() > "2026-01-01");
    }

    #[test]
    fn the_code_generator_is_named() {
        let built = |code_generator, toolchain| {
            kernels_by(&BuildInfo {
                code_generator,
                toolchain,
                ..tilewise::build_info()
            })
        };
        assert_eq!(
            built(Some(CodeGenerator::RustcNvptx), Some("rustc 1.96.0")),
            "rustc NVPTX (rustc 1.96.0)"
        );
        assert_eq!(
            built(Some(CodeGenerator::RustCuda), Some("rust-cuda 946c91f")),
            "rust-cuda (rust-cuda 946c91f)"
        );
        assert_eq!(built(None, None), "none: built without device code");
    }
}
