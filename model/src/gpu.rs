//! GPUs that the model knows by name, so that it can be used without a GPU.

use core::fmt;
use core::str::FromStr;

use crate::workload::Machine;

/// The properties of a GPU that the model needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// The name, as used on the command line.
    pub name: &'static str,
    /// Compute capability, (major, minor).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Capacity of L2, bytes.
    pub l2_bytes: u64,
    /// Peak bandwidth of L2, bytes per second, where it is known.
    pub l2_bytes_per_second: Option<f64>,
    /// Peak bandwidth of the DRAM, bytes per second.
    pub dram_bytes_per_second: f64,
    /// Peak of the tensor cores for f16 with f32 accumulators, without sparsity, in
    /// operations per second. The peak for TF32 is half of it.
    pub f16_flops: f64,
}

impl Gpu {
    /// The GPU with `ctas_per_sm` CTAs on each SM.
    pub fn machine(&self, ctas_per_sm: u32) -> Machine {
        Machine {
            ctas: self.sms.saturating_mul(ctas_per_sm),
            l2_bytes: self.l2_bytes,
            l2_partitions: l2_partitions(self.compute_capability),
        }
    }
}

/// The known GPUs. SMs, L2 and tensor cores are from NVIDIA's architecture white papers
/// (Hopper, Ampere, Turing, Ada), and DRAM is from the products' data sheets. The boards
/// are SXM where there is a choice, and the A100 is the board with 80 GB. The driver of the
/// H200 reports its L2, 96 slices of 640 KiB; the white paper's 50 MB of the H100 are 80
/// such slices. A slice delivers 64 bytes per clock (the A100's white paper says 5120 bytes
/// for 80 slices), at the boost clock.
pub const GPUS: [Gpu; 5] = [
    Gpu {
        name: "h200",
        compute_capability: (9, 0),
        sms: 132,
        l2_bytes: 60 << 20,
        l2_bytes_per_second: Some(96.0 * 64.0 * 1.98e9),
        dram_bytes_per_second: 4.8e12,
        f16_flops: 989.4e12,
    },
    Gpu {
        name: "h100",
        compute_capability: (9, 0),
        sms: 132,
        l2_bytes: 50 << 20,
        l2_bytes_per_second: Some(80.0 * 64.0 * 1.98e9),
        dram_bytes_per_second: 3.35e12,
        f16_flops: 989.4e12,
    },
    Gpu {
        name: "a100",
        compute_capability: (8, 0),
        sms: 108,
        l2_bytes: 40 << 20,
        l2_bytes_per_second: Some(80.0 * 64.0 * 1.41e9),
        dram_bytes_per_second: 2.039e12,
        f16_flops: 312e12,
    },
    Gpu {
        name: "t4",
        compute_capability: (7, 5),
        sms: 40,
        l2_bytes: 4 << 20,
        l2_bytes_per_second: None,
        dram_bytes_per_second: 320e9,
        f16_flops: 65e12,
    },
    Gpu {
        name: "rtx4090",
        compute_capability: (8, 9),
        sms: 128,
        l2_bytes: 72 << 20,
        l2_bytes_per_second: None,
        dram_bytes_per_second: 1.008e12,
        f16_flops: 165.2e12,
    },
];

/// Number of L2 partitions of a GPU of this compute capability: two on the large chips
/// since the A100 (white paper, "A100 L2 cache": "divided into two partitions"), one on
/// other chips.
///
/// ```
/// use tilewise_model::gpu::l2_partitions;
/// assert_eq!([(7, 5), (8, 0), (8, 9), (9, 0)].map(l2_partitions), [1, 2, 1, 2]);
/// ```
pub fn l2_partitions(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (8, 0) | (9 | 10, _) => 2,
        _ => 1,
    }
}

/// The name is not the name of a known GPU.
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
