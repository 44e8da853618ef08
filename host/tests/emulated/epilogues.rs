//! Epilogues, batches and types of C on emulated GPUs, for kernels of every family.

use std::time::Duration;

use gpu_kernels::entry::KERNELS;
use tilewise::emulator::{self, EmulatedGpu};
use tilewise::select::Rejection;
use tilewise::{
    Activation, DType, Device, Element, Epilogue, Error, Family, Gated, Gemm, Inputs, KernelInfo,
    Output, PlanInfo, Schedule, bf16, f16,
};

use crate::common::Random;
use crate::common::epilogue::{Data, Parts, Size, check};

/// The longest product, by the emulator's estimate.
const LONGEST: Duration = Duration::from_millis(10);

fn device(seed: u64) -> Device {
    let gpu = EmulatedGpu {
        sms: 4,
        seed,
        workers: Some(1),
        ..EmulatedGpu::default()
    };
    Device::emulated(gpu).unwrap()
}

/// A size that `kernel` computes in a moment, or the quickest of a few, with an N that pairs
/// have.
fn size(random: &mut Random, kernel: &KernelInfo) -> Size {
    let time = |size: &Size| {
        let shape = (size.m as u32, size.n as u32, size.k as u32);
        emulator::time(kernel, shape, size.batches as u32, 1)
    };
    let mut draws = (0..30).map(|_| Size {
        batches: [1, 1, 2, 3][random.below(4)],
        m: 1 + random.below(150),
        n: 2 * (1 + random.below(80)),
        k: [0, 1, 16, 40, 64, 72][random.below(6)],
    });
    let mut quickest = draws.next().expect("there are draws");
    for size in draws {
        if time(&quickest) <= LONGEST {
            break;
        }
        if time(&size) < time(&quickest) {
            quickest = size;
        }
    }
    quickest
}

/// [`check`] with the types of `kernel` and a random type of C.
fn check_kernel(
    kernel: &KernelInfo,
    random: &mut Random,
    size: Size,
    parts: &Parts,
    data: Data,
) -> Result<PlanInfo, Error> {
    fn typed<T: Element>(
        kernel: &KernelInfo,
        random: &mut Random,
        size: Size,
        parts: &Parts,
        data: Data,
    ) -> Result<PlanInfo, Error>
    where
        f32: Output<T>,
        f16: Output<T>,
        bf16: Output<T>,
    {
        let device = device(random.below(1000) as u64);
        let gemm = (Gemm::new(&device).kernel(kernel.name)).precision(kernel.input.into());
        let input = kernel.input;
        match random.below(3) {
            0 => check::<T, f32>(&gemm, &device, random, size, parts, data, input),
            1 => check::<T, f16>(&gemm, &device, random, size, parts, data, input),
            _ => check::<T, bf16>(&gemm, &device, random, size, parts, data, input),
        }
    }
    match kernel.input {
        DType::F16 => typed::<f16>(kernel, random, size, parts, data),
        DType::Bf16 => typed::<bf16>(kernel, random, size, parts, data),
        DType::F32 | DType::Tf32 | DType::F16x3 => typed::<f32>(kernel, random, size, parts, data),
    }
}

/// `count` products for kernels of `family`. Returns how many were computed, and how many of
/// them in two launches.
fn check_family(family: Family, seed: u64, count: usize) -> (usize, usize) {
    let mut random = Random::new(seed);
    let kernels: Vec<_> = KERNELS
        .iter()
        .filter(|kernel| kernel.family == family)
        .collect();
    let (mut computed, mut in_two) = (0, 0);
    for index in 0..count {
        let kernel = kernels[random.below(kernels.len())];
        let data = [Data::Uniform, Data::Exact][index % 2];
        let parts = Parts::draw(&mut random, data);
        let size = size(&mut random, kernel);
        match check_kernel(kernel, &mut random, size, &parts, data) {
            Ok(info) => {
                computed += 1;
                in_two += usize::from(info.gpu().unwrap().two_launches);
            }
            Err(Error::KernelCannotRun { reason, .. }) => {
                let may_refuse = match reason {
                    // These depend on the layouts and on what a hopper kernel is made for.
                    Rejection::Output { .. } | Rejection::Tma { .. } | Rejection::ZeroK => true,
                    Rejection::Epilogue { .. } | Rejection::Batches { .. } => true,
                    _ => false,
                };
                assert!(family == Family::Hopper && may_refuse, "{reason}");
            }
            Err(error) => panic!("{}: {error}", kernel.name),
        }
    }
    (computed, in_two)
}

#[test]
fn naive_kernels_compute_every_epilogue() {
    let (computed, in_two) = check_family(Family::Naive, 1, 60);
    assert_eq!(computed, 60);
    assert!(in_two > 5);
}

#[test]
fn tiled_kernels_compute_every_epilogue() {
    assert_eq!(check_family(Family::Tiled, 2, 60).0, 60);
}

#[test]
fn tensor_core_kernels_compute_every_epilogue() {
    assert_eq!(check_family(Family::TensorCore, 3, 40).0, 40);
}

#[test]
fn hopper_kernels_compute_the_epilogues_they_are_made_for() {
    let (computed, _) = check_family(Family::Hopper, 4, 100);
    assert!(computed > 10, "{computed}");
}

#[test]
fn every_schedule_walks_all_products_of_a_batch() {
    let mut random = Random::new(5);
    let parts = Parts::draw(&mut random, Data::Exact);
    let size = Size {
        batches: 5,
        m: 40,
        n: 36,
        k: 7,
    };
    for schedule in [Schedule::Grid1d, Schedule::Persistent] {
        let device = device(7);
        let gemm = Gemm::new(&device).kernel("naive_f32").schedule(schedule);
        let info = check::<f32, f32>(
            &gemm,
            &device,
            &mut random,
            size,
            &parts,
            Data::Exact,
            DType::F32,
        );
        assert_eq!(info.unwrap().batches(), 5);
    }
    let device = device(8);
    let gemm = Gemm::new(&device).schedule(Schedule::Grid2d);
    let batch = tilewise::Layout::row_major(4, 4).batched(5);
    let error = gemm.plan_for::<f32, f32>(batch, batch, batch).unwrap_err();
    assert_eq!(error, Error::BatchedGrid2d { batches: 5 });
}

#[test]
fn matmul_multiplies_batches() {
    let mut random = Random::new(6);
    let device = device(10);
    let elements = |random: &mut Random, count: usize| -> Vec<f16> {
        let integers = (0..count).map(|_| f16::from_f32(random.below(5) as f32 - 2.0));
        integers.collect()
    };
    // K = 65 has hopper kernels pack what they cannot read.
    let a = device.from_slice_batched(&elements(&mut random, 3 * 40 * 65), 3, 40, 65);
    let b = device.from_slice(&elements(&mut random, 65 * 24), 65, 24);
    let (a, b) = (a.unwrap(), b.unwrap());
    for _ in 0..2 {
        let c = device.matmul(&a, &b).unwrap();
        assert_eq!((c.batches(), c.rows(), c.cols()), (3, 40, 24));
        let expected = tilewise::oracle::product(a.view(), b.view()).unwrap();
        assert_eq!(expected.worst(&c.to_vec().unwrap(), DType::F16), None);
    }
}

#[test]
fn epilogues_are_tuned() {
    let device = device(11);
    let a = device.from_slice(&[1.0_f32; 64 * 8], 64, 8).unwrap();
    let b = device.from_slice(&[2.0_f32; 8 * 48], 8, 48).unwrap();
    let bias = device.from_slice(&[0.5_f32; 48], 1, 48).unwrap();
    let mut c = device.zeros::<f32>(64, 48).unwrap();
    let mut tuner = tilewise::Tuner::in_memory().budget(Duration::from_millis(1));
    let epilogue = Epilogue::new().bias(tilewise::Bias::PerColumn).alpha(-1.0);
    let gemm = Gemm::new(&device).epilogue(epilogue);
    let inputs = Inputs::new().bias(bias.view());
    for origin in [tilewise::Origin::Measured, tilewise::Origin::Remembered] {
        let plan = gemm.tune_with(&a, &b, &mut c, &inputs, &mut tuner);
        let mut plan = plan.unwrap();
        assert_eq!(plan.info().origin(), origin);
        plan.run_with(&a, &b, &mut c, &inputs).unwrap();
        assert_eq!(c.to_vec().unwrap(), [-15.5; 64 * 48]);
    }
    let missing = gemm.tune(&a, &b, &mut c, &mut tuner).unwrap_err();
    assert!(matches!(
        missing,
        Error::Epilogue {
            argument: "bias",
            ..
        }
    ));
}

/// Gated pairs, in two launches, one of them with a workspace of gates and of split vectors.
#[test]
fn gated_pairs_take_two_launches_where_no_kernel_takes_them_in_one() {
    let device = device(9);
    let x = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 1, 4).unwrap();
    let one = device.from_slice(&[1.0_f32], 1, 1).unwrap();
    let bias = device.from_slice(&[0.5_f32, 0.0, -4.0, 1.0], 1, 4).unwrap();
    for (gated, expected) in [
        (Gated::Interleaved, [1.5 * 2.0, 0.0]),
        (Gated::Halves, [-1.5, 2.0 * 5.0]),
    ] {
        let mut c = device.zeros::<f32>(1, 2).unwrap();
        let epilogue = Epilogue::new()
            .activation(Activation::Relu)
            .bias(tilewise::Bias::PerColumn)
            .gated(gated);
        let gemm = Gemm::new(&device).epilogue(epilogue);
        let mut plan = gemm.plan(&one, &x, &mut c).unwrap();
        let info = *plan.info().gpu().unwrap();
        assert!(info.two_launches && info.workspace_bytes > 0);
        assert_eq!((info.m, info.n, info.k), (1, 4, 1));
        let inputs = Inputs::new().bias(bias.view());
        plan.run_with(&one, &x, &mut c, &inputs).unwrap();
        assert_eq!(c.to_vec().unwrap(), expected, "{gated:?}");
    }
}
