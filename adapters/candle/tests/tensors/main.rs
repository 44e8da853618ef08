//! Products, layers and gradients against candle's own in f64.
//!
//! Every case runs on the CPU and on the first GPU. Without a GPU, or in a build without the
//! feature `cuda`, the cases of the GPU are ignored with the reason. The program can be carried
//! to a machine without Rust. With the feature, it needs the libraries that candle links:
//! those of the driver, and cuBLAS, cuRAND and the CUDA runtime.

mod errors;
mod gradients;
mod linear;
mod operands;
mod products;
mod reference;

use std::process::ExitCode;

use candle_core::{Device, Result};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A case, for any device.
type Case = (&'static str, fn(&Device) -> Result<()>);

/// All cases.
const CASES: &[Case] = &[
    ("products of strided matrices", products::matrices),
    ("products with batches", products::batches),
    ("products of attention", products::attention),
    ("empty products", products::empty),
    ("linear layers", linear::layers),
    ("linear layers of strided tensors", linear::strided),
    ("gradients of products", gradients::products),
    ("gradients of layers", gradients::layers),
    ("errors", errors::all),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One case has the GPU at a time.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let mut trials = Vec::new();
    for &(name, run) in CASES {
        trials.push(Trial::test(format!("CPU: {name}"), move || {
            run(&Device::Cpu).map_err(Failed::from)
        }));
        trials.push(Trial::ignorable_test(
            format!("CUDA: {name}"),
            move || match gpu() {
                Ok(device) => run(&device)
                    .map(|()| Completion::Completed)
                    .map_err(Failed::from),
                Err(reason) => Ok(Completion::ignored_with(reason)),
            },
        ));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    println!("{} tensors compared", reference::compared());
    conclusion.exit_code()
}

/// The first GPU, or why there is none.
fn gpu() -> std::result::Result<Device, String> {
    if !cfg!(feature = "cuda") {
        return Err("built without the feature cuda".to_owned());
    }
    // tilewise answers without a driver; cudarc panics.
    tilewise::Device::gpu(0).map_err(|error| error.to_string())?;
    Device::new_cuda(0).map_err(|error| error.to_string())
}
