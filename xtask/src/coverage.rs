//! `cargo xtask test --coverage`: how much of the kernels the CPU's tests execute.
//!
//! The compiler's own instrumentation (`-Cinstrument-coverage`, as cargo-llvm-cov
//! uses it), over the tests that execute kernels and instructions. What counts is
//! `gpu-kernels/src/kernels` and `gpu-kernels/src/isa`. The PTX form of an instruction
//! is not compiled for the host, and so is no line; its emulated form beside it is.

mod executed;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::project;
use executed::{Executed, Share};
use tools::Tools;

/// The folders whose coverage is measured.
const SOURCES: [&str; 2] = ["gpu-kernels/src/kernels", "gpu-kernels/src/isa"];

/// The least that is accepted of lines and of regions, percent.
const LEAST: f64 = 95.0;

/// The tests that run kernels, as arguments of `cargo test`. Others would compile every
/// kernel once more.
const TESTS: [&[&str]; 2] = [
    &[
        "--package=gpu-kernels",
        "--features=gpu-kernels/emulator",
        "--lib",
        "--test=emulator",
    ],
    &[
        "--package=tilewise-emulate",
        "--test=edges",
        "--test=mutations",
    ],
];

/// Runs the tests, prints a table by file, and fails below the least.
pub fn run() -> Result<()> {
    let tools = Tools::find()?;
    let target = project::root().join("target/coverage");
    fs::create_dir_all(&target).context("the folder of the instrumented programs")?;
    let mut executed = Executed::default();
    for tests in TESTS {
        for (program, directory) in programs(tests, &target)? {
            let raw = program.with_extension("profraw");
            let mut test = Command::new(&program);
            test.current_dir(directory);
            project::run(test.env("LLVM_PROFILE_FILE", &raw))?;
            let profile = tools.merge(&raw)?;
            // One program after the other: of two, llvm-cov would drop the functions that
            // are compiled differently in each.
            let sources = SOURCES.map(|source| project::root().join(source));
            executed.add_lines(&tools.lines(&program, &profile, &sources)?)?;
            executed.add_regions(&tools.regions(&program, &profile, &sources)?)?;
        }
    }
    report(&executed)
}

/// The test programs that `cargo test` would run, and where; instrumented.
fn programs(tests: &[&str], target: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut cargo = project::cargo();
    cargo
        .args(["test", "--release", "--no-run", "--message-format=json"])
        .args(tests)
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", "-Cinstrument-coverage")
        // What the compiler's plug-ins execute.
        .env("LLVM_PROFILE_FILE", target.join("build.profraw"))
        .env("TILEWISE_PTX", "skip");
    println!("$ {}", project::typed(&cargo));
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("cannot build the tests")?;
    ensure!(output.status.success(), "the tests do not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let test = message["profile"]["test"] == true;
        let program = test.then(|| message["executable"].as_str())??;
        let mut directory = PathBuf::from(message["manifest_path"].as_str()?);
        directory.pop();
        Some((PathBuf::from(program), directory))
    };
    Ok(messages.lines().filter_map(executable).collect())
}

/// Prints the shares of each file and what was not executed, and judges.
fn report(executed: &Executed) -> Result<()> {
    let root = project::root().join("gpu-kernels/src");
    let (mut all_lines, mut all_regions) = (Share::default(), Share::default());
    println!(
        "\n{:>8} {:>8}  file: lines not executed",
        "lines", "regions"
    );
    for (path, file) in executed.files() {
        let name = path.strip_prefix(&root).unwrap_or(path);
        if name.components().any(|part| part.as_os_str() == "tests")
            || name.file_name().is_some_and(|name| name == "tests.rs")
        {
            continue;
        }
        let (lines, regions) = (file.lines(), file.regions());
        all_lines.add(lines);
        all_regions.add(regions);
        println!(
            "{:>7.1}% {:>7.1}%  {}{}",
            lines.percent(),
            regions.percent(),
            name.display(),
            file.missed()
        );
    }
    let (lines, regions) = (all_lines.percent(), all_regions.percent());
    println!(
        "{lines:>7.1}% {regions:>7.1}%  all: {} of {} lines, {} of {} regions",
        all_lines.covered, all_lines.count, all_regions.covered, all_regions.count
    );
    ensure!(
        lines >= LEAST && regions >= LEAST,
        "coverage is {lines:.1} % of lines and {regions:.1} % of regions, accepted: {LEAST} %"
    );
    Ok(())
}
