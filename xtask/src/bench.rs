//! `cargo xtask bench`, `order`, `page` and `study`: the program `tilewise-bench`, with the device
//! code in it.

use anyhow::Result;

use crate::{project, setup};

/// Runs `tilewise-bench bench` with these arguments, in release.
pub fn run(arguments: &[String]) -> Result<()> {
    set_up_page(arguments);
    if project::has_gpu() {
        // Without one the benchmark still runs, on the CPU, and says so.
        let _ = setup::device_toolchain();
    }
    program("bench", arguments)
}

/// Runs `tilewise-bench order` with these arguments, in release.
pub fn order(arguments: &[String]) -> Result<()> {
    set_up_page(arguments);
    program("order", arguments)
}

/// Runs `tilewise-bench page` with these arguments, in release.
pub fn page(arguments: &[String]) -> Result<()> {
    setup::wasm_toolchain();
    program("page", arguments)
}

/// Runs `tilewise-bench study` with these arguments, in release.
pub fn study(arguments: &[String]) -> Result<()> {
    set_up_page(arguments);
    if project::has_gpu() {
        // Without one there is nothing to launch; `--from` needs none.
        let _ = setup::device_toolchain();
    }
    program("study", arguments)
}

/// Gets what a page needs, where one is asked for; the program says what it lacks.
fn set_up_page(arguments: &[String]) {
    if arguments.iter().any(|word| word.starts_with("--html")) {
        setup::wasm_toolchain();
    }
}

fn program(command: &str, arguments: &[String]) -> Result<()> {
    let mut cargo = project::cargo();
    cargo.args(["run", "--release", "--package", "tilewise-bench", "--"]);
    project::run(cargo.arg(command).args(arguments))
}
