//! Plans on an emulated GPU: made from layouts, kept by `Device::matmul`, refused where an
//! operand begins off a multiple of 16 bytes.

use tilewise::emulator::EmulatedGpu;
use tilewise::{
    CudaStream, Device, Element, Error, Family, Gemm, Inputs, Layout, Matrix, MatrixView,
    MatrixViewMut, Operand, bf16, f16, oracle,
};

use super::common::Random;
use super::{open, small};

/// Whether C is A·B.
fn is_right<T: Element>(a: MatrixView<T>, b: MatrixView<T>, c: &Matrix<T>) -> bool {
    let expected = oracle::product(a, b).unwrap();
    expected.worst(&c.to_vec().unwrap(), T::DTYPE).is_none()
}

#[test]
fn a_plan_from_layouts_runs_on_whatever_has_them() {
    let device = small();
    let mut random = Random::new(30);
    let (m, n, k) = (72, 80, 64);
    let layouts = [(m, k), (k, n), (m, n)].map(|(rows, cols)| Layout::row_major(rows, cols));
    let gemm = Gemm::new(&device).family(Family::Hopper);
    let [a, b, c] = layouts;
    let mut plan = gemm.plan_for::<f16, f16>(a, b, c).unwrap();
    for _ in 0..2 {
        let a = random.integers::<f16>(&device, m, k);
        let b = random.integers::<f16>(&device, k, n);
        let mut c = device.zeros::<f16>(m, n).unwrap();
        plan.run(&a, &b, &mut c).unwrap();
        assert!(is_right(a.view(), b.view(), &c));
        let from_operands = gemm.plan(&a, &b, &mut c).unwrap();
        assert_eq!(from_operands.info(), plan.info());
    }
}

/// A slice that begins one element after its allocation, and has lines of whole 16 bytes.
#[test]
fn a_slice_off_16_bytes_needs_a_plan_for_its_alignment() {
    let device = small();
    let mut random = Random::new(31);
    let (m, n, k) = (64, 64, 64);
    let wide = random.integers::<f16>(&device, m, k + 8);
    let a = wide.view().slice(0..m, 1..k + 1).unwrap();
    let b = random.integers::<f16>(&device, k, n);
    let mut c = device.zeros::<f16>(m, n).unwrap();
    let gemm = Gemm::new(&device);
    let plan_for = |gemm: &Gemm, c: &Matrix<f16>| {
        let plan = gemm.plan_for::<f16, f16>(a.layout(), b.layout(), c.layout());
        plan.unwrap()
    };

    let mut aligned = plan_for(&gemm, &c);
    let kernel = aligned.info().gpu().unwrap().kernel;
    assert_eq!(kernel.family, Family::Hopper);
    let error = aligned.run(a, &b, &mut c).unwrap_err();
    let address = a.address();
    assert_eq!(
        error,
        Error::Misaligned {
            operand: Operand::A,
            address,
            kernel: kernel.name,
        }
    );
    assert_eq!(
        error.to_string(),
        format!(
            "A starts at {address:#x}; kernel {} of the plan accepts multiples of 16 bytes, and \
             Gemm::alignment plans for less",
            kernel.name
        )
    );
    // The plan still works.
    let whole = wide.view().slice(0..m, 0..k).unwrap();
    aligned.run(whole, &b, &mut c).unwrap();
    assert!(is_right(whole, b.view(), &c));

    let mut any = plan_for(&gemm.clone().alignment(2), &c);
    for a in [a, whole] {
        any.run(a, &b, &mut c).unwrap();
        assert!(is_right(a, b.view(), &c));
    }
    // As does a plan from the operands.
    let mut plan = gemm.plan(a, &b, &mut c).unwrap();
    assert_eq!(plan.info(), any.info());
    plan.run(a, &b, &mut c).unwrap();
    assert!(is_right(a, b.view(), &c));
}

/// One product after the other, in layouts that need packing and in others.
#[test]
fn kept_plans_multiply_what_they_are_given() {
    fn check<T: Element>(device: &Device, random: &mut Random, (m, n, k): (usize, usize, usize)) {
        let a = random.matrix::<T>(device, m, k);
        let b = random.matrix::<T>(device, k, n);
        let c = device.matmul(&a, &b).unwrap();
        assert!(is_right(a.view(), b.view(), &c));
        let c = device.matmul(b.view().t(), a.view().t()).unwrap();
        assert!(is_right(b.view().t(), a.view().t(), &c));
    }
    let device = small();
    let mut random = Random::new(32);
    for _ in 0..8 {
        check::<f16>(&device, &mut random, (40, 24, 64));
        check::<bf16>(&device, &mut random, (40, 24, 64));
        check::<f32>(&device, &mut random, (17, 9, 5));
    }
}

/// A product whose A is packed, into a workspace of 128 KiB, on a GPU of one MiB.
#[test]
fn workspaces_of_kept_plans_are_in_nobodys_way() {
    let device = open(EmulatedGpu {
        sms: 4,
        memory_bytes: 1 << 20,
        ..EmulatedGpu::default()
    });
    let (m, n, k) = (256, 256, 255);
    let a = device.from_slice(&vec![f16::ONE; m * k], m, k).unwrap();
    let b = device.from_slice(&vec![f16::ONE; k * n], k, n).unwrap();
    let c = device.matmul(&a, &b).unwrap();
    assert!(c.to_vec().unwrap().iter().all(|c| c.to_f32() == 255.0));
    let mut planned = device.zeros::<f16>(m, n).unwrap();
    let plan = Gemm::new(&device).plan(&a, &b, &mut planned).unwrap();
    let workspace = plan.info().workspace_bytes();
    assert!(workspace >= 1 << 17, "{workspace}");
    drop((c, planned, plan));
    // All that is left but what A, B and allocations of 256 bytes take.
    let left = (1 << 20) - 2 * (m * k + k * n) - (16 << 10);
    let matrix = device.zeros::<f16>(left / 2, 1);
    assert!(matrix.is_ok(), "{}", matrix.unwrap_err());
}

/// Views by address, in the memory of an emulated GPU, on a stream that it ignores. A view
/// that leaves the memory is reported by the emulator.
#[test]
fn foreign_memory_is_checked_at_every_access() {
    let device = small();
    let mut random = Random::new(33);
    let (m, n, k) = (40, 56, 65);
    let a = random.integers::<f16>(&device, m, k);
    let b = random.integers::<f16>(&device, k, n);
    let mut c = device.zeros::<f16>(m, n).unwrap();
    let gemm = Gemm::new(&device);
    let [address_a, address_b] = [&a, &b].map(|matrix| matrix.device_address().unwrap());
    let address_c = c.device_address().unwrap();
    let run = |layout_a: Layout| {
        // SAFETY: an emulated GPU looks every access up, and does its work at once.
        unsafe {
            let a = MatrixView::<f16>::from_raw(&device, address_a, layout_a).unwrap();
            let b = MatrixView::<f16>::from_raw(&device, address_b, Layout::row_major(k, n));
            let c = MatrixViewMut::<f16>::from_raw(&device, address_c, Layout::row_major(m, n));
            let stream = CudaStream::from_raw(std::ptr::null_mut());
            gemm.run_on(stream, a, b.unwrap(), c.unwrap(), &Inputs::new())
        }
    };
    run(Layout::row_major(m, k)).unwrap();
    assert!(is_right(a.view(), b.view(), &c));
    let error = run(Layout::strided(m, k, 2 * k, 1)).unwrap_err();
    assert!(matches!(error, Error::KernelBroken { .. }), "{error}");
    c.copy_from_slice(&vec![f16::ZERO; m * n]).unwrap();
}
