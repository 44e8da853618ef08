//! Tests of the library on an emulated GPU: plans, packing, tensor maps, workspaces,
//! errors, tuning.
//!
//! The GPU has a few SMs, so that small products have several waves of tiles.
//! `fake_driver.rs` tests the code that needs the CUDA driver.

#[path = "emulated/batch_invariant.rs"]
mod batch_invariant;
mod common;
#[path = "emulated/epilogues.rs"]
mod epilogues;
#[path = "emulated/plans.rs"]
mod plans;
#[path = "emulated/reports.rs"]
mod reports;
#[path = "emulated/tuning.rs"]
mod tuning;

use common::{Random, layout_variants};
use tilewise::emulator::EmulatedGpu;
use tilewise::{
    Arch, Device, Error, Family, Gemm, Matrix, Operand, Packing, Precision, Schedule, TileGrid,
    TileOrder, f16, oracle, select::Rejection,
};

/// A GPU with three SMs that hold two CTAs each.
fn small() -> Device {
    open(EmulatedGpu {
        sms: 3,
        ctas_per_sm: Some(2),
        ..EmulatedGpu::default()
    })
}

fn open(gpu: EmulatedGpu) -> Device {
    Device::emulated(gpu).unwrap()
}

fn naive(device: &Device) -> Gemm {
    Gemm::new(device).kernel("naive_f32")
}

#[test]
fn devices_are_described() {
    let device = open(EmulatedGpu::default());
    let info = device.gpu_info().unwrap();
    assert_eq!((info.compute_capability, info.sms), ((9, 0), 132));
    assert_eq!(info.l2_bytes, tilewise::l2::gpu::GPUS[0].l2_bytes);
    assert!(device.is_gpu() && device.stream().is_none());
    let name = format!("GPU {} (emulated H200)", info.ordinal);
    assert_eq!(device.to_string(), name);
    assert_eq!(device, device.clone());
    assert_ne!(device, small(), "each is a GPU of its own");
}

#[test]
fn the_compute_capability_decides_the_kernels() {
    let mut random = Random::new(23);
    for (compute_capability, family, arch) in [
        ((7, 5), Family::TensorCore, Arch::Sm75),
        ((8, 0), Family::TensorCore, Arch::Sm80),
        ((9, 0), Family::Hopper, Arch::Sm90a),
    ] {
        let device = open(EmulatedGpu {
            compute_capability,
            sms: 4,
            ..EmulatedGpu::default()
        });
        let (m, n, k) = (130, 72, 64);
        let a = random.integers::<f16>(&device, m, k);
        let b = random.integers::<f16>(&device, k, n);
        let mut c = device.zeros::<f32>(m, n).unwrap();
        let mut plan = Gemm::new(&device).plan(&a, &b, &mut c).unwrap();
        let kernel = plan.info().gpu().unwrap().kernel;
        assert_eq!((kernel.family, kernel.arch), (family, arch));
        plan.run(&a, &b, &mut c).unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap().values;
        let found = c.to_vec().unwrap().into_iter().map(f64::from);
        assert!(found.eq(expected));
    }
}

/// A fill has the same result as on the CPU, where it is a loop, and memory between the
/// elements keeps its values.
#[test]
fn fills_reach_the_elements_of_a_view_alone() {
    let mut random = Random::new(24);
    let device = small();
    for (rows, cols) in [(1, 1), (1, 7), (7, 1), (5, 6)] {
        for (row_stride, col_stride) in layout_variants(rows, cols) {
            fill_both(
                &device,
                &mut random,
                (rows, cols, row_stride, col_stride),
                2.5_f32,
            );
            let half = f16::from_f32(-0.75);
            fill_both(
                &device,
                &mut random,
                (rows, cols, row_stride, col_stride),
                half,
            );
        }
    }
    let mut empty = device.zeros::<f32>(0, 3).unwrap();
    empty.view_mut().fill(1.0).unwrap();
}

fn fill_both<T: tilewise::Element>(
    device: &Device,
    random: &mut Random,
    (rows, cols, row_stride, col_stride): (usize, usize, usize, usize),
    value: T,
) {
    let before = 3;
    let len = before + (rows - 1) * row_stride + (cols - 1) * col_stride + 4;
    let elements = random
        .integers::<T>(&Device::cpu(), 1, len)
        .to_vec()
        .unwrap();
    let filled = [device, &Device::cpu()].map(|device| {
        let mut around = device.from_slice(&elements, 1, len).unwrap();
        let view = around.view_mut().slice(0..1, before..len).unwrap();
        let mut view = view
            .with_strides(rows, cols, row_stride, col_stride)
            .unwrap();
        view.fill(value).unwrap();
        assert_eq!(view.to_vec().unwrap(), vec![value; rows * cols]);
        around.to_vec().unwrap()
    });
    assert_eq!(filled[0], filled[1]);
}

#[test]
fn matrices_go_to_the_gpu_and_back() {
    let device = small();
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
    // Memory between the elements of a view keeps its values.
    let mut gaps = device.from_slice(&[7.0_f32; 8], 2, 4).unwrap();
    let odd = gaps.view_mut().step(1, 2).unwrap();
    odd.t().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    let expected = [1.0, 7.0, 3.0, 7.0, 2.0, 7.0, 4.0, 7.0];
    assert_eq!(gaps.to_vec().unwrap(), expected);
}

#[test]
fn plans_launch_every_order_and_schedule() {
    let device = small();
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
        let info = *plan.info().gpu().unwrap();
        assert_eq!((info.m, info.n, info.k, info.ctas), (m, n, k, ctas));
        assert_eq!((info.order, info.schedule), (order, schedule));
        let (tiles_m, tiles_n) = (5, 6);
        assert_eq!(info.grid, TileGrid { tiles_m, tiles_n });
        plan.run(a.view(), b.view(), c.view_mut()).unwrap();
        let found = c.to_vec().unwrap();
        assert_eq!(expected.worst(&found, tilewise::DType::F32), None);
    }
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
    let device = small();
    let mut random = Random::new(22);
    // Operands contiguous along K or not, with lines that are or are not multiples of 16 bytes.
    for a_strides in [(36, 1), (33, 1), (1, 70), (1, 72)] {
        for b_strides in [(1, 36), (1, 33), (52, 1)] {
            for c_strides in [(52, 1), (1, 70), (1, 72)] {
                pack_and_multiply(&device, &mut random, a_strides, b_strides, c_strides);
            }
        }
    }
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
    // Whether TMA reads them along K, and across.
    let (along_a, across_a) = (a_strides == (36, 1), a_strides == (1, 72));
    let (along_b, across_b) = (b_strides == (1, 36), b_strides == (52, 1));
    let by_rows = c_strides.1 == 1;
    // What is packed, and whether Cᵀ is computed: with both along K, with B through registers,
    // and with A through registers.
    let ways = [
        (!along_a, !along_b, !by_rows),
        (!along_a, !across_b, true),
        (!across_a, !along_b, false),
    ];
    let lines = |&(a, b, _): &(bool, bool, bool)| if a { m } else { 0 } + if b { n } else { 0 };
    let least = ways.into_iter().min_by_key(lines).unwrap();
    let (packs_a, packs_b, transposed) = least;
    assert_eq!(info.transposed, transposed);
    assert_eq!((info.packed_a, info.packed_b), (packs_a, packs_b));
    // 33 elements, rounded up to 128 bytes.
    let pitch = 64 * size_of::<f32>();
    let lines = lines(&least);
    assert_eq!(info.workspace_bytes, (lines * pitch) as u64);
    // Each run packs the operands that it is given.
    for a in &matrices {
        plan.run(a.view(), b.view(), c.view_mut()).unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap();
        let found: Vec<f64> = c.to_vec().unwrap().into_iter().map(f64::from).collect();
        assert!(found == expected.values, "{info:?}");
    }
    let never = gemm.packing(Packing::Never);
    let planned = never.plan(matrices[0].view(), b.view(), c.view_mut());
    assert_eq!(planned.is_err(), lines > 0);
}

#[test]
fn workspaces_that_find_no_memory() {
    let device = open(EmulatedGpu {
        sms: 3,
        memory_bytes: 16 << 20,
        ..EmulatedGpu::default()
    });
    // One element stands for 2¹² × 2¹¹ elements, which are 2²⁵ bytes when packed.
    let one = device.zeros::<f32>(1, 1).unwrap();
    let (m, k) = (1 << 12, 1 << 11);
    let a = one.view().with_strides(m, k, 0, 0).unwrap();
    let b = one.view().with_strides(k, 1, 0, 0).unwrap();
    let mut c = device.zeros::<f32>(m, 1).unwrap();
    assert_eq!(
        hopper_tf32(&device).plan(a, b, c.view_mut()).unwrap_err(),
        Error::OutOfMemory {
            device: device.to_string(),
            // The copies of A and B.
            wanted: (1 << 25) + (4 << 11),
            // The bytes of A and C.
            free: (16 << 20) - 4 - (4 << 12),
        }
    );
}

#[test]
fn empty_products_launch_nothing() {
    let device = small();
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
}

#[test]
fn operands_on_different_devices() {
    let devices = [0, 1].map(|_| small());
    let names = devices.each_ref().map(ToString::to_string);
    let [a, b] = [0, 1].map(|i: usize| devices[i].zeros::<f32>(2, 2).unwrap());
    let error = devices[0].matmul(&a, &b).unwrap_err();
    let mismatch = |operand, found: &str, expected: &str| Error::DeviceMismatch {
        operand,
        found: found.into(),
        expected: expected.into(),
    };
    assert_eq!(error, mismatch(Operand::B, &names[1], &names[0]));
    let error = Device::cpu().matmul(&a, &a).unwrap_err();
    assert_eq!(error, mismatch(Operand::A, &names[0], "the CPU"));
}

#[test]
fn problems_past_a_kernels_reach() {
    let device = small();
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
}

#[test]
fn kernels_that_cannot_be_had() {
    let device = small();
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
    // No kernel runs on a Pascal GPU.
    let old = open(EmulatedGpu {
        compute_capability: (6, 0),
        ..EmulatedGpu::default()
    });
    let a = old.zeros::<f16>(2, 2).unwrap();
    assert!(matches!(old.matmul(&a, &a), Err(Error::NoKernel { .. })));
}
