//! Products on cudarc's memory and streams, against f64.
//!
//! Without a GPU, every case is ignored with the reason, and the program succeeds. It needs
//! nothing but a driver, so that it can be carried to a machine without Rust.

mod errors;
mod matmul;
mod reference;
mod run;
mod streams;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tilewise_cudarc::cudarc::driver::CudaContext;

/// What a case returns.
type Verdict = Result<(), Box<dyn Error>>;

/// A case.
type Case = (&'static str, fn(&Arc<CudaContext>) -> Verdict);

/// All cases.
const CASES: &[Case] = &[
    ("matmul in all layouts", matmul::layouts),
    ("matmul with batches", matmul::batches),
    ("matmul with bias and activation", matmul::epilogues),
    ("matmul of parts of slices", matmul::views),
    ("run with every epilogue", run::epilogues),
    ("run of a plan", run::plan),
    ("operands of other streams", streams::other_streams),
    ("two streams at once", streams::two_streams),
    (
        "the default and the per-thread stream",
        streams::special_streams,
    ),
    ("a captured graph", streams::graph),
    ("errors", errors::all),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One case has the GPU at a time.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    // tilewise answers without a driver; cudarc panics. This handle keeps the plans of all
    // cases.
    let gpu = tilewise_cudarc::tilewise::Device::gpu(0).map_err(|error| error.to_string());
    match &gpu {
        Ok(gpu) => println!("on {gpu}"),
        Err(error) => println!("without a GPU: {error}"),
    }
    let missing = gpu.as_ref().err().cloned();
    let trials = CASES
        .iter()
        .map(|&(name, run)| {
            let missing = missing.clone();
            Trial::ignorable_test(name, move || match missing {
                Some(reason) => Ok(Completion::ignored_with(reason)),
                None => one(run)
                    .map(|()| Completion::Completed)
                    .map_err(|error| Failed::from(error.to_string())),
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    println!("{} products compared", reference::compared());
    drop(gpu);
    conclusion.exit_code()
}

/// Runs a case in a context of its own.
fn one(run: fn(&Arc<CudaContext>) -> Verdict) -> Verdict {
    let context = CudaContext::new(0)?;
    run(&context)?;
    context.synchronize()?;
    Ok(context.check_err()?)
}
