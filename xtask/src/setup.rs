//! `cargo xtask setup`: everything the other commands need, found or fetched.
//!
//! It changes the machine as little as it can: it looks first, and then tries
//! rustup, which installs for this user; the project's `.tools` folder; and the
//! system's packages only as root on a system that has `apt-get`. Of rust-cuda, which
//! is large, it gets nothing unless it is asked for, and says what is missing. Without
//! WebAssembly and Chromium, which only the HTML page and its test want, setup is
//! complete too.

mod rust_cuda;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use ptx_builder::ptxas::Tools;
use ptx_builder::rust_cuda::Search;
use ptx_builder::{Codegen, NoToolchain, Toolchain, toolchain, wasm};

use crate::project;
use rust_cuda::Means;

/// The page's test has it, and setup looks where that does.
#[path = "../../benches/tests/page/chromium.rs"]
mod chromium;

/// The assembler and the disassemblers, from PyPI: programs in a wheel, a few
/// tens of megabytes in place of a CUDA installation. The assembler is pinned,
/// because registers and notes change with it; a disassembler reads older code.
const NVIDIA_PACKAGES: [&str; 3] = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-cuda-cuobjdump==13.*",
    "nvidia-cuda-nvdisasm==13.*",
];

/// Gets all there is to get for what `codegen`, or else the environment, asks for, and
/// fails if something is still missing.
pub fn run(codegen: Option<Codegen>) -> Result<()> {
    let codegen = codegen.map_or_else(Codegen::from_env, Ok)?;
    let search = Search::from_env();
    let compiler = if codegen == Codegen::RustCuda {
        rust_cuda::set_up(&search, &mut Means::here()).is_ok()
    } else {
        device_toolchain().is_some()
    };
    let tools = nvidia_tools();
    wasm_toolchain();
    browser();
    if codegen != Codegen::RustCuda {
        println!("{}", rust_cuda::line(&search.run()));
    }
    if !compiler || tools.is_none() {
        bail!("setup is incomplete; the commands above complete it");
    }
    Ok(())
}

/// Finds or installs a compiler for the device code, and says which.
pub fn device_toolchain() -> Option<Toolchain> {
    let reason = match toolchain::find() {
        Ok(found) => {
            println!("device toolchain: {found}");
            return Some(found);
        }
        Err(reason) => reason,
    };
    match &reason {
        NoToolchain::NotFound { tried } => println!("device toolchain: {}", tried.join("; ")),
        NoToolchain::Skipped => {
            println!("device toolchain: {reason}");
            return None;
        }
    }
    let mut attempts: Vec<Command> = Vec::new();
    if project::succeeds(Command::new("rustup").arg("--version")) {
        attempts.push(command("rustup", &["target", "add", toolchain::TARGET]));
        attempts.push(command("rustup", &["component", "add", "rust-src"]));
    }
    if is_debian_root() {
        attempts.push(apt_get(&["update"]));
        attempts.push(apt_get(&["install", "rustc-web", "rust-web-src"]));
    }
    for attempt in &mut attempts {
        install(attempt);
        if let Ok(found) = toolchain::find() {
            println!("device toolchain: {found}, just installed");
            return Some(found);
        }
    }
    println!(
        "device toolchain: none. One of these gets it:\n  \
         rustup component add rust-src\n  \
         sudo apt-get install rustc-web rust-web-src    # Debian\n\
         Without it tilewise builds for the CPU only."
    );
    None
}

/// Finds or installs what compiles the HTML page's WebAssembly, and says which.
pub fn wasm_toolchain() {
    let reason = match wasm::find() {
        Ok(found) => return println!("WebAssembly: {found}"),
        Err(reason) => reason,
    };
    let mut attempts: Vec<Command> = Vec::new();
    if reason != wasm::NoWasm::Skipped {
        if project::succeeds(Command::new("rustup").arg("--version")) {
            attempts.push(command("rustup", &["target", "add", wasm::TARGET]));
        }
        if is_debian_root() {
            attempts.push(apt_get(&["update"]));
            attempts.push(apt_get(&["install", "rustc-web", "rust-web-src", "lld"]));
        }
    }
    for attempt in &mut attempts {
        install(attempt);
        if let Ok(found) = wasm::find() {
            return println!("WebAssembly: {found}, just installed");
        }
    }
    println!("WebAssembly, for HTML pages: {reason}");
}

/// Finds or installs a Chromium for the test of the HTML page, and says where it is.
fn browser() {
    if let Ok(found) = chromium::find() {
        return println!("Chromium: {}", found.display());
    }
    if is_debian_root() {
        install(&mut apt_get(&["update"]));
        // Debian has the first since its release 12.
        for package in ["chromium-headless-shell", "chromium"] {
            install(&mut apt_get(&["install", package]));
            if let Ok(found) = chromium::find() {
                return println!("Chromium: {}, just installed", found.display());
            }
        }
    }
    println!("Chromium: none on PATH; the test of the HTML page is skipped");
}

/// Finds or installs `ptxas` and `cuobjdump`, and says where they are.
pub fn nvidia_tools() -> Option<Tools> {
    let dir = project::tools_dir();
    if let Some(found) = found_tools(&dir) {
        println!("ptxas: {found}");
        return Tools::find(&dir).ok();
    }
    let target = dir.join("nvidia");
    for attempt in &mut pip_attempts("python3".as_ref(), &target, &NVIDIA_PACKAGES) {
        install(attempt);
        if let Some(found) = found_tools(&dir) {
            println!("ptxas: {found}, just installed");
            return Tools::find(&dir).ok();
        }
    }
    println!(
        "ptxas: none. With python3 and pip, this gets it:\n  {}",
        project::typed(&pip_install("python3".as_ref(), &target, &NVIDIA_PACKAGES))
    );
    None
}

/// Release and place of the tools below `dir` or elsewhere on the machine.
fn found_tools(dir: &Path) -> Option<String> {
    let tools = Tools::find(dir).ok()?;
    let version = tools.version().ok()?;
    Some(format!("{version} at {}", tools.ptxas.display()))
}

/// Runs one attempt; the caller looks whether it helped, so failing is no error.
fn install(command: &mut Command) {
    println!("$ {}", project::typed(command));
    match command.env("DEBIAN_FRONTEND", "noninteractive").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let error = messages
                .lines()
                .find(|line| line.to_lowercase().starts_with("e"))
                .or(messages.lines().last());
            println!("  failed: {}", error.unwrap_or("without a message"));
        }
        Err(error) => println!("  not run: {error}"),
    }
}

/// A command from words.
fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(project::root());
    command
}

/// `apt-get` that asks nothing.
fn apt_get(arguments: &[&str]) -> Command {
    let quiet = ["--yes", "--quiet=2", "--no-install-recommends"];
    command("apt-get", &[&quiet, arguments].concat())
}

/// The ways to have pip install `packages` below `target`, to be tried one after the
/// other: by `python`'s own, by that of an environment below the project's tools, or by
/// that of the system's packages.
fn pip_attempts(python: &Path, target: &Path, packages: &[&str]) -> Vec<Command> {
    let venv = project::tools_dir().join("python");
    let mut create = Command::new(python);
    create.args(["-m", "venv"]).arg(&venv);
    let mut attempts = vec![
        pip_install(python, target, packages),
        create,
        pip_install(&venv.join("bin/python"), target, packages),
    ];
    if is_debian_root() {
        attempts.push(apt_get(&["update"]));
        attempts.push(apt_get(&["install", "python3-pip"]));
        attempts.push(pip_install("/usr/bin/python3".as_ref(), target, packages));
    }
    attempts
}

/// pip, installing packages below `target`.
fn pip_install(python: &Path, target: &Path, packages: &[&str]) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--upgrade", "--target"])
        .arg(target)
        .args(packages)
        .current_dir(project::root());
    pip
}

/// Whether Debian's packages can be installed without asking anyone.
fn is_debian_root() -> bool {
    is_root() && project::succeeds(Command::new("apt-get").arg("--version"))
}

/// Whether system packages can be installed without asking anyone.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
