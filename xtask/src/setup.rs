//! `cargo xtask setup`: everything the other commands need, found or fetched.
//!
//! It changes the machine as little as it can: it looks first, and then tries
//! rustup, which installs for this user; the project's `.tools` folder; and the
//! system's packages only as root on a system that has `apt-get`. Of rust-cuda, which
//! is large, it gets nothing unless it is asked for, and says what is missing. Without
//! WebAssembly and Chromium, which only the HTML page and its test want, setup is
//! complete too.

pub mod install;
mod rust_cuda;

use anyhow::{Result, bail};
use ptx_builder::ptxas::Tools;
use ptx_builder::rust_cuda::Search;
use ptx_builder::{Codegen, Error, NoToolchain, Toolchain, toolchain, wasm};

use crate::project;
use install::{apt_get_packages, command, find_or_install, has_rustup, pip_attempts, pip_install};
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
