//! Statements about tile orders that need no GPU: block loads per wave, and modelled L2
//! traffic (see [`tilewise::l2`]), for the kernels and orders that a GPU of a given
//! description would run.
//!
//! The kernel is chosen by the library's own rule, as if its PTX were built.

use crate::problem::names::{KernelChoice, Placement};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Family, KernelInfo, TileOrder};
use tilewise::l2;
use tilewise::l2::gpu::GPUS;
use tilewise::select::{self, Catalog, Choice, EpilogueForm, Request, Strides, Target};

/// A GPU as the model needs it.
#[derive(Clone, Copy, Debug)]
pub struct GpuDescription {
    /// Name, for the head of a table.
    pub name: &'static str,
    /// What the selection asks for.
    pub target: Target,
}

/// NVIDIA's H200 SXM, from its data sheet and the CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability".
pub const H200: GpuDescription = GpuDescription {
    name: "H200 SXM (132 SMs, 60 MiB of L2)",
    target: Target {
        compute_capability: GPUS[0].compute_capability,
        sms: GPUS[0].sms,
        shared_bytes_per_cta: 227 << 10,
        l2_bytes: GPUS[0].l2_bytes,
    },
};

/// What the library would launch for `problem` on `target`, with what `kernel` and
/// `placement` force, and every kernel built.
///
/// # Errors
/// Why it would refuse.
pub fn choose(
    problem: ProblemSpec,
    kernel: Option<KernelChoice>,
    placement: Placement,
    target: &Target,
) -> Result<Choice, String> {
    let described = described(problem)?;
    let mut request = Request {
        order: placement.order,
        schedule: placement.schedule,
        line_classes: placement.line_classes,
        ..Request::default()
    };
    match kernel {
        Some(KernelChoice::Family(family)) => request.family = Some(family),
        Some(KernelChoice::Entry(name)) => request.kernel = Some(name.to_owned()),
        None => {}
    }
    select::choose(ALL, &described, target, &request).map_err(|error| error.to_string())
}

/// The kernels for tensor cores that can run `problem` on `target` and read its operands as
/// well as any other of their family, with every kernel built; of a family, what is expected to be
/// fastest first.
pub fn kernels_worth_measuring(problem: ProblemSpec, target: &Target) -> Vec<&'static str> {
    let Ok(described) = described(problem) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for family in [Family::Hopper, Family::TensorCore] {
        let request = Request {
            family: Some(family),
            ..Request::default()
        };
        if let Ok(choices) = select::choices(ALL, &described, target, &request) {
            names.extend(choices.map(|choice| choice.kernel.name));
        }
    }
    names.dedup();
    names
}

/// Every kernel, as if it were built.
const ALL: Catalog = Catalog {
    kernels: KERNELS,
    is_built: |_| true,
};

/// `problem` as the selection sees it.
fn described(problem: ProblemSpec) -> Result<select::Problem, String> {
    let ProblemSpec { shape, layout, .. } = problem;
    let size = |size: usize| u32::try_from(size).map_err(|_| format!("{size} is too large"));
    let operand = |(_, cols): (usize, usize), transposed: bool| {
        let (row_stride, col_stride) = match transposed {
            false => (cols as u64, 1),
            true => (1, cols as u64),
        };
        Strides::new(row_stride, col_stride)
    };
    Ok(select::Problem {
        m: size(shape.m)?,
        n: size(shape.n)?,
        k: size(shape.k)?,
        batches: 1,
        input: problem.dtype,
        output: problem.output,
        a: operand(layout.stored_a(shape), layout.a_transposed),
        b: operand(layout.stored_b(shape), layout.b_transposed),
        c: operand((shape.m, shape.n), false),
        epilogue: EpilogueForm::PLAIN,
    })
}

/// The product as [`l2`] sees it. `transposed`: the kernel computes Cᵀ.
pub fn seen_by_l2(problem: ProblemSpec, kernel: &KernelInfo, transposed: bool) -> l2::Workload {
    let GemmShape { m, n, k } = problem.shape;
    let (m, n) = if transposed { (n, m) } else { (m, n) };
    let shape = [m, n, k].map(|extent| extent as u32);
    select::workload(kernel, shape, problem.dtype, problem.output)
}

/// Bytes from and to DRAM of one product with `kernel` and `order` on a GPU, by the
/// closed form: a benchmark has no time to simulate. `transposed`: the kernel computes Cᵀ.
pub fn estimated_dram_bytes(
    problem: ProblemSpec,
    kernel: &KernelInfo,
    transposed: bool,
    order: TileOrder,
    target: &Target,
) -> u64 {
    let product = seen_by_l2(problem, kernel, transposed);
    let read = l2::estimate(&product, order, target.machine(kernel));
    let written = u64::from(product.m) * u64::from(product.n) * u64::from(product.output_bytes);
    read as u64 + written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::shape::BlasLayout;
    use gpu_kernels::{DType, OutputType};

    fn problem(shape: GemmShape) -> ProblemSpec {
        ProblemSpec {
            shape,
            layout: BlasLayout::NN,
            dtype: DType::F16,
            output: OutputType::Input,
        }
    }

    #[test]
    fn what_fits_in_l2_is_read_once_however_it_is_transposed() {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == "naive_f16");
        let shape = GemmShape::new(256, 512, 128);
        for transposed in [false, true] {
            let bytes = estimated_dram_bytes(
                problem(shape),
                kernel.unwrap(),
                transposed,
                TileOrder::RowMajor,
                &H200.target,
            );
            let once = 2 * (256 * 128 + 128 * 512 + 256 * 512);
            assert!((once..once * 101 / 100).contains(&bytes), "{bytes} {once}");
        }
    }
}
