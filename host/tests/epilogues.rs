//! Epilogues, batches and types of C on the CPU device, against the f64 oracle.

mod common;

use common::Random;
use common::epilogue::{Data, Parts, Size, check};
use tilewise::{
    Activation, Bias, Device, Element, Epilogue, Error, Gated, Gemm, Inputs, Layout, Output, bf16,
    f16,
};

fn check_on_cpu<T: Element, O: Output<T>>(random: &mut Random, size: Size, data: Data) {
    let device = Device::cpu();
    let parts = Parts::draw(random, data);
    let gemm = Gemm::new(&device);
    check::<T, O>(&gemm, &device, random, size, &parts, data, T::DTYPE).unwrap();
}

/// Every pair of types.
fn check_types(random: &mut Random, size: Size, data: Data) {
    check_on_cpu::<f32, f32>(random, size, data);
    check_on_cpu::<f32, f16>(random, size, data);
    check_on_cpu::<f32, bf16>(random, size, data);
    check_on_cpu::<f16, f32>(random, size, data);
    check_on_cpu::<f16, f16>(random, size, data);
    check_on_cpu::<f16, bf16>(random, size, data);
    check_on_cpu::<bf16, f32>(random, size, data);
    check_on_cpu::<bf16, f16>(random, size, data);
    check_on_cpu::<bf16, bf16>(random, size, data);
}

#[test]
fn random_epilogues() {
    let mut random = Random::new(1);
    for data in [Data::Uniform, Data::Exact] {
        for _ in 0..60 {
            let size = Size {
                batches: random.below(4),
                m: random.below(40),
                n: 2 * random.below(20),
                k: random.below(40),
            };
            check_types(&mut random, size, data);
        }
    }
}

#[test]
fn epilogues_past_one_panel() {
    let mut random = Random::new(2);
    for (n, gated) in [
        (2060, None),
        (4120, Some(Gated::Interleaved)),
        (4120, Some(Gated::Halves)),
    ] {
        let size = Size {
            batches: 1,
            m: 520,
            n,
            k: 2,
        };
        let parts = Parts {
            gated,
            bias: Some(Bias::PerColumn),
            row_scale: true,
            col_scale: true,
            beta: 0.0,
            in_place: false,
            ..Parts::draw(&mut random, Data::Exact)
        };
        let device = Device::cpu();
        let gemm = Gemm::new(&device);
        let (data, input) = (Data::Exact, f16::DTYPE);
        check::<f16, f32>(&gemm, &device, &mut random, size, &parts, data, input).unwrap();
    }
}

#[test]
fn a_source_with_beta_0_is_not_read() {
    let device = Device::cpu();
    let a = device.from_slice(&[2.0_f32], 1, 1).unwrap();
    let mut c = device.from_slice(&[f32::NAN], 1, 1).unwrap();
    let gemm = Gemm::new(&device).epilogue(Epilogue::new().alpha(3.0).beta(0.0));
    gemm.run(&a, &a, &mut c, &Inputs::new()).unwrap();
    assert_eq!(c.to_vec().unwrap(), [12.0]);
    // With any other β, NaN in the source shows.
    let gemm = Gemm::new(&device).epilogue(Epilogue::new().beta(-0.5));
    c.view_mut().fill(f32::NAN).unwrap();
    gemm.run(&a, &a, &mut c, &Inputs::new().in_place()).unwrap();
    assert!(c.to_vec().unwrap()[0].is_nan());
}

#[test]
fn activations_have_their_values() {
    // From the definitions, to 9 digits.
    let cases: [(Activation, [f64; 3]); 6] = [
        (Activation::Identity, [-1.0, 0.5, 3.0]),
        (Activation::Relu, [0.0, 0.5, 3.0]),
        (Activation::LeakyRelu(0.1), [-0.1, 0.5, 3.0]),
        (Activation::Gelu, [-0.158_655_25, 0.345_731_23, 2.995_950_3]),
        (
            Activation::GeluTanh,
            [-0.158_808_01, 0.345_714_01, 2.996_362_7],
        ),
        (Activation::Silu, [-0.268_941_42, 0.311_229_66, 2.857_722_4]),
    ];
    let device = Device::cpu();
    let one = device.from_slice(&[1.0_f32], 1, 1).unwrap();
    let x = device.from_slice(&[-1.0_f32, 0.5, 3.0], 1, 3).unwrap();
    for (activation, expected) in cases {
        let mut c = device.zeros::<f32>(1, 3).unwrap();
        let gemm = Gemm::new(&device).epilogue(Epilogue::new().activation(activation));
        gemm.run(&one, &x, &mut c, &Inputs::new()).unwrap();
        for (found, expected) in c.to_vec().unwrap().into_iter().zip(expected) {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= 3e-7 * expected.abs(), "{activation:?}: {found}");
        }
    }
}

#[test]
fn one_plan_takes_other_values_and_inputs() {
    let device = Device::cpu();
    let a = device.from_slice(&[1.0_f32, 2.0], 1, 2).unwrap();
    let mut c = device.zeros::<f32>(1, 1).unwrap();
    // The device keeps one plan for both.
    for (alpha, bias, expected) in [(2.0, 1.0, 11.0), (-1.0, 0.5, -4.5)] {
        let bias = device.from_slice(&[bias], 1, 1).unwrap();
        let epilogue = Epilogue::new().alpha(alpha).bias(Bias::PerRow);
        let gemm = Gemm::new(&device).epilogue(epilogue);
        let inputs = Inputs::new().bias(bias.view());
        gemm.run(&a, a.view().t(), &mut c, &inputs).unwrap();
        assert_eq!(c.to_vec().unwrap(), [expected]);
    }
    // Without an α, it is another plan.
    Gemm::new(&device)
        .run(&a, a.view().t(), &mut c, &Inputs::new())
        .unwrap();
    assert_eq!(c.to_vec().unwrap(), [5.0]);
}

#[test]
fn matmul_multiplies_batches() {
    let device = Device::cpu();
    let a: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let a = device.from_slice_batched(&a, 3, 2, 2).unwrap();
    let b = device.from_slice(&[1.0_f32, 10.0], 2, 1).unwrap();
    let c = device.matmul(&a, &b).unwrap();
    assert_eq!((c.batches(), c.rows(), c.cols()), (3, 2, 1));
    assert_eq!(c.to_vec().unwrap(), [10.0, 32.0, 54.0, 76.0, 98.0, 120.0]);
    let c = device.matmul(b.view().t(), a.view().t()).unwrap();
    assert_eq!(c.layout(), Layout::row_major(1, 2).batched(3));
    let second = c.view().batch(1).unwrap();
    assert_eq!(second.to_vec().unwrap(), [54.0, 76.0]);
    let two = a.view().batch(0).unwrap();
    let two = two.with_layout(Layout::row_major(2, 2).batched(2)).unwrap();
    assert_eq!(
        device.matmul(&a, two).unwrap_err(),
        Error::BatchMismatch { a: 3, b: 2, c: 3 }
    );
    let none = device.zeros_batched::<f32>(0, 2, 2).unwrap();
    assert_eq!(device.matmul(&none, &b).unwrap().batches(), 0);
}

/// What is wrong with the epilogue of a product on the CPU: the argument and what was found.
fn refused(result: Result<(), Error>) -> (&'static str, String) {
    match result {
        Err(Error::Epilogue {
            argument, found, ..
        }) => (argument, found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_inputs_are_named() {
    let device = Device::cpu();
    let a = device.zeros::<f32>(2, 3).unwrap();
    let b = device.zeros::<f32>(3, 4).unwrap();
    let mut c = device.zeros::<f32>(2, 4).unwrap();
    let (row, column) = (
        device.zeros::<f32>(1, 4).unwrap(),
        device.zeros::<f32>(2, 1).unwrap(),
    );
    let mut run = |epilogue: Epilogue, inputs: &Inputs<f32>| {
        let gemm = Gemm::new(&device).epilogue(epilogue);
        gemm.run(&a, &b, &mut c, inputs)
    };
    let plain = Epilogue::new();
    let none = Inputs::new();
    let given = || "given".to_owned();
    let missing = || "not given".to_owned();
    let square = a.view().slice(0..2, 0..2).unwrap();
    for (argument, epilogue, vector) in [
        ("bias", plain.bias(Bias::PerColumn), none.bias(row.view())),
        ("bias", plain.bias(Bias::PerRow), none.bias(column.view())),
        (
            "row_scale",
            plain.row_scale(),
            none.row_scale(column.view()),
        ),
        ("col_scale", plain.col_scale(), none.col_scale(row.view())),
        (
            "source",
            plain.beta(1.0),
            none.source(b.view().slice(0..2, 0..4).unwrap()),
        ),
        ("source", plain.beta(1.0), none.in_place()),
    ] {
        assert_eq!(run(epilogue, &vector), Ok(()));
        assert_eq!(refused(run(epilogue, &none)), (argument, missing()));
        assert_eq!(refused(run(plain, &vector)), (argument, given()));
    }
    // A vector of the wrong direction, of another length, and with gaps.
    let by_row = plain.bias(Bias::PerRow);
    assert_eq!(
        refused(run(by_row, &none.bias(row.view()))),
        ("bias", "1×4 with strides (4, 1)".into())
    );
    let by_column = plain.bias(Bias::PerColumn);
    let short = row.view().slice(0..1, 0..3).unwrap();
    assert_eq!(refused(run(by_column, &none.bias(short))).0, "bias");
    let gaps = device.zeros::<f32>(1, 8).unwrap();
    let gaps = gaps.view().step(1, 2).unwrap();
    assert_eq!(
        refused(run(by_column, &none.bias(gaps))),
        ("bias", "1×4 with strides (8, 2)".into())
    );
    let source = refused(run(plain.beta(1.0), &none.source(square)));
    assert_eq!(source, ("source", "2×2 with strides (3, 1)".into()));
}

#[test]
fn gated_pairs_need_pairs_and_no_source() {
    let device = Device::cpu();
    let gated = Epilogue::new().gated(Gated::Halves);
    let plan = |epilogue: Epilogue, n: usize, of_c: usize| {
        let (a, b) = (Layout::row_major(2, 3), Layout::row_major(3, n));
        let c = Layout::row_major(2, of_c);
        let gemm = Gemm::new(&device).epilogue(epilogue);
        gemm.plan_for::<f32, f32>(a, b, c).map(drop)
    };
    assert_eq!(plan(gated, 8, 4), Ok(()));
    let (argument, found) = refused(plan(gated, 8, 8));
    assert_eq!(argument, "gated");
    assert_eq!(found, "true for B with 8 and C with 8 columns");
    assert_eq!(refused(plan(gated, 7, 3)).0, "gated");
    let (argument, found) = refused(plan(gated.beta(0.5), 8, 4));
    assert_eq!(argument, "beta");
    assert_eq!(found, "0.5 with gated pairs");
}

/// Only views of foreign memory can overlap C.
#[test]
fn a_source_may_be_c_but_not_overlap_it() {
    let device = Device::cpu();
    let two = device.from_slice(&[1.0_f32, 1.0], 2, 1).unwrap();
    let row = device.from_slice(&[1.0_f32, 1.0], 1, 2).unwrap();
    let mut memory = vec![1.0_f32; 64];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    let gemm = Gemm::new(&device).epilogue(Epilogue::new().beta(1.0));
    let run = |source: (usize, Layout), c: Layout| {
        // SAFETY: both lie in `memory`, which nothing else uses.
        let (source, c) = unsafe {
            (
                tilewise::MatrixView::<f32>::from_raw(
                    &device,
                    address + 4 * source.0 as u64,
                    source.1,
                )
                .unwrap(),
                tilewise::MatrixViewMut::<f32>::from_raw(&device, address, c).unwrap(),
            )
        };
        gemm.run(&two, &row, c, &Inputs::new().source(source))
    };
    let dense = Layout::row_major(2, 2);
    let wide = Layout::strided(2, 2, 8, 1);
    assert_eq!(run((0, dense), dense), Ok(()), "C itself");
    assert_eq!(run((4, dense), dense), Ok(()), "behind C");
    assert_eq!(run((2, wide), wide), Ok(()), "beside C, in the same rows");
    for (source, c) in [
        ((0, dense.transposed()), dense),
        ((1, dense), dense),
        ((1, wide), wide),
        ((8, wide), wide),
        ((0, dense), wide),
    ] {
        let (argument, found) = refused(run(source, c));
        assert_eq!(argument, "source");
        assert!(found.ends_with("which overlaps C"), "{found}");
    }
}
