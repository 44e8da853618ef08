//! `tilewise-bench matmul A.npy B.npy --out C.npy`.

use crate::candidates::planned::force;
use crate::error::Error;
use crate::measure::machine::{self, DeviceChoice};
use crate::measure::watch::{self, WaitArgs, Watch};
use crate::npy::{self, NpyElement, Values};
use crate::problem::names::{KernelChoice, Placement, schedule_name};
use clap::Args;
use gpu_kernels::TileOrder;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tilewise::{Device, Gemm, Matrix, MatrixView, PlanInfo};

/// Options of `matmul`.
#[derive(Debug, Args)]
pub struct MatmulArgs {
    /// A, M×K: f32 or f16, in C or Fortran order.
    pub a: PathBuf,
    /// B, K×N, of the same type.
    pub b: PathBuf,
    /// Where to write C, M×N, in the type of A and B and in C order.
    #[arg(long)]
    pub out: PathBuf,
    /// Where to multiply. [default: the first GPU, else the CPU]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,
    /// Family or entry point. [default: chosen by the library]
    #[arg(long)]
    pub kernel: Option<KernelChoice>,
    /// Tile order. [default: chosen by the library]
    #[arg(long)]
    pub order: Option<TileOrder>,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Read files of 16-bit unsigned integers as bfloat16, and write C in the same way.
    #[arg(long)]
    pub bf16: bool,
}

/// Reads A and B, multiplies them, writes C, and returns a line about it.
///
/// # Errors
/// A file is wrong, types or shapes do not fit, or the device refuses.
pub fn run(args: &MatmulArgs) -> Result<String, Error> {
    let watch = Watch::new(&args.wait, || ());
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = machine::open(args.device)?;
    if device.is_gpu() {
        let result = on_device(args, &device, &watch);
        watch.close();
        return result;
    }
    watch.rest();
    on_device(args, &device, &Watch::idle())
}

fn on_device(args: &MatmulArgs, device: &Device, watch: &Watch) -> Result<String, Error> {
    watch.rest();
    let a = npy::read(&args.a, args.bf16)?;
    let b = npy::read(&args.b, args.bf16)?;
    let shapes = [&a, &b].map(|matrix| (matrix.rows, matrix.cols, matrix.fortran));
    match (a.values, b.values) {
        (Values::F32(a), Values::F32(b)) => multiply(args, device, watch, shapes, &a, &b),
        (Values::F16(a), Values::F16(b)) => multiply(args, device, watch, shapes, &a, &b),
        (Values::Bf16(a), Values::Bf16(b)) => multiply(args, device, watch, shapes, &a, &b),
        (a, b) => Err(Error::Usage(format!(
            "A holds {} and B holds {}; both must hold one type",
            type_name(&a),
            type_name(&b)
        ))),
    }
}

fn type_name(values: &Values) -> &'static str {
    match values {
        Values::F32(_) => "f32",
        Values::F16(_) => "f16",
        Values::Bf16(_) => "bf16",
    }
}

/// Rows, columns, column-major.
type FileShape = (usize, usize, bool);

fn multiply<T: NpyElement>(
    args: &MatmulArgs,
    device: &Device,
    watch: &Watch,
    [a_shape, b_shape]: [FileShape; 2],
    a: &[T],
    b: &[T],
) -> Result<String, Error> {
    let copied = watch::copying(size_of_val(a) + size_of_val(b));
    watch.begin(copied, "copying A and B");
    let a = upload(device, a_shape, a)?;
    let b = upload(device, b_shape, b)?;
    let (a, b) = (view(&a, a_shape), view(&b, b_shape));
    let placement = Placement {
        line_classes: None,
        order: args.order,
        schedule: None,
    };
    let gemm = force(Gemm::new(device), args.kernel, placement);
    watch.begin(Duration::ZERO, "planning");
    let mut c = device.zeros::<T>(a.rows(), b.cols())?;
    let mut plan = gemm.plan(a, b, c.view_mut())?;
    let info = *plan.info();
    let how = match info {
        PlanInfo::Gpu(gpu) => {
            let schedule = schedule_name(gpu.schedule);
            format!("{} {} {schedule}", gpu.kernel.name, gpu.order)
        }
        PlanInfo::Cpu(_) => "the gemm crate".to_owned(),
    };
    let [m, n, k] = info.shape();
    let product = c.rows() * c.cols() * size_of::<T>();
    let product = info.estimate() + watch::copying(product);
    watch.begin(product, format!("{m}x{n}x{k}, {how}"));
    let start = Instant::now();
    plan.run(a, b, c.view_mut())?;
    device.synchronize()?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let elements = c.to_vec()?;
    watch.rest();
    npy::write(&args.out, c.rows(), c.cols(), &elements)?;
    watch.begin(copied, "freeing A, B and C");
    let (file, dtype, device) = (args.out.display(), T::DTYPE.name(), device.name());
    Ok(format!(
        "{file}: {m}x{n} = {m}x{k} times {k}x{n}, {dtype}, by {how} on {device}, \
         {milliseconds:.3} ms with the launch"
    ))
}

/// Copies the elements in their order: a file in Fortran order holds its transpose,
/// row-major.
fn upload<T: NpyElement>(
    device: &Device,
    (rows, cols, fortran): FileShape,
    values: &[T],
) -> Result<Matrix<T>, Error> {
    let (rows, cols) = if fortran { (cols, rows) } else { (rows, cols) };
    Ok(device.from_slice(values, rows, cols)?)
}

/// The matrix of the file.
fn view<T: NpyElement>(stored: &Matrix<T>, (_, _, fortran): FileShape) -> MatrixView<'_, T> {
    if fortran {
        stored.view().t()
    } else {
        stored.view()
    }
}
