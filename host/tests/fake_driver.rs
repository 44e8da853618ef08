//! The GPU side without a GPU: plans, launches and errors against a fake driver
//! (`fake_driver/libcuda.rs`).
//!
//! The library opens `libcuda.so.1` by name, so each test runs itself again in
//! a process whose library path leads to the fake.

mod common;
#[path = "fake_driver/overdue.rs"]
mod overdue;
#[path = "fake_driver/tuning.rs"]
mod tuning;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use common::Random;
use tilewise::{
    Device, Error, Family, Gemm, Matrix, Operand, Packing, Precision, Schedule, TileGrid,
    TileOrder, build_info, oracle, select::Rejection,
};

/// Runs `body` in a process that has the fake driver, in the state `scenario`.
fn with_driver(test: &str, scenario: &str, body: fn()) {
    if env::var_os("FAKE_DRIVER").is_some() {
        return body();
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("FAKE_DRIVER", scenario)
        .env("LD_LIBRARY_PATH", driver(test, scenario == "old_driver"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

/// A folder with the fake, compiled for `test`.
fn driver(test: &str, old: bool) -> PathBuf {
    // A colon would end the path.
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
fn matrices_go_to_the_gpu_and_back() {
    with_driver("matrices_go_to_the_gpu_and_back", "fine", || {
        let device = Device::gpu(0).unwrap();
        let mut random = Random::new(20);
        for _ in 0..30 {
            let (rows, cols) = (random.below(9), random.below(9));
            let on_gpu = random.matrix::<f32>(&device, rows, cols);
            assert!(on_gpu.device_address().is_some());
            let elements = on_gpu.to_vec().unwrap();
            let on_cpu = Device::cpu().from_slice(&elements, rows, cols).unwrap();
            let view = |matrix: &tilewise::Matrix<f32>| {
                let view = matrix.view().slice(rows / 2..rows, 0..cols).unwrap();
                view.t().step(2, 1).unwrap().to_vec().unwrap()
            };
            assert_eq!(view(&on_gpu), view(&on_cpu));
        }
        // What lies between the elements of a view stays.
        let mut gaps = device.from_slice(&[7.0_f32; 8], 2, 4).unwrap();
        let odd = gaps.view_mut().step(1, 2).unwrap();
        odd.t().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        let expected = [1.0, 7.0, 3.0, 7.0, 2.0, 7.0, 4.0, 7.0];
        assert_eq!(gaps.to_vec().unwrap(), expected);
    });
}

#[test]
fn plans_launch_every_order_and_schedule() {
    with_driver("plans_launch_every_order_and_schedule", "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let mut random = Random::new(21);
        let (m, n, k) = (70, 90, 5);
        let a = random.matrix::<f32>(&device, m, k);
        let b = random.matrix::<f32>(&device, k, n);
        let expected = oracle::product(a.view(), b.view()).unwrap();
        let group = TileOrder::GroupedM { size: 2 };
        for (schedule, order, ctas) in [
            (Schedule::Grid2d, TileOrder::RowMajor, 30),
            (Schedule::Grid1d, TileOrder::ColumnMajor, 30),
            (Schedule::Grid1d, group, 30),
            // 3 SMs with 2 CTAs each.
            (Schedule::Persistent, group, 6),
        ] {
            let gemm = naive(&device).schedule(schedule).order(order);
            let mut c = device.zeros_strided::<f32>(m, n, 1, m + 3).unwrap();
            c.view_mut().fill(f32::NAN).unwrap();
            let mut plan = gemm.plan(a.view(), b.view(), c.view_mut()).unwrap();
            let info = plan.info().gpu().unwrap();
            assert_eq!((info.m, info.n, info.k, info.ctas), (m, n, k, ctas));
            assert_eq!((info.order, info.schedule), (order, schedule));
            let (tiles_m, tiles_n) = (5, 6);
            assert_eq!(info.grid, TileGrid { tiles_m, tiles_n });
            plan.run(a.view(), b.view(), c.view_mut()).unwrap();
            let found = c.to_vec().unwrap();
            assert_eq!(expected.worst(&found, tilewise::DType::F32), None);
        }
    });
}

/// A matrix of small integers with these strides.
fn integers(
    device: &Device,
    random: &mut Random,
    (rows, cols): (usize, usize),
    (row_stride, col_stride): (usize, usize),
) -> Matrix<f32> {
    let elements: Vec<f32> = (0..rows * cols)
        .map(|_| random.below(9) as f32 - 4.0)
        .collect();
    let mut matrix = device
        .zeros_strided(rows, cols, row_stride, col_stride)
        .unwrap();
    matrix.copy_from_slice(&elements).unwrap();
    matrix
}

/// A product for the hopper kernels of TF32.
fn hopper_tf32(device: &Device) -> Gemm {
    Gemm::new(device)
        .family(Family::Hopper)
        .precision(Precision::Tf32)
}

#[test]
fn operands_are_packed_before_the_product() {
    with_driver("operands_are_packed_before_the_product", "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let mut random = Random::new(22);
        // Along K with whole 16 bytes a line, or not.
        for a_strides in [(36, 1), (33, 1), (1, 70), (1, 72)] {
            for b_strides in [(1, 36), (1, 33), (52, 1)] {
                for c_strides in [(52, 1), (1, 70), (1, 72)] {
                    pack_and_multiply(&device, &mut random, a_strides, b_strides, c_strides);
                }
            }
        }
    });
}

fn pack_and_multiply(
    device: &Device,
    random: &mut Random,
    a_strides: (usize, usize),
    b_strides: (usize, usize),
    c_strides: (usize, usize),
) {
    let (m, n, k) = (70, 52, 33);
    let matrices = [0, 1].map(|_| integers(device, random, (m, k), a_strides));
    let b = integers(device, random, (k, n), b_strides);
    let mut c = integers(device, random, (m, n), c_strides);
    let gemm = hopper_tf32(device);
    let mut plan = gemm
        .plan(matrices[0].view(), b.view(), c.view_mut())
        .unwrap();
    let info = *plan.info().gpu().unwrap();
    // Whatever the strides: the copy is rounded.
    assert_eq!((info.packed_a, info.packed_b), (true, true));
    assert_eq!(info.transposed, c_strides.1 != 1);
    // 33 elements, rounded up to 128 bytes.
    let pitch = 64 * size_of::<f32>();
    let bytes = (m + n) * pitch;
    assert_eq!(info.workspace_bytes, bytes as u64);
    // Each run packs what it is given.
    for a in &matrices {
        plan.run(a.view(), b.view(), c.view_mut()).unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap();
        let found: Vec<f64> = c.to_vec().unwrap().into_iter().map(f64::from).collect();
        assert!(found == expected.values, "{info:?}");
    }
    let never = gemm.packing(Packing::Never);
    let planned = never.plan(matrices[0].view(), b.view(), c.view_mut());
    assert!(planned.is_err());
}

#[test]
fn workspaces_that_find_no_memory() {
    with_driver("workspaces_that_find_no_memory", "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        // One element that stands for 2¹⁴ × 2¹²: packed, 2²⁸ bytes.
        let one = device.zeros::<f32>(1, 1).unwrap();
        let (m, k) = (1 << 14, 1 << 12);
        let a = one.view().with_strides(m, k, 0, 0).unwrap();
        let b = one.view().with_strides(k, 1, 0, 0).unwrap();
        let mut c = device.zeros::<f32>(m, 1).unwrap();
        assert_eq!(
            hopper_tf32(&device).plan(a, b, c.view_mut()).unwrap_err(),
            Error::OutOfMemory {
                device: "GPU 0 (Fake 0)".into(),
                wanted: 1 << 28,
                free: 48 << 20,
            }
        );
    });
}

#[test]
fn empty_products_launch_nothing() {
    with_driver("empty_products_launch_nothing", "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (0, 0, 0), (3, 2, 0)] {
            let a = device.zeros::<f32>(m, k).unwrap();
            let b = device.zeros::<f32>(k, n).unwrap();
            let mut c = device.zeros::<f32>(m, n).unwrap();
            c.view_mut().fill(f32::NAN).unwrap();
            let mut plan = naive(&device)
                .plan(a.view(), b.view(), c.view_mut())
                .unwrap();
            plan.run(a.view(), b.view(), c.view_mut()).unwrap();
            assert_eq!(c.to_vec().unwrap(), vec![0.0; m * n]);
        }
    });
}

#[test]
fn operands_on_different_devices() {
    with_driver("operands_on_different_devices", "fine", || {
        let devices = [0, 1].map(|ordinal| Device::gpu(ordinal).unwrap());
        let [a, b] = [0, 1].map(|i: usize| devices[i].zeros::<f32>(2, 2).unwrap());
        let error = devices[0].matmul(&a, &b).unwrap_err();
        let mismatch = |operand, found: &str, expected: &str| Error::DeviceMismatch {
            operand,
            found: found.into(),
            expected: expected.into(),
        };
        assert_eq!(
            error,
            mismatch(Operand::B, "GPU 1 (Fake 1)", "GPU 0 (Fake 0)")
        );
        let error = Device::cpu().matmul(&a, &a).unwrap_err();
        assert_eq!(error, mismatch(Operand::A, "GPU 0 (Fake 0)", "the CPU"));
    });
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

#[test]
fn problems_past_a_kernels_reach() {
    with_driver("problems_past_a_kernels_reach", "fine", || {
        let device = Device::gpu(0).unwrap();
        let one = device.zeros::<f32>(1, 1).unwrap();
        let mut c = device.zeros::<f32>(1, 1).unwrap();
        // A row that repeats one element 2³¹ times.
        let k = 1_usize << 31;
        let a = one.view().with_strides(1, k, 0, 0).unwrap();
        let b = one.view().with_strides(k, 1, 0, 0).unwrap();
        let error = Gemm::new(&device).plan(a, b, c.view_mut()).unwrap_err();
        let (dimension, max) = ("K", (1 << 31) - 1 - 4096);
        assert_eq!(
            error,
            Error::DimensionTooLarge {
                dimension,
                value: k,
                max
            }
        );
    });
}

#[test]
fn kernels_that_cannot_be_had() {
    with_driver("kernels_that_cannot_be_had", "fine", || {
        let device = Device::gpu(0).unwrap();
        let a = device.zeros::<tilewise::f16>(2, 2).unwrap();
        let mut c = device.zeros::<tilewise::f16>(2, 2).unwrap();
        let mut plan = |gemm: Gemm| gemm.plan(a.view(), a.view(), c.view_mut()).unwrap_err();
        assert!(matches!(
            plan(naive(&device)),
            Error::KernelCannotRun {
                kernel: "naive_f32",
                reason: Rejection::Input { .. }
            }
        ));
        assert!(matches!(
            plan(Gemm::new(&device).kernel("naive")),
            Error::UnknownKernel { .. }
        ));
        assert!(matches!(
            plan(Gemm::new(&device).precision(Precision::Tf32)),
            Error::PrecisionIgnored { .. }
        ));
        if !has_kernels() {
            let family = Gemm::new(&device).family(Family::Naive);
            assert!(matches!(plan(family), Error::NoKernel { .. }));
        }
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
