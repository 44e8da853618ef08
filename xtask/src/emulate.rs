//! `cargo xtask emulate`: one product, on the CPU, by the kernel that a GPU would run.

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

/// Packages whose tests execute kernels, as arguments of `cargo test`; in release, for they
/// execute some billions of instructions.
const KERNELS: [&str; 6] = [
    "test",
    "--release",
    "--package=gpu-kernels",
    "--package=tilewise-emulator",
    "--package=tilewise-emulate",
    "--features=gpu-kernels/emulator",
];

/// Runs the tests of the emulator, by it those of all kernels, and the library's on
/// emulated GPUs: its tests that need a GPU, operations over several of them, and its examples.
pub fn test() -> Result<()> {
    project::run(project::cargo().args(KERNELS))?;
    // Beside the packages above, whose features they then share: the library, with every
    // kernel in it, is compiled once.
    let library = || {
        let mut cargo = project::cargo();
        cargo.args(KERNELS);
        cargo.args(["--package=tilewise", "--features=tilewise/emulator"]);
        cargo.args([
            "--package=tilewise-parallel",
            "--features=tilewise-parallel/emulator",
        ]);
        cargo
    };
    // Linked side by side; one after the other, most of it would wait for one linker.
    project::run(library().args(["--no-run", "--test=emulated", "--test=gpu", "--test=check"]))?;
    project::run(library().arg("--test=emulated"))?;
    project::run(library().args(["--test=gpu", "--", "--emulated"]))?;
    // Its other tests have run without an emulator.
    project::run(library().args(["--test=check", "--", "on_emulated_gpus"]))?;
    let mut examples = library();
    examples.args(["--doc", "--", "documents::Readme"]);
    project::run(examples.env("TILEWISE_DEVICE", "emulated"))
}
