//! Tests of the binding of the CUDA driver, against a fake driver
//! (`fake_driver/libcuda.rs`). They check which functions the library calls, with which
//! arguments and in which order, and how it reports their errors. `emulated.rs` tests the
//! rest of the library on emulated GPUs.
//!
//! The library opens `libcuda.so.1` by name, so each test runs itself again in
//! a process whose library path leads to the fake driver.

#[path = "fake_driver/allocations.rs"]
mod allocations;
#[path = "fake_driver/calls.rs"]
mod calls;
#[path = "common/driver.rs"]
mod driver;
#[path = "fake_driver/overdue.rs"]
mod overdue;
#[path = "fake_driver/streams.rs"]
mod streams;
#[path = "fake_driver/tuning.rs"]
mod tuning;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tilewise::{Device, Error, Gemm, build_info};

/// Runs `body` in a process that has the fake driver, in the state `scenario`.
fn with_driver(test: &str, scenario: &str, body: impl FnOnce()) {
    stderr_with_driver(test, scenario, body);
}

/// The same; the process that waits for the other one gets what that has written to stderr.
fn stderr_with_driver(test: &str, scenario: &str, body: impl FnOnce()) -> Option<String> {
    if env::var_os("FAKE_DRIVER").is_some() {
        body();
        return None;
    }
    let folder = fake(test, scenario == "old_driver");
    let log = folder.join("calls");
    let _ = fs::remove_file(&log);
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("FAKE_DRIVER", scenario)
        .env("FAKE_DRIVER_LOG", log)
        .env("LD_LIBRARY_PATH", folder)
        .env_remove("TILEWISE_DEVICE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() && text.contains("1 passed"),
        "{text}{stderr}"
    );
    Some(stderr.into_owned())
}

/// A folder with the fake driver, compiled for `test`.
fn fake(test: &str, old: bool) -> PathBuf {
    // A colon would end the entry of the library path.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test.replace(':', "_"));
    fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/libcuda.rs");
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["--crate-name", "cuda", "--check-cfg", "cfg(old_driver)"])
        .arg("-o")
        .arg(folder.join("libcuda.so.1"))
        .arg(source);
    if old {
        rustc.args(["--cfg", "old_driver"]);
    }
    assert!(rustc.status().unwrap().success(), "the fake compiles");
    folder
}

/// Whether this build has kernels to launch.
fn has_kernels() -> bool {
    build_info().toolchain.is_some()
}

fn naive(device: &Device) -> Gemm {
    Gemm::new(device).kernel("naive_f32")
}

#[test]
fn devices_are_described() {
    with_driver("devices_are_described", "fine", || {
        assert_eq!(Device::gpu_count(), 2);
        let device = Device::gpu(1).unwrap();
        let info = device.gpu_info().unwrap();
        assert_eq!((info.name.as_str(), info.ordinal), ("Fake 1", 1));
        assert_eq!((info.compute_capability, info.sms), ((9, 0), 3));
        assert_eq!(info.driver_version, (12, 2));
        assert_eq!(device.to_string(), "GPU 1 (Fake 1)");
        assert_eq!(device, Device::gpu(1).unwrap(), "one handle a GPU");
        assert_ne!(device, Device::gpu(0).unwrap());
        assert_eq!(Device::best().is_gpu(), has_kernels());
        match Device::gpu(2).unwrap_err() {
            Error::NoDevice { ordinal: 2, found } => {
                assert_eq!(found, "the driver offers 2, from 0");
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_gpu_that_no_kernel_is_built_for_is_reported_once() {
    let name = "a_gpu_that_no_kernel_is_built_for_is_reported_once";
    let stderr = stderr_with_driver(name, "old_gpu", || {
        match Device::best_gpu().unwrap_err() {
            Error::NoKernels {
                device,
                compute_capability,
                built,
            } => {
                assert_eq!((&*device, compute_capability), ("GPU 0 (Fake 0)", (5, 0)));
                let reason = build_info()
                    .without_kernels
                    .unwrap_or("it has kernels for sm_");
                assert!(built.contains(reason), "{built}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(Device::best(), Device::cpu());
        assert_eq!(Device::best(), Device::cpu());
    });
    if let Some(stderr) = stderr {
        let said =
            "warning: tilewise computes on the CPU: GPU 0 (Fake 0) has compute capability 5.0";
        assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
    }
}

#[test]
fn a_driver_that_does_not_work_is_reported() {
    let stderr = stderr_with_driver("a_driver_that_does_not_work_is_reported", "broken", || {
        match Device::best_gpu().unwrap_err() {
            Error::Driver { call, code, .. } => assert_eq!((call, code), ("cuInit", 803)),
            other => panic!("{other}"),
        }
        assert_eq!(Device::gpu_count(), 0);
        assert_eq!(Device::best(), Device::cpu());
    });
    if let Some(stderr) = stderr {
        let said = "warning: tilewise computes on the CPU: cuInit failed with CUDA error 803";
        assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
    }
}

#[test]
fn a_machine_without_a_gpu_is_not_reported() {
    let stderr = stderr_with_driver("a_machine_without_a_gpu_is_not_reported", "no_gpu", || {
        assert_eq!(
            Device::best_gpu().unwrap_err(),
            Error::NoDevice {
                ordinal: 0,
                found: "cuInit answers CUDA_ERROR_OF_THE_FAKE".into(),
            }
        );
        assert_eq!(Device::best(), Device::cpu());
    });
    if let Some(stderr) = stderr {
        assert!(!stderr.contains("tilewise"), "{stderr}");
    }
}

#[test]
fn out_of_device_memory() {
    with_driver("out_of_device_memory", "fine", || {
        let device = Device::gpu(0).unwrap();
        assert_eq!(
            device.zeros::<f32>(4096, 4096).unwrap_err(),
            Error::OutOfMemory {
                device: "GPU 0 (Fake 0)".into(),
                wanted: 64 << 20,
                free: 48 << 20,
            }
        );
    });
}

/// Plans a small product on the first GPU.
fn plan_error() -> Error {
    let device = Device::gpu(0).unwrap();
    let a = device.zeros::<f32>(2, 2).unwrap();
    let mut c = device.zeros::<f32>(2, 2).unwrap();
    naive(&device)
        .plan(a.view(), a.view(), c.view_mut())
        .unwrap_err()
}

#[test]
fn a_driver_too_old_for_the_ptx() {
    with_driver("a_driver_too_old_for_the_ptx", "old_ptx", || {
        if !has_kernels() {
            return;
        }
        match plan_error() {
            Error::DriverTooOld { driver, lacks } => {
                assert_eq!(driver, (12, 2));
                assert!(lacks.starts_with("PTX ISA ") && lacks.ends_with("(kernel naive_f32)"));
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_driver_without_a_function() {
    with_driver("a_driver_without_a_function", "old_driver", || {
        if !has_kernels() {
            return;
        }
        assert_eq!(
            plan_error().to_string(),
            "the driver (for CUDA 12.2) is too old: it has no function \
             cuOccupancyMaxActiveBlocksPerMultiprocessor"
        );
    });
}

#[test]
fn ptx_that_does_not_compile() {
    with_driver("ptx_that_does_not_compile", "bad_ptx", || {
        if !has_kernels() {
            return;
        }
        assert_eq!(
            plan_error(),
            Error::Compile {
                kernel: "naive_f32",
                code: 218,
                log: "line 7: no such instruction".into(),
            }
        );
    });
}
