//! `cargo xtask bench`: the benchmark, with the device code in it.

use anyhow::Result;

use crate::{project, setup};

/// Runs `tilewise-bench bench` with these arguments, in release.
pub fn run(arguments: &[String]) -> Result<()> {
    if project::has_gpu() {
        // Without one the benchmark still runs, on the CPU, and says so.
        let _ = setup::device_toolchain();
    }
    let mut cargo = project::cargo();
    cargo.args(["run", "--release", "--package", "tilewise-bench", "--"]);
    project::run(cargo.arg("bench").args(arguments))
}
