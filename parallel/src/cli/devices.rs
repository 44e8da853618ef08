//! The devices that a command runs on.

use clap::ValueEnum;
use tilewise::Device;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// GPUs, one for each rank; on a machine with fewer, ranks share them
    Gpu,
    /// The CPU, which is every rank
    Cpu,
    /// Emulated GPUs, one for each rank (feature `emulator`)
    Emulated,
}

/// `ranks` devices of `kind`.
pub fn open(kind: Kind, ranks: usize) -> Result<Vec<Device>, tilewise::Error> {
    (0..ranks).map(|rank| open_one(kind, rank)).collect()
}

/// The device of `rank`.
pub fn open_one(kind: Kind, rank: usize) -> Result<Device, tilewise::Error> {
    match kind {
        Kind::Gpu => Device::gpu(rank % Device::gpu_count().max(1)),
        Kind::Cpu => Ok(Device::cpu()),
        Kind::Emulated => emulated(rank),
    }
}

#[cfg(feature = "emulator")]
fn emulated(rank: usize) -> Result<Device, tilewise::Error> {
    Device::emulated(tilewise::emulator::EmulatedGpu {
        sms: 4,
        seed: rank as u64,
        ..Default::default()
    })
}

#[cfg(not(feature = "emulator"))]
fn emulated(_: usize) -> Result<Device, tilewise::Error> {
    Device::gpu(usize::MAX)
}
