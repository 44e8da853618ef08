//! What can be said of tile orders without a GPU: block loads per wave, and
//! modelled L2 traffic (see [`tilewise::l2`]), for the kernels and orders that
//! a GPU of a given description would run.
//!
//! The kernel is chosen by the library's own rule, as if its PTX were built.

use crate::choice::{KernelChoice, Placement};
use crate::report::shorten;
use crate::shape::Shape;
use crate::table::Table;
use crate::workload::Problem;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::{KernelInfo, Operand, TileGrid, TileOrder};
use tilewise::l2::gpu::GPUS;
use tilewise::l2::{self, WaveLoads};
use tilewise::select::{self, Catalog, Choice, Request, Target};

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

/// The table of one problem: each kernel with each order. Kernels that cannot
/// run it get a line below the table that says why.
pub fn table(
    problem: Problem,
    kernels: &[KernelChoice],
    placements: &[Placement],
    gpu: &GpuDescription,
) -> String {
    let mut table = Table::new([
        "kernel",
        "tile",
        "grid",
        "order",
        "CTAs/wave",
        "loads/wave unshared",
        "of A",
        "of B",
        "shared",
        "L2 hit %",
        "L2 to SM GB",
        "DRAM read GB",
        "C write GB",
    ]);
    let mut notes = String::new();
    let mut seen = Vec::new();
    for &kernel in kernels {
        // A kernel that cannot run at all is said once, not once an order.
        if let Err(reason) = choose(problem, kernel, Placement::default(), &gpu.target) {
            notes += &format!("  not modelled: {kernel}: {}\n", shorten(&reason));
            continue;
        }
        for &placement in placements {
            match choose(problem, kernel, placement, &gpu.target) {
                // The model knows no schedule: waves are the same.
                Ok(choice) if seen.contains(&(choice.kernel.name, choice.order)) => {}
                Ok(choice) => {
                    seen.push((choice.kernel.name, choice.order));
                    table.row(row(problem, &choice, gpu));
                }
                Err(reason) => notes += &format!("  not modelled: {kernel}: {reason}\n"),
            }
        }
    }
    let body = if seen.is_empty() {
        String::new()
    } else {
        table.render()
    };
    format!(
        "\n{}  {}  layout {}\n{body}{notes}",
        problem.shape,
        problem.dtype.name(),
        problem.layout
    )
}

/// What the library would launch for `problem` on `target`, with `kernel` and `placement`
/// forced and every kernel built.
///
/// # Errors
/// Why it would refuse.
pub fn choose(
    problem: Problem,
    kernel: KernelChoice,
    placement: Placement,
    target: &Target,
) -> Result<Choice, String> {
    let Problem { shape, layout, .. } = problem;
    let size = |size: usize| u32::try_from(size).map_err(|_| format!("{size} is too large"));
    let operand = |(_, cols): (usize, usize), transposed: bool| {
        let (row_stride, col_stride) = match transposed {
            false => (cols as u64, 1),
            true => (1, cols as u64),
        };
        // Any address that the driver may return: 256-byte aligned.
        Operand {
            address: 1 << 20,
            row_stride,
            col_stride,
        }
    };
    let described = select::Problem {
        m: size(shape.m)?,
        n: size(shape.n)?,
        k: size(shape.k)?,
        input: problem.dtype,
        output: problem.output,
        a: operand(layout.stored_a(shape), layout.a_transposed),
        b: operand(layout.stored_b(shape), layout.b_transposed),
        c: operand((shape.m, shape.n), false),
    };
    let mut request = Request {
        order: placement.order,
        schedule: placement.schedule,
        ..Request::default()
    };
    match kernel {
        KernelChoice::Family(family) => request.family = Some(family),
        KernelChoice::Entry(name) => request.kernel = Some(name.to_owned()),
    }
    let catalog = Catalog {
        kernels: KERNELS,
        is_built: |_| true,
    };
    select::choose(catalog, &described, target, &request).map_err(|error| error.to_string())
}

/// The product as [`l2`] sees it. `transposed`: the kernel computes Cᵀ.
pub fn seen_by_l2(problem: Problem, kernel: &KernelInfo, transposed: bool) -> l2::Workload {
    let Shape { m, n, k } = problem.shape;
    let (m, n) = if transposed { (n, m) } else { (m, n) };
    let shape = [m, n, k].map(|extent| extent as u32);
    select::workload(kernel, shape, problem.dtype, problem.output)
}

/// Bytes from and to DRAM of one product with `kernel` and `order` on a GPU, by the
/// closed form: a benchmark has no time to simulate. `transposed`: the kernel computes Cᵀ.
pub fn estimated_dram_bytes(
    problem: Problem,
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

fn row(problem: Problem, choice: &Choice, gpu: &GpuDescription) -> Vec<String> {
    let Choice {
        kernel,
        transposed,
        order,
        grid,
        ..
    } = *choice;
    let product = seen_by_l2(problem, &kernel, transposed);
    let machine = gpu.target.machine(&kernel);
    let block = product.block;
    let loads = l2::block_loads(order, grid, product.tiles_k(), machine.ctas);
    let [unshared, a, b, shared] = means(loads);
    let traffic = l2::traffic(&product, order, machine);
    let gigabytes = |bytes: u64| format!("{:.3}", bytes as f64 / 1e9);
    let TileGrid { tiles_m, tiles_n } = grid;
    vec![
        kernel.name.to_owned(),
        format!("{}x{}x{}", block.m, block.n, block.k),
        format!("{tiles_m}x{tiles_n}"),
        order.to_string(),
        machine.ctas.to_string(),
        format!("{unshared:.0}"),
        format!("{a:.0}"),
        format!("{b:.0}"),
        format!("{shared:.0}"),
        format!("{:.1}", traffic.hit_rate() * 100.0),
        gigabytes(traffic.l2_to_sm_bytes),
        gigabytes(traffic.dram_read_bytes),
        gigabytes(traffic.c_write_bytes),
    ]
}

/// Means over the waves: loads without sharing, of A, of B, of both.
fn means(loads: impl Iterator<Item = WaveLoads>) -> [f64; 4] {
    let (mut sums, mut waves) = ([0; 4], 0);
    for wave in loads {
        waves += 1;
        for (sum, count) in sums
            .iter_mut()
            .zip([wave.uncached, wave.a, wave.b, wave.shared()])
        {
            *sum += count;
        }
    }
    sums.map(|sum| sum as f64 / f64::from(waves.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::placements;
    use crate::shape::Layout;
    use gpu_kernels::{DType, Family, OutputType};

    fn problem(shape: Shape) -> Problem {
        Problem {
            shape,
            layout: Layout::NN,
            dtype: DType::F16,
            output: OutputType::Input,
        }
    }

    #[test]
    fn every_order_gets_a_row() {
        let orders = [TileOrder::RowMajor, TileOrder::GroupedM { size: 8 }];
        let text = table(
            problem(Shape::new(512, 512, 128)),
            &[KernelChoice::Family(Family::Naive)],
            &placements(&orders, &[]),
            &H200,
        );
        assert!(text.contains("naive_f16"), "{text}");
        assert!(
            text.contains(" row ") && text.contains("grouped:8"),
            "{text}"
        );
    }

    #[test]
    fn a_kernel_of_another_type_is_explained() {
        let text = table(
            problem(Shape::new(64, 64, 64)),
            &[KernelChoice::Entry("naive_f32")],
            &[Placement::default()],
            &H200,
        );
        assert!(text.contains("not modelled: naive_f32"), "{text}");
    }

    #[test]
    fn what_fits_in_l2_is_read_once_however_it_is_transposed() {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == "naive_f16");
        let shape = Shape::new(256, 512, 128);
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

    #[test]
    fn means_are_per_wave() {
        let grid = TileGrid {
            tiles_m: 9,
            tiles_n: 9,
        };
        let loads = l2::block_loads(TileOrder::RowMajor, grid, 9, 9);
        assert_eq!(means(loads), [162.0, 9.0, 81.0, 90.0]);
    }
}
