//! `cargo xtask emulate`: one product, on the CPU, by the kernel that a GPU would run.

use std::process::Command;

use anyhow::Result;

use crate::project;

/// Runs `tilewise-emulate` with these arguments, in release.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = project::cargo();
    cargo.args([
        "run",
        "--release",
        "--package=tilewise-emulate",
        "--bin=tilewise-emulate",
        "--",
    ]);
    project::run(cargo.args(arguments))
}

/// Adds what runs the tests of the emulator, and by it those of all kernels, to a
/// `cargo test`: in release, for they execute some billions of instructions.
pub fn tests(cargo: &mut Command) -> &mut Command {
    cargo.args([
        "test",
        "--release",
        "--package=gpu-kernels",
        "--package=tilewise-emulator",
        "--package=tilewise-emulate",
        "--features=gpu-kernels/emulator",
    ])
}
