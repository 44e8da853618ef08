//! The GPU of a row, by its name: rows outlive the machine that they were measured on.

use tilewise::l2::gpu::{GPUS, Gpu};
use tilewise::select::Target;

/// The GPU that the driver names so, such as `NVIDIA H100 80GB HBM3`, as the model knows it.
pub fn gpu(device: &str) -> Option<Gpu> {
    let name = device.replace(' ', "").to_lowercase();
    GPUS.into_iter().find(|gpu| name.contains(gpu.name))
}

/// The same GPU as the library's choice sees it. (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability"; the most that a CTA may ask for.)
pub fn target(device: &str) -> Option<Target> {
    let gpu = gpu(device)?;
    let (compute_capability, shared_kib) = match gpu.name {
        "h200" | "h100" => ((9, 0), 227),
        "a100" => ((8, 0), 163),
        "t4" => ((7, 5), 64),
        "rtx4090" => ((8, 9), 99),
        _ => return None,
    };
    Some(Target {
        compute_capability,
        sms: gpu.sms,
        shared_bytes_per_cta: shared_kib << 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_known_by_the_drivers_names() {
        for (device, name) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("Tesla T4", "t4"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ] {
            assert_eq!(gpu(device).unwrap().name, name);
            assert!(target(device).is_some());
        }
        assert_eq!(gpu("NVIDIA L40S"), None);
        assert!(target("").is_none());
    }

    #[test]
    fn every_gpu_of_the_model_has_a_target() {
        for gpu in GPUS {
            assert!(target(gpu.name).is_some(), "{}", gpu.name);
        }
    }
}
