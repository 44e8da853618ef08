//! `cargo xtask bench`, `order`, `page`, `study` and `sweep`: the program `tilewise-bench`, with the
//! device code in it. Without a GPU, `bench` has the emulator run a kernel too.

use anyhow::Result;

use crate::{emulate, generator, project, setup};

/// A product that the emulator runs in a second, in two orders of tiles. A wave has 8 of its
/// 64 tiles, and L2 has room for a quarter of A and B.
const EMULATED: [&str; 6] = [
    "--kernel=hopper",
    "--shape=1024x1024x256",
    "--block=128x128x64",
    "--order=row,grouped:4",
    "--sms=8",
    "--l2=256",
];

/// Runs `tilewise-bench bench` with these arguments, in release; on a machine without a
/// GPU, then a kernel on the emulator.
///
/// With `--gpus`, runs `tilewise-parallel bench` instead.
pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|word| word.starts_with("--gpus")) {
        generator::make_ready(project::has_gpu());
        let mut cargo = project::cargo();
        cargo.args(["run", "--release", "--package", "tilewise-parallel", "--"]);
        return project::run(cargo.arg("bench").args(arguments));
    }
    set_up_page(arguments);
    // Without a GPU the benchmark still runs, on the CPU, and says so.
    generator::make_ready(project::has_gpu());
    program("bench", arguments)?;
    let asks_for_help = |argument: &String| argument == "--help" || argument == "-h";
    if project::has_gpu() || arguments.iter().any(asks_for_help) {
        return Ok(());
    }
    println!(
        "\nA kernel of the library on the emulator, verified against f64: what it did, not how \
         long it\nwould take. The first time, all kernels are compiled for the CPU, which takes \
         minutes."
    );
    emulate::run(&EMULATED.map(String::from))
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
    // Without a GPU there is nothing to launch; `--from` needs none.
    generator::make_ready(project::has_gpu());
    program("study", arguments)
}

/// Runs `tilewise-bench sweep` with these arguments, in release.
pub fn sweep(arguments: &[String]) -> Result<()> {
    generator::make_ready(project::has_gpu());
    program("sweep", arguments)
}

/// Gets the toolchain for a page, if the arguments ask for one.
fn set_up_page(arguments: &[String]) {
    if arguments.iter().any(|word| word.starts_with("--html")) {
        setup::wasm_toolchain();
    }
}

fn program(command: &str, arguments: &[String]) -> Result<()> {
    let mut cargo = project::cargo();
    cargo.args(["run", "--release", "--package", "tilewise-benches", "--"]);
    project::run(cargo.arg(command).args(arguments))
}
