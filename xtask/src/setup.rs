//! `cargo xtask setup`: everything the other commands need, found or fetched.
//!
//! It changes the machine as little as it can: it looks first, and then tries
//! rustup, which installs for this user; the project's `.tools` folder; and the
//! system's packages only as root on a system that has `apt-get`. Of rust-cuda, which
//! is large, it gets nothing unless it is asked for, and says what is missing. Without
//! WebAssembly and Chromium, which only the HTML page and its test want, setup is
//! complete too.

mod rust_cuda;

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use ptx_builder::ptxas::Tools;
use ptx_builder::rust_cuda::Search;
use ptx_builder::{Codegen, Error, NoToolchain, Toolchain, toolchain, wasm};

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

/// Gets what the code generator that `codegen`, or else the environment, asks for needs;
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
    if let Err(skipped @ NoToolchain::Skipped) = toolchain::find() {
        println!("device toolchain: {skipped}");
        return None;
    }
    let attempts = || {
        let mut attempts = Vec::new();
        if has_rustup() {
            attempts.push(command("rustup", &["target", "add", toolchain::TARGET]));
            attempts.push(command("rustup", &["component", "add", "rust-src"]));
        }
        attempts.extend(apt_get_packages(&["rustc-web", "rust-web-src"]));
        attempts
    };
    let found = find_or_install("device toolchain", toolchain::find, attempts);
    if found.is_none() {
        println!("Without it tilewise builds for the CPU only.");
    }
    found
}

/// Finds or installs what compiles the HTML page's WebAssembly, and says which.
pub fn wasm_toolchain() {
    let attempts = || {
        let mut attempts = Vec::new();
        if wasm::find() == Err(wasm::NoWasm::Skipped) {
            return attempts;
        }
        if has_rustup() {
            attempts.push(command("rustup", &["target", "add", wasm::TARGET]));
        }
        attempts.extend(apt_get_packages(&["rustc-web", "rust-web-src", "lld"]));
        attempts
    };
    find_or_install("WebAssembly, for HTML pages", wasm::find, attempts);
}

/// Finds or installs a Chromium for the test of the HTML page, and says where it is.
fn browser() {
    let find = || chromium::find().map(|path| path.display().to_string());
    // Debian has the first since its release 12.
    let packages = ["chromium-headless-shell", "chromium"];
    let attempts = || {
        packages
            .iter()
            .flat_map(|package| apt_get_packages(&[package]))
    };
    find_or_install("Chromium, for the page's test", find, || {
        attempts().collect()
    });
}

/// Finds or installs `ptxas` and `cuobjdump`, and says where they are.
pub fn nvidia_tools() -> Option<Tools> {
    let dir = project::tools_dir();
    let target = dir.join("nvidia");
    let find = || -> Result<String, Error> {
        let tools = Tools::find(&dir)?;
        Ok(format!("{} at {}", tools.version()?, tools.ptxas.display()))
    };
    let attempts = || pip_attempts("python3".as_ref(), &target, &NVIDIA_PACKAGES);
    if find_or_install("ptxas", find, attempts).is_some() {
        return Tools::find(&dir).ok();
    }
    let pip = pip_install("python3".as_ref(), &target, &NVIDIA_PACKAGES);
    println!(
        "With python3 and pip, this gets it:\n  {}",
        project::typed(&pip)
    );
    None
}

/// Looks for something; where it is missing, makes one attempt after the other to install
/// it, until it is found. Says what is found, or at last why nothing is.
fn find_or_install<T: Display, E: Display>(
    what: &str,
    find: impl Fn() -> Result<T, E>,
    attempts: impl FnOnce() -> Vec<Command>,
) -> Option<T> {
    let mut found = find();
    let mut note = "";
    if found.is_err() {
        for mut attempt in attempts() {
            install(&mut attempt);
            found = find();
            if found.is_ok() {
                note = ", just installed";
                break;
            }
        }
    }
    match &found {
        Ok(found) => println!("{what}: {found}{note}"),
        Err(reason) => println!("{what}: {reason}"),
    }
    found.ok()
}

/// Runs one attempt. A failure is printed only: the caller looks whether the attempt
/// helped.
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

fn has_rustup() -> bool {
    project::succeeds(Command::new("rustup").arg("--version"))
}

/// The commands that install packages of Debian; none for a user who may not.
fn apt_get_packages(packages: &[&str]) -> Vec<Command> {
    if !is_debian_root() {
        return Vec::new();
    }
    let install = [&["install"], packages].concat();
    vec![apt_get(&["update"]), apt_get(&install)]
}

/// An `apt-get` command that asks no question.
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
    attempts.extend(apt_get_packages(&["python3-pip"]));
    if is_debian_root() {
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

/// Whether this user may install packages of Debian.
fn is_debian_root() -> bool {
    is_root() && project::succeeds(Command::new("apt-get").arg("--version"))
}

/// Whether this user is root.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
