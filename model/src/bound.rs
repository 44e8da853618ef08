//! The least time that a product can take, and the unit that limits it, by the roofline
//! model (Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance
//! Model", 2009).

use crate::gpu::Gpu;
use crate::workload::{Traffic, Workload};

/// The unit that limits the speed of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Multiply-adds, at the peak of the tensor cores.
    TensorCores,
    /// Bytes from L2 to the SMs.
    L2,
    /// Bytes from and to DRAM.
    Dram,
}

impl Limit {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Limit::TensorCores => "tensor cores",
            Limit::L2 => "L2",
            Limit::Dram => "DRAM",
        }
    }
}

/// A lower bound on the time of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Seconds.
    pub seconds: f64,
    /// The unit that needs the most time.
    pub limit: Limit,
}

/// The largest of the times that tensor cores, L2 and DRAM need, each at its peak.
pub fn bound(workload: &Workload, traffic: &Traffic, gpu: &Gpu) -> Bound {
    let operations = 2.0 * f64::from(workload.m) * f64::from(workload.n) * f64::from(workload.k);
    // Operands of four bytes are multiplied as TF32.
    let flops = gpu.f16_flops * 2.0 / f64::from(workload.input_bytes.max(2));
    let dram_bytes = (traffic.dram_read_bytes + traffic.c_write_bytes) as f64;
    let l2_seconds = gpu
        .l2_bytes_per_second
        .map_or(0.0, |peak| traffic.l2_to_sm_bytes as f64 / peak);
    [
        (Limit::L2, l2_seconds),
        (Limit::Dram, dram_bytes / gpu.dram_bytes_per_second),
    ]
    .into_iter()
    .fold(
        Bound {
            seconds: operations / flops,
            limit: Limit::TensorCores,
        },
        |bound, (limit, seconds)| match seconds > bound.seconds {
            true => Bound { seconds, limit },
            false => bound,
        },
    )
}

#[cfg(test)]
mod tests {
    use gpu_kernels::Block;

    use super::*;
    use crate::gpu::GPUS;

    #[test]
    fn the_largest_term_binds() {
        let block = Block {
            m: 128,
            n: 256,
            k: 64,
        };
        let mut product = Workload {
            m: 8192,
            n: 8192,
            k: 8192,
            block,
            input_bytes: 2,
            output_bytes: 2,
        };
        let h200 = &GPUS[0];
        let mut traffic = Traffic {
            dram_read_bytes: 1 << 30,
            c_write_bytes: 1 << 27,
            ..Traffic::default()
        };
        let cube = bound(&product, &traffic, h200);
        assert_eq!(cube.limit, Limit::TensorCores);
        assert!((cube.seconds - 2.0 * 8192f64.powi(3) / 989.4e12).abs() < 1e-9);
        // TF32 takes twice as long.
        product.input_bytes = 4;
        let tf32 = bound(&product, &traffic, h200);
        assert!((tf32.seconds / cube.seconds - 2.0).abs() < 1e-12);
        traffic.dram_read_bytes = 1 << 36;
        assert_eq!(bound(&product, &traffic, h200).limit, Limit::Dram);
        traffic.l2_to_sm_bytes = 1 << 40;
        assert_eq!(bound(&product, &traffic, h200).limit, Limit::L2);
    }
}
