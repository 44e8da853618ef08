//! GPUs that the model knows by name, for readers without one.

use core::fmt;
use core::str::FromStr;

/// What the model needs of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// As on the command line.
    pub name: &'static str,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// L2, bytes.
    pub l2_bytes: u64,
    /// Peak bandwidth of the DRAM, bytes a second.
    pub dram_bytes_per_second: f64,
}

/// SMs and L2 from NVIDIA's architecture white papers (Hopper, Ampere, Turing, Ada),
/// bandwidth from the products' data sheets; SXM boards where there is a choice, of
/// the A100 that with 80 GB.
pub const GPUS: [Gpu; 5] = [
    gpu("h200", 132, 50, 4.8e12),
    gpu("h100", 132, 50, 3.35e12),
    gpu("a100", 108, 40, 2.039e12),
    gpu("t4", 40, 4, 320e9),
    gpu("rtx4090", 128, 72, 1.008e12),
];

const fn gpu(name: &'static str, sms: u32, l2_mib: u64, dram_bytes_per_second: f64) -> Gpu {
    Gpu {
        name,
        sms,
        l2_bytes: l2_mib << 20,
        dram_bytes_per_second,
    }
}

/// No GPU has this name here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGpu(alloc::string::String);

impl fmt::Display for UnknownGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no GPU known here; accepted:", self.0)?;
        GPUS.iter().try_for_each(|gpu| write!(f, " {}", gpu.name))
    }
}

impl core::error::Error for UnknownGpu {}

impl FromStr for Gpu {
    type Err = UnknownGpu;

    fn from_str(text: &str) -> Result<Gpu, UnknownGpu> {
        let mut all = GPUS.into_iter();
        all.find(|gpu| gpu.name == text)
            .ok_or_else(|| UnknownGpu(text.into()))
    }
}
