//! A linear layer, Y = X·Wᵀ, from f16 to f32. The product is planned once, run often and
//! timed, on the first GPU, or on the CPU if there is no GPU.
//!
//! ```sh
//! cargo run --release -p tilewise --example matmul
//! ```

use std::time::Instant;

use tilewise::{Device, Error, Gemm, f16};

/// Runs the product and prints its time.
///
/// # Errors
/// Returns an error if the GPU has no memory left, or has failed.
pub fn main() -> Result<(), Error> {
    let device = Device::best();
    let (tokens, inputs, outputs) = match device.is_gpu() {
        true => (4096, 4096, 4096),
        false => (128, 256, 192),
    };

    // W is stored as in PyTorch's `nn.Linear`, outputs × inputs. Its transpose is a view
    // and needs no copy.
    let x = device.from_slice(&integers(tokens * inputs, 3), tokens, inputs)?;
    let w = device.from_slice(&integers(outputs * inputs, 5), outputs, inputs)?;
    let mut y = device.zeros::<f32>(tokens, outputs)?;

    let mut plan = Gemm::new(&device).plan(&x, w.view().t(), &mut y)?;
    println!("{tokens}x{outputs}x{inputs} on {device}");
    println!("chosen: {}", plan.info());

    // On a GPU, `run` only enqueues work, so the time ends when the device has finished.
    plan.run(&x, w.view().t(), &mut y)?;
    device.synchronize()?;
    let (runs, start) = (10, Instant::now());
    for _ in 0..runs {
        plan.run(&x, w.view().t(), &mut y)?;
    }
    device.synchronize()?;
    let seconds = start.elapsed().as_secs_f64() / f64::from(runs);
    let operations = 2.0 * (tokens * outputs * inputs) as f64;
    let (milliseconds, gigaflops) = (1e3 * seconds, operations / seconds / 1e9);
    println!("{milliseconds:.3} ms a product, {gigaflops:.1} GFLOP/s");

    // Sums of integers are exact, so the result must be right to the last bit.
    let (x_last, w_last) = (tokens - 1, outputs - 1);
    let x_row = x.view().slice(x_last..tokens, 0..inputs)?.to_vec()?;
    let w_row = w.view().slice(w_last..outputs, 0..inputs)?.to_vec()?;
    let products = x_row.iter().zip(&w_row);
    let sum: f32 = products.map(|(x, w)| x.to_f32() * w.to_f32()).sum();
    let last = y.view().slice(x_last..tokens, w_last..outputs)?.to_vec()?;
    assert_eq!(last, [sum]);
    Ok(())
}

/// `count` small integers that repeat after `period`.
fn integers(count: usize, period: usize) -> Vec<f16> {
    let value = |at| f16::from_f32((at % period) as f32 - 1.0);
    (0..count).map(value).collect()
}
