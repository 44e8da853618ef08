//! Shows the effect of the tile order: it prints the bytes that an H200 would read from
//! DRAM for one product in several orders, and the order that the library chooses. All
//! figures come from the model, so the example needs no GPU.
//!
//! ```sh
//! cargo run --release -p tilewise --example orders
//! ```

use tilewise::l2::{self, gpu::GPUS};
use tilewise::select::{self, Catalog, EpilogueForm, Problem, Request, Strides, Target};
use tilewise::{DType, Error, OutputType, TileOrder};

/// M, N and K of the first layer of an MLP, in f16.
const SHAPE: [u32; 3] = [4096, 24576, 1536];

/// Computes the traffic and prints it.
///
/// # Errors
/// Returns an error if no kernel can run the product.
pub fn main() -> Result<(), Error> {
    let gpu = GPUS[0];
    // The shared memory of a CTA is from the CUDA C++ Programming Guide, compute
    // capability 9.0.
    let target = Target {
        compute_capability: gpu.compute_capability,
        sms: gpu.sms,
        shared_bytes_per_cta: 227 << 10,
        l2_bytes: gpu.l2_bytes,
    };

    // The library's choice among all its kernels, whether this build has their PTX or not.
    let [m, n, k] = SHAPE;
    let row_major = |cols: u32| Strides::new(cols.into(), 1);
    let problem = Problem {
        m,
        n,
        k,
        batches: 1,
        input: DType::F16,
        output: OutputType::Input,
        a: row_major(k),
        b: row_major(n),
        c: row_major(n),
        epilogue: EpilogueForm::PLAIN,
    };
    let catalog = Catalog {
        is_built: |_| true,
        ..Catalog::embedded()
    };
    let choice = select::choose(catalog, &problem, &target, &Request::default())?;
    let kernel = choice.kernel;
    println!("{m}x{n}x{k} f16 on {}: {}", gpu.name, kernel.name);

    // The model needs the product that the kernel computes, which may be the transpose.
    let sides = if choice.transposed { [n, m] } else { [m, n] };
    let shape = [sides[0], sides[1], k];
    let workload = select::workload(&kernel, shape, problem.input, problem.output);
    let machine = target.machine(&kernel);
    println!("order         DRAM read   L2 hits   at least");
    let mut orders = TileOrder::all(8).to_vec();
    if !orders.contains(&choice.order) {
        orders.push(choice.order);
    }
    for order in orders {
        let traffic = l2::traffic(&workload, order, machine);
        let bound = l2::bound(&workload, &traffic, &gpu);
        let mark = if order == choice.order {
            "  chosen"
        } else {
            ""
        };
        println!(
            "{:12} {:7.3} GB   {:5.1} %   {:4.0} µs{}",
            order.to_string(),
            traffic.dram_read_bytes as f64 / 1e9,
            100.0 * traffic.hit_rate(),
            1e6 * bound.seconds,
            mark
        );
    }
    Ok(())
}
