//! The GPU of a row: rows outlive the machine that they were measured on.

use tilewise::l2::gpu::{GPUS, Gpu};
use tilewise::select::Target;

use crate::study::row::StudyRow;

/// The GPU that the driver names so, such as `NVIDIA H100 80GB HBM3`, as the model knows it.
pub fn named(device: &str) -> Option<Gpu> {
    let name = device.replace(' ', "").to_lowercase();
    GPUS.into_iter().find(|gpu| name.contains(gpu.name))
}

/// The GPU of a row, with the SMs and the L2 that the driver told: boards of one name differ.
pub fn gpu(row: &StudyRow) -> Option<Gpu> {
    let gpu = named(&row.device)?;
    Some(Gpu {
        sms: row.sms.unwrap_or(gpu.sms),
        l2_bytes: row.l2_bytes.unwrap_or(gpu.l2_bytes),
        ..gpu
    })
}

/// The same GPU as the library's choice sees it. (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability"; the most that a CTA may ask for.)
pub fn target(row: &StudyRow) -> Option<Target> {
    let gpu = gpu(row)?;
    let shared_kib = match gpu.compute_capability {
        (7, 5) => 64,
        (8, 0) => 163,
        (8, 9) => 99,
        (9, 0) => 227,
        _ => return None,
    };
    Some(Target {
        compute_capability: gpu.compute_capability,
        sms: gpu.sms,
        shared_bytes_per_cta: shared_kib << 10,
        l2_bytes: gpu.l2_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(device: &str) -> StudyRow {
        StudyRow {
            device: device.to_owned(),
            ..StudyRow::default()
        }
    }

    #[test]
    fn gpus_are_known_by_the_drivers_names() {
        for (device, name) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("Tesla T4", "t4"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ] {
            assert_eq!(named(device).unwrap().name, name);
            assert!(target(&row(device)).is_some());
        }
        assert_eq!(named("NVIDIA L40S"), None);
        assert!(target(&row("")).is_none());
    }

    #[test]
    fn every_gpu_of_the_model_has_a_target() {
        for gpu in GPUS {
            assert!(target(&row(gpu.name)).is_some(), "{}", gpu.name);
        }
    }

    #[test]
    fn a_smaller_board_of_the_same_name_is_itself() {
        let pcie = StudyRow {
            sms: Some(114),
            ..row("NVIDIA H100 PCIe")
        };
        assert_eq!(target(&pcie).unwrap().sms, 114);
        assert_eq!(target(&pcie).unwrap().l2_bytes, 50 << 20);
    }
}
