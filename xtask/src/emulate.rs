//! `cargo xtask emulate`: one product, on the CPU, by the kernel that a GPU would run.

use std::process::Command;

use anyhow::Result;

use crate::project;

/// Settings of glibc's allocator (mallopt(3)) by which freed memory stays with the process. Every launch of
/// the emulator allocates the memory of its CTAs anew; without these, all kernels at edge shapes take
/// 93 s instead of 78 on two cores, of which Linux has 42 s of processor time instead of 14 for page faults.
const KEEPS_FREED_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "4000000000"),
    ("MALLOC_MMAP_THRESHOLD_", "1000000000"),
    ("MALLOC_TOP_PAD_", "67108864"),
];

/// The command line of `cargo` in release, with the library at level 1: its kernels spend their time in
/// the emulator. All of them at edge shapes run as fast as at level 3 (128 and 126 s), and they compile
/// in four fifths of the time.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = project::cargo();
    let level = "profile.release.package.tilewise.opt-level=1";
    cargo.args(arguments).args(["--release", "--config", level]);
    cargo.envs(KEEPS_FREED_MEMORY);
    cargo
}

/// Runs `tilewise-emulate` with these arguments.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = ["--package=tilewise-emulate", "--bin=tilewise-emulate"];
    let mut cargo = cargo(&["run"]);
    project::run(cargo.args(program).arg("--").args(arguments))
}

/// Packages whose tests execute kernels, as arguments of `cargo test`.
const KERNELS: [&str; 5] = [
    "test",
    "--package=gpu-kernels",
    "--package=tilewise-emulator",
    "--package=tilewise-emulate",
    "--features=gpu-kernels/emulator",
];

/// Runs the tests of the emulator, by it those of all kernels, and the library's on
/// emulated GPUs: its tests that need a GPU, operations over several of them, and its examples.
pub fn test() -> Result<()> {
    project::run(&mut cargo(&KERNELS))?;
    // Beside the packages above, whose features they then share: the library, with every
    // kernel in it, is compiled once.
    let library = || {
        let mut cargo = cargo(&KERNELS);
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
