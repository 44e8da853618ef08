//! GPUs that the model knows by name, for readers without one.

use core::fmt;
use core::str::FromStr;

use crate::workload::Machine;

/// What the model needs of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// As on the command line.
    pub name: &'static str,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// L2, bytes.
    pub l2_bytes: u64,
    /// Peak bandwidth from L2, bytes a second, where it is known.
    pub l2_bytes_per_second: Option<f64>,
    /// Peak bandwidth of the DRAM, bytes a second.
    pub dram_bytes_per_second: f64,
    /// Peak of the tensor cores for f16 with f32 sums, without sparsity, operations a
    /// second. TF32 has half of it.
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

/// SMs, L2 and tensor cores from NVIDIA's architecture white papers (Hopper, Ampere,
/// Turing, Ada), DRAM from the products' data sheets; SXM boards where there is a choice,
/// of the A100 that with 80 GB. The L2 of the H200 is what its driver says, 96 slices of
/// 640 KiB; the white paper's 50 MB of the H100 are 80 such slices. A slice gives 64 bytes
/// a clock (A100: 80 slices, 5120 bytes, in its white paper), at the boost clock.
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

/// Partitions of the L2 of a GPU of this compute capability: two on the large chips since
/// the A100 (white paper, "A100 L2 cache": "divided into two partitions"), one on others.
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
