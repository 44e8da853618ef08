//! `tilewise-bench rounding`: the errors of f32 products.

use crate::candidates::candidate::Candidate;
use crate::candidates::cublaslt::{CublasLt, CublasLtGemm};
use crate::error::Error;
use crate::measure::machine;
use crate::measure::problem_data::ProblemData;
use crate::problem::shape::{BlasLayout, GemmShape};
use crate::problem::spec::ProblemSpec;
use crate::records::files;
use crate::rounding::data::Data;
use crate::rounding::errors::{self, ErrorRow};
use crate::rounding::rounding_arguments::RoundingArgs;
use gpu_kernels::{DType, OutputType};
use tilewise::oracle::Product;
use tilewise::{Device, Family, Gemm, PlanInfo};

/// Runs the command; prints a table, writes the file.
///
/// # Errors
/// There is no GPU, the device failed, or the file cannot be written.
pub fn run(args: &RoundingArgs) -> Result<(), Error> {
    let device = machine::open_gpu_for("rounding")?;
    let cublaslt = CublasLt::open(&device, None, &args.python);
    if let Err(reason) = &cublaslt {
        println!("cuBLASLt not measured: {reason}");
    }
    let cublaslt = cublaslt.ok();
    let mut rows = Vec::new();
    for &data in &args.data {
        for &k in &args.depths {
            let shape = GemmShape {
                m: args.size as usize,
                n: args.size as usize,
                k: k as usize,
            };
            rows.extend(measure(&device, cublaslt.as_ref(), data, shape, args.seed)?);
            if let Some(path) = &args.csv {
                files::write_csv(&rows, path)?;
            }
        }
    }
    let baseline = cublaslt.map_or_else(String::new, |cublaslt| cublaslt.version.clone());
    print!("{}", errors::render(&rows, &baseline));
    Ok(())
}

/// The errors of all implementations on one problem, cuBLASLt in f32 first.
fn measure(
    device: &Device,
    cublaslt: Option<&CublasLt>,
    data: Data,
    shape: GemmShape,
    seed: u64,
) -> Result<Vec<ErrorRow>, Error> {
    let GemmShape { m, n, k } = shape;
    let (a, bt) = (data.lines(m, k, 0, seed), data.lines(n, k, 1, seed));
    let exact = errors::exact(&a, &bt, (m, n, k))?;
    let problem = |dtype| ProblemSpec {
        shape,
        layout: BlasLayout {
            a_transposed: false,
            b_transposed: true,
        },
        dtype,
        output: OutputType::Input,
    };
    let row = |implementation: &str, kernel: &str, product: &Product, found: &[f32]| {
        let (largest, mean) = errors::of(product, found);
        ErrorRow {
            data: data.name(),
            k,
            implementation: implementation.to_owned(),
            kernel: kernel.to_owned(),
            largest,
            mean,
        }
    };
    let mut rows = Vec::new();
    let mut workload =
        ProblemData::<f32, f32>::holding(device, problem(DType::F32), [&a, &bt], seed)?;
    if let Some(cublaslt) = cublaslt {
        let mut sgemm = CublasLtGemm::new(cublaslt, &workload)?;
        let found = workload.result(|workload| sgemm.launch(workload))?;
        let label = Candidate::<f32, f32>::label(&sgemm).clone();
        rows.push(row(&label.implementation, &label.kernel, &exact, &found));
    }
    for (dtype, family) in [
        (DType::F32, Family::Tiled),
        (DType::F16x3, Family::Hopper),
        (DType::F16x3, Family::TensorCore),
        (DType::Tf32, Family::Hopper),
    ] {
        let gemm = Gemm::new(device).precision(dtype.into()).family(family);
        let (a, b, c) = workload.operands();
        let mut plan = gemm.plan(a, b, c)?;
        let kernel = match plan.info() {
            PlanInfo::Gpu(info) => info.kernel.name,
            _ => "",
        };
        let found = workload.result(|workload| {
            let (a, b, c) = workload.operands();
            Ok(plan.run(a, b, c)?)
        })?;
        rows.push(row(dtype.name(), kernel, &exact, &found));
    }
    Ok(rows)
}
