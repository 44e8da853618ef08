//! `cargo xtask bench` and `order`: the program `tilewise-bench`, with the device
//! code in it.

use anyhow::Result;

use crate::{project, setup};

/// Runs `tilewise-bench bench` with these arguments, in release.
pub fn run(arguments: &[String]) -> Result<()> {
    if project::has_gpu() {
        // Without one the benchmark still runs, on the CPU, and says so.
        let _ = setup::device_toolchain();
    }
    program("bench", arguments)
}

/// Runs `tilewise-bench order` with these arguments, in release.
pub fn order(arguments: &[String]) -> Result<()> {
    program("order", arguments)
}

fn program(command: &str, arguments: &[String]) -> Result<()> {
    let mut cargo = project::cargo();
    cargo.args(["run", "--release", "--package", "tilewise-bench", "--"]);
    project::run(cargo.arg(command).args(arguments))
}
