//! cuBLASLt as a candidate: the same device pointers, stream and context as
//! tilewise; the best of its first eight heuristics, measured cold; 32 MiB of
//! workspace.
//!
//! cuBLASLt's matrices are column-major. A row-major matrix is the column-major form of its
//! transpose, so it computes Cᵀ = Bᵀ·Aᵀ: the first operand is B as stored, the second A as
//! stored, and an operand that is stored transposed gets `CUBLAS_OP_T`.

use crate::candidates::candidate::{Candidate, Label};
use crate::candidates::cublaslt_library as library;
use crate::error::Error;
use crate::measure::memset::L2Flush;
use crate::measure::problem_data::ProblemData;
use crate::measure::regime;
use crate::measure::stats::median;
use crate::measure::turns::Turns;
use crate::measure::watch::{Expected, Watch, Watched};
use crate::problem::shape::BlasLayout;
use crate::problem::spec::ProblemSpec;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use gpu_kernels::DType;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilewise::{Device, Element, Matrix, Output};

const WORKSPACE_BYTES: usize = 32 << 20;
const HEURISTICS: usize = 8;

/// An open libcublasLt, with its handle and workspace on one device.
pub struct CublasLt {
    handle: sys::cublasLtHandle_t,
    workspace: Matrix<f32>,
    device: Device,
    /// Such as `cuBLASLt 13.0.2`.
    pub version: String,
    /// Where the library was found.
    pub path: PathBuf,
}

impl CublasLt {
    /// Opens the library for `device`; see [`library::open`].
    ///
    /// # Errors
    /// The library was not found, or refused: the reason as text.
    pub fn open(device: &Device, explicit: Option<&Path>, python: &Path) -> Result<Self, String> {
        let path = library::open(explicit, python)?;
        let workspace = device
            .zeros(WORKSPACE_BYTES / 4096, 1024)
            .map_err(|error| error.to_string())?;
        let handle = result::create_handle().map_err(|error| error.to_string())?;
        // SAFETY: the library is open and has the function.
        let number = unsafe { sys::cublasLtGetVersion() };
        Ok(CublasLt {
            handle,
            workspace,
            device: device.clone(),
            version: format!("cuBLASLt {}", version(number)),
            path,
        })
    }

    fn stream(&self) -> Result<&cust::stream::Stream, Error> {
        let no_gpu = || Error::Usage("cuBLASLt needs a GPU".to_owned());
        self.device.cust_stream().ok_or_else(no_gpu)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own; its GEMMs are done when the
        // stream is, and destroying it waits for them.
        if let Err(error) = unsafe { result::destroy_handle(self.handle) } {
            eprintln!("cublasLtDestroy answered {error}");
        }
    }
}

/// The name of an algorithm in tables.
fn kernel(algorithm: usize, count: usize) -> String {
    format!("heuristic {} of {count}", algorithm + 1)
}

/// `cublasLtGetVersion`'s number as text. Since version 13 (and 11) it is
/// major · 10000 + minor · 100 + patch.
fn version(number: usize) -> String {
    format!(
        "{}.{}.{}",
        number / 10_000,
        number / 100 % 100,
        number % 100
    )
}

/// One problem, described to cuBLASLt.
pub struct CublasLtGemm {
    label: Label,
    handle: sys::cublasLtHandle_t,
    stream: sys::cudaStream_t,
    operation: Descriptor<sys::cublasLtMatmulDesc_t>,
    /// B, A and C: the order in which cuBLASLt gets them.
    layouts: [Descriptor<sys::cublasLtMatrixLayout_t>; 3],
    addresses: [u64; 3],
    workspace: u64,
    algorithms: Vec<sys::cublasLtMatmulAlgo_t>,
    chosen: usize,
}

impl CublasLtGemm {
    /// The fastest of the heuristics for `workload`: each is run once to warm up, then measured
    /// cold in turns with the others. A product is expected to take `expected`.
    ///
    /// # Errors
    /// No algorithm supports the problem, or a call failed.
    pub fn fastest<T: Element, O: Output<T>>(
        library: &CublasLt,
        workload: &ProblemData<T, O>,
        flush: &mut L2Flush,
        turns: &mut Turns,
        watch: &Watch,
        expected: Duration,
    ) -> Result<Self, Error> {
        let (problem, version) = (workload.problem, &library.version);
        watch.begin(Duration::ZERO, format!("heuristics, {problem}, {version}"));
        let mut gemm = CublasLtGemm::new(library, workload)?;
        let stream = library.stream()?;
        let count = gemm.algorithms.len();
        let heuristic = |algorithm| Expected {
            name: format!("{version} {}", kernel(algorithm, count)),
            product: expected,
        };
        let watched = Watched::new(watch, problem, (0..count).map(heuristic).collect());
        let mut launch = |algorithm: usize| gemm.enqueue(algorithm);
        for algorithm in 0..count {
            watched.wait("warming up", algorithm, 1);
            launch(algorithm)?;
            stream.synchronize()?;
        }
        let samples = regime::cold(stream, flush, turns, &watched, Duration::ZERO, &mut launch)?;
        let time = |at: &usize| median(&samples[*at].milliseconds).unwrap_or(f64::INFINITY);
        let fastest = (0..count).min_by(|a, b| time(a).total_cmp(&time(b)));
        gemm.choose(fastest.unwrap_or(0));
        Ok(gemm)
    }

    /// The first of the heuristics for `workload`. Nothing is launched, as a profiler's run
    /// needs it.
    ///
    /// # Errors
    /// No algorithm supports the problem, or a call failed.
    pub fn new<T: Element, O: Output<T>>(
        library: &CublasLt,
        workload: &ProblemData<T, O>,
    ) -> Result<Self, Error> {
        let no_gpu = || Error::Usage("cuBLASLt needs matrices on a GPU".to_owned());
        let [a, b, c] = workload.addresses().ok_or_else(no_gpu)?;
        let workspace = library.workspace.device_address().ok_or_else(no_gpu)?;
        let ProblemSpec { shape, layout, .. } = workload.problem;
        let operation = operation(workload.problem)?;
        let layouts = [
            matrix_layout(T::DTYPE, layout.stored_b(shape))?,
            matrix_layout(T::DTYPE, layout.stored_a(shape))?,
            matrix_layout(O::DTYPE, (shape.m, shape.n))?,
        ];
        let algorithms = heuristics(library.handle, &operation, &layouts)?;
        let mut gemm = CublasLtGemm {
            label: Label::of(&library.version),
            handle: library.handle,
            stream: library.stream()?.as_inner().cast(),
            operation,
            layouts,
            addresses: [b, a, c],
            workspace,
            algorithms,
            chosen: 0,
        };
        gemm.choose(0);
        Ok(gemm)
    }

    fn choose(&mut self, algorithm: usize) {
        self.chosen = algorithm;
        self.label.kernel = kernel(algorithm, self.algorithms.len());
    }

    fn enqueue(&mut self, algorithm: usize) -> Result<(), Error> {
        let [b, a, c] = self.addresses.map(|address| address as *mut c_void);
        let (one, zero) = (1.0f32, 0.0f32);
        // SAFETY: the descriptors live; the addresses are those of the workload
        // that the layouts describe, which outlives the launch (reading C or
        // synchronising comes before it is dropped); alpha and beta are read
        // before the call returns.
        unsafe {
            result::matmul(
                self.handle,
                self.operation.raw,
                (&raw const one).cast(),
                (&raw const zero).cast(),
                b,
                self.layouts[0].raw,
                a,
                self.layouts[1].raw,
                c,
                self.layouts[2].raw,
                c,
                self.layouts[2].raw,
                &self.algorithms[algorithm],
                self.workspace as *mut c_void,
                WORKSPACE_BYTES,
                self.stream,
            )
        }
        .map_err(failed("cublasLtMatmul"))
    }
}

impl<T: Element, O: Output<T>> Candidate<T, O> for CublasLtGemm {
    fn label(&self) -> &Label {
        &self.label
    }

    fn launch(&mut self, workload: &mut ProblemData<T, O>) -> Result<(), Error> {
        debug_assert_eq!(
            workload.addresses().map(|[a, b, c]| [b, a, c]),
            Some(self.addresses)
        );
        self.enqueue(self.chosen)
    }
}

fn failed(call: &'static str) -> impl Fn(CublasError) -> Error {
    move |error| Error::CublasLt {
        call,
        status: error.to_string(),
    }
}

/// A descriptor of cuBLASLt, destroyed with its owner.
struct Descriptor<H: Copy> {
    raw: H,
    destroy: unsafe fn(H) -> Result<(), CublasError>,
}

impl<H: Copy> Drop for Descriptor<H> {
    fn drop(&mut self) {
        // SAFETY: created by the matching call, and destroyed only here. A failure would
        // leak a few bytes, and Drop cannot report it.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// Products in f32 (TF32 where asked; never lower for f32), op(B), op(A). What is as exact as f32
/// here is compared with f32.
fn operation(problem: ProblemSpec) -> Result<Descriptor<sys::cublasLtMatmulDesc_t>, Error> {
    use sys::cublasComputeType_t as Compute;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    let compute = match problem.dtype {
        DType::F16 | DType::Bf16 | DType::F16x3 => Compute::CUBLAS_COMPUTE_32F,
        DType::F32 => Compute::CUBLAS_COMPUTE_32F_PEDANTIC,
        DType::Tf32 => Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
    };
    let raw = result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)
        .map_err(failed("cublasLtMatmulDescCreate"))?;
    let operation = Descriptor {
        raw,
        destroy: result::destroy_matmul_desc,
    };
    let BlasLayout {
        a_transposed,
        b_transposed,
    } = problem.layout;
    for (attribute, transposed) in [
        (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, b_transposed),
        (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, a_transposed),
    ] {
        // cublasOperation_t: CUBLAS_OP_N is 0, CUBLAS_OP_T is 1.
        let value = i32::from(transposed);
        // SAFETY: the descriptor lives; the attribute is a 32-bit integer.
        unsafe {
            result::set_matmul_desc_attribute(
                operation.raw,
                attribute,
                (&raw const value).cast(),
                size_of_val(&value),
            )
        }
        .map_err(failed("cublasLtMatmulDescSetAttribute"))?;
    }
    Ok(operation)
}

/// A dense row-major matrix as cuBLASLt sees it: columns by rows, column-major.
fn matrix_layout(
    dtype: DType,
    (rows, cols): (usize, usize),
) -> Result<Descriptor<sys::cublasLtMatrixLayout_t>, Error> {
    let element = match dtype {
        DType::F16 => sys::cudaDataType::CUDA_R_16F,
        DType::Bf16 => sys::cudaDataType::CUDA_R_16BF,
        DType::F32 | DType::Tf32 | DType::F16x3 => sys::cudaDataType::CUDA_R_32F,
    };
    let raw = result::create_matrix_layout(element, cols as u64, rows as u64, cols as i64)
        .map_err(failed("cublasLtMatrixLayoutCreate"))?;
    Ok(Descriptor {
        raw,
        destroy: result::destroy_matrix_layout,
    })
}

/// The first [`HEURISTICS`] algorithms that fit the workspace, as ranked by cuBLASLt.
fn heuristics(
    handle: sys::cublasLtHandle_t,
    operation: &Descriptor<sys::cublasLtMatmulDesc_t>,
    [b, a, c]: &[Descriptor<sys::cublasLtMatrixLayout_t>; 3],
) -> Result<Vec<sys::cublasLtMatmulAlgo_t>, Error> {
    let preference = Descriptor {
        raw: result::create_matmul_pref().map_err(failed("cublasLtMatmulPreferenceCreate"))?,
        destroy: result::destroy_matmul_pref,
    };
    let workspace: u64 = WORKSPACE_BYTES as u64;
    // SAFETY: the preference lives; the attribute is a 64-bit integer.
    unsafe {
        result::set_matmul_pref_attribute(
            preference.raw,
            sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const workspace).cast(),
            size_of_val(&workspace),
        )
    }
    .map_err(failed("cublasLtMatmulPreferenceSetAttribute"))?;

    // SAFETY: integers, floats and a status, for all of which zero is a value
    // (status 0 is success).
    let mut found: [sys::cublasLtMatmulHeuristicResult_t; HEURISTICS] =
        unsafe { std::mem::zeroed() };
    let mut count = 0;
    // SAFETY: all descriptors live; there is room for as many results as asked for.
    unsafe {
        sys::cublasLtMatmulAlgoGetHeuristic(
            handle,
            operation.raw,
            b.raw,
            a.raw,
            c.raw,
            c.raw,
            preference.raw,
            HEURISTICS as i32,
            found.as_mut_ptr(),
            &mut count,
        )
    }
    .result()
    .map_err(failed("cublasLtMatmulAlgoGetHeuristic"))?;
    let usable: Vec<_> = found[..count as usize]
        .iter()
        .filter(|result| result.state.result().is_ok())
        .map(|result| result.algo)
        .collect();
    if usable.is_empty() {
        return Err(Error::CublasLt {
            call: "cublasLtMatmulAlgoGetHeuristic",
            status: "no algorithm for this problem".to_owned(),
        });
    }
    Ok(usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_numbers_are_readable() {
        assert_eq!(version(130_002), "13.0.2");
        assert_eq!(version(120_805), "12.8.5");
    }
}
