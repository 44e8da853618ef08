//! Tests of errors that only occur with a GPU.

use tilewise::select::Rejection;
use tilewise::{Device, Error, Family, Gemm, Matrix, Operand, Precision, Schedule, TileOrder, f16};

/// The name, the test, and whether it runs under compute-sanitizer, which reports every
/// error of the driver, even expected errors.
pub type ErrorCase = (&'static str, fn(&Device) -> Result<(), String>, bool);

/// All tests of errors.
pub const CASES: [ErrorCase; 12] = [
    ("errors/no-such-gpu", no_such_gpu, true),
    ("errors/out-of-memory", out_of_memory, false),
    ("errors/other-device", other_device, true),
    ("errors/shapes", shapes, true),
    ("errors/other-plan", other_plan, true),
    ("errors/unknown-kernel", unknown_kernel, true),
    ("errors/no-kernel", no_kernel, true),
    ("errors/pack-is-no-product", pack_is_no_product, true),
    ("errors/order-without-effect", order_without_effect, true),
    ("errors/too-many-tiles", too_many_tiles, true),
    ("errors/dimension-too-large", dimension_too_large, true),
    ("errors/works-after-errors", works_after_errors, false),
];

/// `result` must be an error that `$pattern` matches.
macro_rules! expect {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => Ok(()),
            Err(other) => Err(format!("another error: {other}")),
            Ok(_) => Err("no error".to_owned()),
        }
    };
}

fn message(error: Error) -> String {
    error.to_string()
}

fn zeros(device: &Device, rows: usize, cols: usize) -> Result<Matrix<f16>, String> {
    device.zeros(rows, cols).map_err(message)
}

fn no_such_gpu(_: &Device) -> Result<(), String> {
    let beyond = Device::gpu_count();
    expect!(Device::gpu(beyond), Error::NoDevice { ordinal, .. } if ordinal == beyond)
}

fn out_of_memory(device: &Device) -> Result<(), String> {
    let memory = device
        .gpu_info()
        .ok_or("a GPU has information")?
        .memory_bytes as usize;
    // This is twice the memory of the device.
    let (rows, cols) = (memory / 1024, 1024);
    expect!(
        device.zeros::<f16>(rows, cols),
        Error::OutOfMemory { wanted, free, .. }
            if wanted == 2 * rows as u64 * cols as u64 && free > 0 && free < wanted
    )
}

fn other_device(device: &Device) -> Result<(), String> {
    let cpu = Device::cpu();
    let (a, b) = (zeros(device, 4, 4)?, zeros(&cpu, 4, 4)?);
    expect!(
        device.matmul(&a, &b),
        Error::DeviceMismatch {
            operand: Operand::B,
            ..
        }
    )?;
    expect!(
        cpu.matmul(&a, &b),
        Error::DeviceMismatch {
            operand: Operand::A,
            ..
        }
    )
}

fn shapes(device: &Device) -> Result<(), String> {
    let (a, b) = (zeros(device, 4, 5)?, zeros(device, 6, 7)?);
    expect!(
        device.matmul(&a, &b),
        Error::ShapeMismatch {
            a: (4, 5),
            b: (6, 7),
            ..
        }
    )
}

fn other_plan(device: &Device) -> Result<(), String> {
    let (a, b, mut c) = (
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
    );
    let mut plan = Gemm::new(device)
        .plan::<f16, f16>(a.view(), b.view(), c.view_mut())
        .map_err(message)?;
    expect!(
        plan.run(a.view(), b.view().t(), c.view_mut()),
        Error::PlanMismatch {
            operand: Operand::B,
            ..
        }
    )
}

fn unknown_kernel(device: &Device) -> Result<(), String> {
    let (a, b, mut c) = (
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
    );
    let plan =
        Gemm::new(device)
            .kernel("nonesuch")
            .plan::<f16, f16>(a.view(), b.view(), c.view_mut());
    expect!(plan, Error::UnknownKernel { known, .. } if !known.is_empty())
}

fn no_kernel(device: &Device) -> Result<(), String> {
    let a: Matrix<f32> = device.zeros(8, 8).map_err(message)?;
    let b: Matrix<f32> = device.zeros(8, 8).map_err(message)?;
    let mut c: Matrix<f32> = device.zeros(8, 8).map_err(message)?;
    // There is no naive kernel for TF32.
    let plan = Gemm::new(device)
        .family(Family::Naive)
        .precision(Precision::Tf32)
        .plan::<f32, f32>(a.view(), b.view(), c.view_mut());
    expect!(plan, Error::NoKernel { .. })
}

/// Pack kernels are in the list of kernels, but cannot compute a product.
fn pack_is_no_product(device: &Device) -> Result<(), String> {
    let (a, b, mut c) = (
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
    );
    let mut plan = |gemm: Gemm| gemm.plan::<f16, f16>(a.view(), b.view(), c.view_mut());
    expect!(
        plan(Gemm::new(device).kernel("pack_16")),
        Error::KernelCannotRun {
            reason: Rejection::NoProduct,
            ..
        }
    )?;
    expect!(
        plan(Gemm::new(device).family(Family::Pack)),
        Error::NoKernel { .. }
    )
}

fn order_without_effect(device: &Device) -> Result<(), String> {
    let (a, b, mut c) = (
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
        zeros(device, 8, 8)?,
    );
    let plan = Gemm::new(device)
        .schedule(Schedule::Grid2d)
        .order(TileOrder::ColumnMajor)
        .plan::<f16, f16>(a.view(), b.view(), c.view_mut());
    expect!(
        plan,
        Error::OrderIgnored {
            order: TileOrder::ColumnMajor
        }
    )
}

/// A 2-D grid has at most 65535 rows of CTAs.
fn too_many_tiles(device: &Device) -> Result<(), String> {
    let rows = 16 * 65_536;
    let (a, b, mut c) = (
        zeros(device, rows, 1)?,
        zeros(device, 1, 1)?,
        zeros(device, rows, 1)?,
    );
    let mut plan = |schedule| {
        Gemm::new(device)
            .family(Family::Naive)
            .schedule(schedule)
            .plan::<f16, f16>(a.view(), b.view(), c.view_mut())
            .map(drop)
    };
    expect!(
        plan(Schedule::Grid2d),
        Error::TooManyTiles {
            tiles_m: 65_536,
            ..
        }
    )?;
    plan(Schedule::Grid1d).map_err(message)
}

/// A K past 2^31 needs no memory if a stride of 0 repeats one column.
fn dimension_too_large(device: &Device) -> Result<(), String> {
    let k = 1 << 31;
    let (one, mut c) = (zeros(device, 1, 1)?, zeros(device, 1, 1)?);
    let a = one.view().with_strides(1, k, 0, 0).map_err(message)?;
    let plan = Gemm::new(device).plan::<f16, f16>(a, a.t(), c.view_mut());
    expect!(plan, Error::DimensionTooLarge { dimension: "K", value, .. } if value == k)
}

/// Checks that the device still works.
fn works_after_errors(device: &Device) -> Result<(), String> {
    out_of_memory(device)?;
    let a = device
        .from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)
        .map_err(message)?;
    let product = device
        .matmul(&a, &a)
        .and_then(|c| c.to_vec())
        .map_err(message)?;
    if product == [7.0, 10.0, 15.0, 22.0] {
        Ok(())
    } else {
        Err(format!("wrong product {product:?}"))
    }
}
