//! `cargo xtask test`: all checks of CI, the quickest first.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use gpu_kernels::Arch;
use ptx_builder::OptLevel;

use crate::project::{self, cargo};
use crate::{bench, book, emulate, package, ptx, setup, wheel};

/// One shape, small: CI has two cores and no GPU.
const SMOKE_SHAPE: &str = "512x512x512";

/// The workspace of the adapters for cudarc and candle.
const ADAPTERS: &str = "adapters/Cargo.toml";

/// A check and its name.
type Step = (&'static str, fn() -> Result<()>);

/// Setup comes before the steps that embed PTX.
const STEPS: &[Step] = &[
    ("format", || {
        project::run(cargo().args(["fmt", "--all", "--check"]))?;
        // Workspaces of their own. Of rust-cuda's, this is all that can be run without it.
        for manifest in ["rust-cuda/Cargo.toml", ADAPTERS] {
            let manifest = ["--manifest-path", manifest];
            project::run(cargo().arg("fmt").args(manifest).args(["--all", "--check"]))?;
        }
        Ok(())
    }),
    ("setup", || setup::run(None)),
    ("ptx, and convergence at another level", || {
        // Level s is where LLVM inlines and copies least. The other levels and compilers: see
        // docs/convergence.md.
        ptx::run(&[], None)?;
        ptx::levels::run(&[], units_of_their_own, &[OptLevel::Size], false)
    }),
    ("clippy", || {
        project::run(cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny=warnings",
        ]))
    }),
    ("docs", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps"]);
        project::run(doc.env("RUSTDOCFLAGS", "--deny=warnings"))
    }),
    ("tests", || {
        // `emulate` compiles every kernel for the host, and both take minutes without
        // optimisation: once, below.
        let exclude = ["--exclude=tilewise-emulate", "--exclude=tilewise-emulator"];
        project::run(cargo().args(["test", "--workspace"]).args(exclude))
    }),
    // As a crate that depends on the library builds it. The steps above have `cust`, which the
    // workspace's programs turn on.
    ("library without cust", || {
        let library = ["--package", "tilewise", "--tests"];
        project::run(
            cargo()
                .arg("clippy")
                .args(library)
                .args(["--", "--deny=warnings"]),
        )?;
        let driver = ["--package", "tilewise", "--lib", "--test", "fake_driver"];
        project::run(cargo().arg("test").args(driver))
    }),
    // Their PTX is that of the step `ptx`.
    (
        "packages, and a crate that depends on them",
        package::dependent::test,
    ),
    ("adapters", adapters),
    ("book", book::test),
    ("Python package", wheel::test),
    ("kernels and library in the emulator", emulate::test),
    // Its kernel on the emulator is the program that the step above has built.
    ("benchmark without a GPU", || {
        bench::run(&["--shapes".into(), SMOKE_SHAPE.into()])
    }),
];

/// The codegen units of `arch` without those that have little of their own: of bf16 alone, whose
/// kernels are those of f16 but for constants and the text of `asm!`; and of f16 with A along M,
/// whose loads of A are those of B along N.
fn units_of_their_own(arch: Arch) -> Vec<&'static str> {
    let mut units = ptx_builder::codegen_units(arch);
    units.retain(|unit| !unit.contains("bf16") && !unit.ends_with("f16_am"));
    units
}

/// The checks of the adapters, whose tests run on the CPU here and need no kernels.
fn adapters() -> Result<()> {
    let command = |name: &str| {
        let mut command = cargo();
        command.args([name, "--manifest-path", ADAPTERS]);
        command.env("TILEWISE_PTX", "skip");
        command
    };
    project::run(command("clippy").args(["--all-targets", "--", "--deny=warnings"]))?;
    let mut doc = command("doc");
    project::run(doc.arg("--no-deps").env("RUSTDOCFLAGS", "--deny=warnings"))?;
    project::run(&mut command("test"))
}

/// Runs every step, and stops at the first that fails.
pub fn run() -> Result<()> {
    let start = Instant::now();
    let mut times = Vec::new();
    for (number, (name, step)) in STEPS.iter().enumerate() {
        println!("\n=== {}/{} {name}", number + 1, STEPS.len());
        let begin = Instant::now();
        step().with_context(|| format!("xtask test: FAILED at `{name}`"))?;
        times.push(begin.elapsed());
        println!("=== {name}: {}", seconds(begin.elapsed()));
    }
    println!();
    for ((name, _), time) in STEPS.iter().zip(times) {
        println!("{:>8}  {name}", seconds(time));
    }
    println!(
        "xtask test: all {} steps passed in {}",
        STEPS.len(),
        seconds(start.elapsed())
    );
    Ok(())
}

/// A duration for people.
fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
