//! The CPU device against the f64 oracle.

mod common;

use common::{Random, layout_variants};
use tilewise::{Device, Element, Gemm, Output, bf16, f16, oracle};

/// Plans and runs one product of random operands in the given strides, and
/// compares with the oracle.
fn check<T: Element, O: Output<T>>(random: &mut Random, m: usize, n: usize, k: usize) {
    let device = Device::cpu();
    let a = random.matrix::<T>(&device, m, k);
    let b = random.matrix::<T>(&device, k, n);
    let [(row_stride, col_stride), ..] = random.shuffled(layout_variants(m, n));
    let mut c = device
        .zeros_strided::<O>(m, n, row_stride, col_stride)
        .unwrap();
    // The old values of C must not matter.
    c.view_mut().fill(O::from_f64(f64::NAN)).unwrap();

    let mut plan = Gemm::new(&device)
        .plan(a.view(), b.view(), c.view_mut())
        .unwrap();
    plan.run(a.view(), b.view(), c.view_mut()).unwrap();

    let expected = oracle::product(a.view(), b.view()).unwrap();
    let worst = expected.worst(&c.to_vec().unwrap(), T::DTYPE);
    assert_eq!(
        worst,
        None,
        "{:?} -> {:?}: A {}, B {}, C {}",
        T::DTYPE,
        O::DTYPE,
        a.layout(),
        b.layout(),
        c.layout()
    );
}

/// Every type on one shape.
fn check_types(random: &mut Random, m: usize, n: usize, k: usize) {
    check::<f32, f32>(random, m, n, k);
    check::<f16, f16>(random, m, n, k);
    check::<f16, f32>(random, m, n, k);
    check::<bf16, bf16>(random, m, n, k);
    check::<bf16, f32>(random, m, n, k);
}

#[test]
fn random_shapes_and_strides() {
    let mut random = Random::new(1);
    for _ in 0..150 {
        let [m, n, k] = [(); 3].map(|()| random.below(70));
        check_types(&mut random, m, n, k);
    }
}

#[test]
fn shapes_past_one_panel() {
    let mut random = Random::new(2);
    check_types(&mut random, 515, 3, 9);
    check_types(&mut random, 3, 2051, 9);
    check_types(&mut random, 514, 2050, 2);
}

/// f16 sums that an f16 accumulator would get wrong: 4096 terms of 1 stick at
/// 2048, where the spacing of f16 becomes 2.
#[test]
fn sixteen_bit_types_accumulate_in_f32() {
    let device = Device::cpu();
    let ones = device.from_slice(&[f16::ONE; 4096], 1, 4096).unwrap();
    let sum = device.matmul(&ones, ones.view().t()).unwrap();
    assert_eq!(sum.to_vec().unwrap(), [f16::from_f32(4096.0)]);
    let ones = device.from_slice(&[bf16::ONE; 4096], 1, 4096).unwrap();
    let sum = device.matmul(&ones, ones.view().t()).unwrap();
    assert_eq!(sum.to_vec().unwrap(), [bf16::from_f32(4096.0)]);
}

fn small_integers_are_exact<T: Element>(seed: u64) {
    let device = Device::cpu();
    let mut random = Random::new(seed);
    for (m, n, k) in [(1, 1, 1), (2, 3, 4), (17, 5, 16), (33, 65, 31)] {
        let a = random.integers::<T>(&device, m, k);
        let b = random.integers::<T>(&device, k, n);
        let c = device.matmul(&a, &b).unwrap().to_vec().unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap().values;
        let found: Vec<_> = c.into_iter().map(Element::to_f64).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn small_integers() {
    small_integers_are_exact::<f32>(3);
    small_integers_are_exact::<f16>(4);
    small_integers_are_exact::<bf16>(5);
}

#[test]
fn without_depth_c_becomes_zeros() {
    let device = Device::cpu();
    let a = device.zeros::<f16>(3, 0).unwrap();
    let b = device.zeros::<f16>(0, 2).unwrap();
    let mut c = device.from_slice(&[f16::NAN; 6], 3, 2).unwrap();
    let mut plan = Gemm::new(&device)
        .plan(a.view(), b.view(), c.view_mut())
        .unwrap();
    plan.run(a.view(), b.view(), c.view_mut()).unwrap();
    assert_eq!(c.to_vec().unwrap(), [f16::ZERO; 6]);

    let (a, b) = (device.zeros::<f32>(3, 0), device.zeros::<f32>(0, 2));
    let c = device.matmul(&a.unwrap(), &b.unwrap()).unwrap();
    assert_eq!(c.to_vec().unwrap(), [0.0; 6]);
}

#[test]
fn without_rows_or_columns_there_is_nothing_to_do() {
    let device = Device::cpu();
    for (m, n, k) in [(0, 4, 3), (4, 0, 3), (0, 0, 0), (0, 5, 0)] {
        let a = device.zeros::<bf16>(m, k).unwrap();
        let b = device.zeros::<bf16>(k, n).unwrap();
        let c = device.matmul(&a, &b).unwrap();
        assert_eq!((c.rows(), c.cols()), (m, n));
        assert!(c.to_vec().unwrap().is_empty());
    }
}

#[test]
fn broadcast_inputs_repeat_a_row_or_a_column() {
    let device = Device::cpu();
    let row = device.from_slice(&[1.0_f32, 2.0, 3.0], 1, 3).unwrap();
    // Four times the same row, and one column twice.
    let a = row.view().with_strides(4, 3, 0, 1).unwrap();
    let b = row.view().with_strides(3, 2, 1, 0).unwrap();
    let c = device.matmul(a, b).unwrap();
    assert_eq!(c.to_vec().unwrap(), [14.0; 8]);
}

#[test]
fn the_space_between_elements_of_c_stays() {
    let device = Device::cpu();
    let a = device.from_slice(&[2.0_f32; 4], 2, 2).unwrap();
    let mut host = device.from_slice(&[7.0_f32; 30], 5, 6).unwrap();
    let mut plan = {
        let c = host.view_mut().slice(1..5, 1..6).unwrap();
        let c = c.step(3, 3).unwrap();
        Gemm::new(&device).plan(a.view(), a.view(), c).unwrap()
    };
    let c = host.view_mut().slice(1..5, 1..6).unwrap().step(3, 3);
    plan.run(a.view(), a.view(), c.unwrap()).unwrap();
    let mut expected = [7.0; 30];
    for place in [7, 10, 25, 28] {
        expected[place] = 8.0;
    }
    assert_eq!(host.to_vec().unwrap(), expected);
}

#[test]
fn a_plan_from_layouts_is_that_from_operands() {
    let device = Device::cpu();
    let mut random = Random::new(7);
    let (m, n, k) = (9, 14, 33);
    for _ in 0..20 {
        let a = random.matrix::<bf16>(&device, m, k);
        let b = random.matrix::<bf16>(&device, k, n);
        let mut c = device.zeros::<f32>(m, n).unwrap();
        let gemm = Gemm::new(&device);
        let mut by_layout = gemm
            .plan_for::<bf16, f32>(a.layout(), b.layout(), c.layout())
            .unwrap();
        let by_operands = gemm.plan(&a, &b, &mut c).unwrap();
        assert_eq!(by_layout.info(), by_operands.info());
        by_layout.run(&a, &b, &mut c).unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap();
        assert_eq!(expected.worst(&c.to_vec().unwrap(), bf16::DTYPE), None);
    }
}

#[test]
fn a_plan_runs_again_on_other_operands() {
    let device = Device::cpu();
    let mut random = Random::new(6);
    let [a, a2, b] = [(); 3].map(|()| random.integers::<f16>(&device, 8, 8));
    let mut c = device.zeros::<f16>(8, 8).unwrap();
    let mut plan = Gemm::new(&device)
        .plan(a.view(), b.view(), c.view_mut())
        .unwrap();
    for a in [&a, &a2, &a] {
        plan.run(a.view(), b.view(), c.view_mut()).unwrap();
        let expected = oracle::product(a.view(), b.view()).unwrap();
        assert_eq!(expected.worst(&c.to_vec().unwrap(), f16::DTYPE), None);
    }
}

/// A wrong product must exceed the oracle's bound.
#[test]
fn the_oracle_notices_one_missing_term() {
    let device = Device::cpu();
    let a = device.from_slice(&[1.0_f32; 64], 1, 64).unwrap();
    let expected = oracle::product(a.view(), a.view().t()).unwrap();
    assert_eq!(expected.worst(&[64.0_f32], f32::DTYPE), None);
    assert!(expected.worst(&[63.0_f32], f32::DTYPE).is_some());
    assert!(expected.worst(&[f32::NAN], f32::DTYPE).is_some());
    assert!(
        expected
            .worst(&[bf16::from_f32(63.0)], bf16::DTYPE)
            .is_some()
    );
}

/// The numbers of rows at which the products below are computed: few, and past one panel.
const SHAPES: [(usize, usize); 7] = [
    (1, 1),
    (1, 40),
    (3, 7),
    (17, 1),
    (64, 33),
    (200, 40),
    (514, 2),
];

/// The bits of the first rows and columns of random products, over numbers of rows and columns
/// and over layouts; with `batch_invariant` or without. Returns how many products differ from
/// the largest.
fn differing<T: Element, O: Output<T>>(batch_invariant: bool, k: usize) -> usize {
    let (device, mut random) = (Device::cpu(), Random::new(7));
    let gemm = Gemm::new(&device).batch_invariant(batch_invariant);
    let (rows, cols) = (515, 41);
    let a = random.matrix::<T>(&device, rows, k);
    let b = random.matrix::<T>(&device, k, cols);
    let product = |m, n, random: &mut Random| {
        let (a, b) = (
            a.view().slice(0..m, 0..k).unwrap(),
            b.view().slice(0..k, 0..n).unwrap(),
        );
        let [(row_stride, col_stride), ..] = random.shuffled(layout_variants(m, n));
        let mut c = (device.zeros_strided::<O>(m, n, row_stride, col_stride)).unwrap();
        let mut plan = gemm.plan(a, b, &mut c).unwrap();
        plan.run(a, b, &mut c).unwrap();
        c.to_vec().unwrap()
    };
    let whole = product(rows, cols, &mut random);
    let expected = oracle::product(a.view(), b.view()).unwrap();
    assert_eq!(expected.worst(&whole, T::DTYPE), None);
    let shapes = SHAPES.into_iter().filter(|&(m, n)| {
        let part = product(m, n, &mut random);
        let expected = (0..m).flat_map(|row| &whole[row * cols..][..n]);
        !part.iter().eq(expected)
    });
    shapes.count()
}

#[test]
fn batch_invariant_rows_are_the_same_in_every_product() {
    for k in [0, 1, 5, 300] {
        assert_eq!(differing::<f32, f32>(true, k), 0);
        assert_eq!(differing::<f16, f32>(true, k), 0);
        assert_eq!(differing::<bf16, bf16>(true, k), 0);
    }
    // What the test tells apart: the crate that multiplies otherwise adds as the shape suits it.
    assert!(differing::<f32, f32>(false, 2048) > 0);
}
