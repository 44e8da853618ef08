//! Tests of every error that can occur without a GPU, and of the values that it names.

use tilewise::{
    Block, DType, Device, Error, Family, Gemm, Layout, Operand, PlanInfo, Precision, Schedule,
    TileOrder, f16,
};

fn layout(rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> Layout {
    Layout::strided(rows, cols, row_stride, col_stride)
}

#[test]
fn shapes_that_do_not_belong_together() {
    let device = Device::cpu();
    let a = device.zeros::<f32>(2, 3).unwrap();
    let b = device.zeros::<f32>(4, 5).unwrap();
    let error = device.matmul(&a, &b).unwrap_err();
    assert_eq!(
        error,
        Error::ShapeMismatch {
            a: (2, 3),
            b: (4, 5),
            c: (2, 5)
        }
    );
    assert_eq!(
        error.to_string(),
        "A is 2×3, B is 4×5, C is 2×5; accepted: A M×K, B K×N, C M×N"
    );

    // A and B match, but C has another shape than their product.
    let mut c = device.zeros::<f32>(2, 3).unwrap();
    let plan = Gemm::new(&device).plan(a.view(), a.view().t(), c.view_mut());
    assert_eq!(
        plan.unwrap_err(),
        Error::ShapeMismatch {
            a: (2, 3),
            b: (3, 2),
            c: (2, 3)
        }
    );
}

#[test]
fn wrong_numbers_of_elements() {
    let device = Device::cpu();
    let (batches, rows, cols) = (1, 2, 3);
    let error = Error::ElementCount {
        batches,
        rows,
        cols,
        got: 5,
    };
    assert_eq!(device.from_slice(&[0.0_f32; 5], 2, 3).unwrap_err(), error);
    let mut matrix = device.zeros::<f32>(2, 3).unwrap();
    assert_eq!(matrix.copy_from_slice(&[0.0; 5]).unwrap_err(), error);
    assert_eq!(
        error.to_string(),
        "5 elements for a 2×3 matrix; accepted: 6"
    );
    // 2⁶⁴ elements are not 0 elements.
    let rows = 1 << 32;
    assert!(device.from_slice::<f32>(&[], rows, rows).is_err());
}

#[test]
fn matrices_past_the_address_space_or_the_memory() {
    let device = Device::cpu();
    let side = 1_usize << 32;
    let error = device.zeros::<f32>(side, side).unwrap_err();
    let overflow = |layout| Error::SizeOverflow { layout };
    assert_eq!(error, overflow(Layout::row_major(side, side)));
    // A `usize` can count the elements, but not the bytes.
    let error = device.zeros::<f32>(side, side >> 3).unwrap_err();
    assert_eq!(error, overflow(Layout::row_major(side, side >> 3)));

    // 2⁵⁸ bytes: more than any process can map.
    match device.zeros::<f32>(1 << 28, 1 << 28).unwrap_err() {
        Error::OutOfMemory {
            device,
            wanted,
            free,
        } => {
            assert_eq!((device.as_str(), wanted), ("the CPU", 1 << 58));
            assert!(free > 0 && free < wanted);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn views_that_are_none() {
    let device = Device::cpu();
    let mut matrix = device.zeros::<f32>(4, 5).unwrap();
    let view = matrix.view();
    let error = view.slice(1..3, 2..6).unwrap_err();
    assert_eq!(
        error,
        Error::SliceRange {
            axis: "columns",
            start: 2,
            end: 6,
            len: 5
        }
    );
    #[allow(clippy::reversed_empty_ranges, reason = "the error under test")]
    let backwards = view.slice(3..2, 0..1);
    assert!(matches!(
        backwards,
        Err(Error::SliceRange {
            axis: "rows",
            start: 3,
            end: 2,
            ..
        })
    ));
    assert_eq!(
        view.step(1, 0).unwrap_err(),
        Error::ZeroStep { axis: "columns" }
    );
    let corner = view.slice(1..4, 1..5).unwrap();
    assert_eq!(
        corner.with_strides(2, 2, 14, 1).unwrap_err(),
        Error::OutOfBounds {
            layout: layout(2, 2, 14, 1),
            offset: 6,
            elements: 20
        }
    );
    assert!(view.with_strides(3, 3, usize::MAX, usize::MAX).is_err());
    assert!(view.with_strides(5, 5, 0, 1).is_ok(), "inputs may repeat");

    let aliasing = matrix.view_mut().with_strides(5, 5, 0, 1).unwrap_err();
    let layout = layout(5, 5, 0, 1);
    assert_eq!(aliasing, Error::Aliasing { layout });
    let strided = device.zeros_strided::<f32>(4, 4, 2, 3).unwrap_err();
    assert_eq!(
        strided.to_string(),
        "two elements of a matrix of 4×4 with strides (2, 3) share an address; accepted where it \
         is written: strides that keep all apart"
    );
}

#[test]
fn other_operands_than_planned() {
    let device = Device::cpu();
    let a = device.zeros::<f32>(4, 4).unwrap();
    let mut c = device.zeros::<f32>(4, 4).unwrap();
    let mut plan = Gemm::new(&device)
        .plan(a.view(), a.view(), c.view_mut())
        .unwrap();
    let error = plan.run(a.view(), a.view().t(), c.view_mut()).unwrap_err();
    assert_eq!(
        error,
        Error::PlanMismatch {
            operand: Operand::B,
            found: layout(4, 4, 1, 4),
            planned: layout(4, 4, 4, 1)
        }
    );
    let part = c.view_mut().slice(0..4, 0..3).unwrap();
    let error = plan.run(a.view(), a.view(), part).unwrap_err();
    assert!(matches!(
        error,
        Error::PlanMismatch {
            operand: Operand::C,
            ..
        }
    ));
}

#[test]
fn layouts_that_no_operands_have() {
    let gemm = Gemm::new(&Device::cpu());
    let square = Layout::row_major(4, 4);
    let plan = |a, b, c| gemm.plan_for::<f32, f32>(a, b, c).map(drop);
    assert_eq!(plan(square, square, square), Ok(()));
    assert_eq!(
        plan(square, Layout::row_major(5, 4), square),
        Err(Error::ShapeMismatch {
            a: (4, 4),
            b: (5, 4),
            c: (4, 4)
        })
    );
    let repeated = layout(4, 4, 0, 1);
    assert_eq!(plan(repeated, square, square), Ok(()), "inputs may repeat");
    assert_eq!(
        plan(square, square, repeated),
        Err(Error::Aliasing { layout: repeated })
    );
    let vast = layout(4, 4, usize::MAX / 8, 1);
    assert_eq!(
        plan(vast, square, square),
        Err(Error::SizeOverflow { layout: vast })
    );
}

#[test]
fn nothing_is_silently_ignored_on_the_cpu() {
    let device = Device::cpu();
    let a = device.zeros::<f32>(2, 2).unwrap();
    let gemm = || Gemm::new(&device);
    let block = Block { m: 16, n: 16, k: 1 };
    for (forced, named) in [
        (gemm().kernel("naive_f32"), "kernel naive_f32"),
        (gemm().family(Family::Naive), "family naive"),
        (gemm().block(block), "Block { m: 16, n: 16, k: 1 }"),
        (gemm().precision(Precision::Tf32), "precision Tf32"),
    ] {
        let mut c = device.zeros::<f32>(2, 2).unwrap();
        let error = forced.plan(a.view(), a.view(), c.view_mut()).unwrap_err();
        assert_eq!(error, Error::CpuHasNoKernels { what: named.into() });
    }

    // The CPU has no tiles, so an order changes no result; the plan reports it as ignored.
    let mut c = device.zeros::<f32>(2, 2).unwrap();
    let portable = gemm().order(TileOrder::Hilbert).schedule(Schedule::Grid1d);
    let plan = portable.plan(&a, &a, &mut c).unwrap();
    match plan.info() {
        PlanInfo::Cpu(cpu) => {
            assert_eq!(cpu.ignored_order, Some(TileOrder::Hilbert));
            assert_eq!(cpu.ignored_schedule, Some(Schedule::Grid1d));
        }
        PlanInfo::Gpu(gpu) => panic!("{gpu}"),
    }
    assert_eq!(
        plan.info().to_string(),
        "the CPU, without tiles, order hilbert ignored, schedule Grid1d ignored"
    );

    for classes in [0, 3, 16] {
        let error = gemm().line_classes(classes).plan(&a, &a, &mut c);
        assert_eq!(error.unwrap_err(), Error::LineClasses { classes });
    }
    assert_eq!(
        Error::LineClasses { classes: 3 }.to_string(),
        "line_classes = 3; accepted: 1, 2, 4, 8"
    );
    gemm().line_classes(8).plan(&a, &a, &mut c).unwrap();

    let error = gemm().alignment(24).plan(&a, &a, &mut c).unwrap_err();
    assert_eq!(error, Error::Alignment { bytes: 24 });
    assert_eq!(
        error.to_string(),
        "alignment = 24 bytes; accepted: a power of two"
    );

    let half = device.zeros::<f16>(2, 2).unwrap();
    let mut c = device.zeros::<f16>(2, 2).unwrap();
    let error = gemm()
        .precision(Precision::Tf32)
        .plan(half.view(), half.view(), c.view_mut())
        .unwrap_err();
    assert_eq!(
        error,
        Error::PrecisionIgnored {
            input: DType::F16,
            precision: "Tf32",
        }
    );
}

#[test]
fn a_gpu_that_is_not_there() {
    let count = Device::gpu_count();
    match Device::gpu(count).unwrap_err() {
        Error::NoDevice { ordinal, found } => {
            assert_eq!(ordinal, count);
            assert!(!found.is_empty());
        }
        other => panic!("{other}"),
    }
    // With or without a GPU, the best device is one.
    let device = Device::best();
    assert!(count > 0 || device == Device::cpu());
    let one = device.from_slice(&[3.0_f32], 1, 1).unwrap();
    assert_eq!(device.matmul(&one, &one).unwrap().to_vec().unwrap(), [9.0]);
}
