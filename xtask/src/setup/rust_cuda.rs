//! `cargo xtask setup --codegen rust-cuda`: what rust-cuda needs, as far as a command
//! can get it.
//!
//! | | got by |
//! |---|---|
//! | the nightly and its components | rustup |
//! | libclang | the distribution's packages, as root |
//! | the parts of the CUDA toolkit that compiling takes | NVIDIA's wheels from PyPI, in the project's tools |
//! | LLVM 7 | nothing: it has to be compiled, and setup names the command |

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptx_builder::rust_cuda::{
    COMPONENTS, Missing, RustCuda, Search, TOOLCHAIN, toolkit_in, wheels_dir,
};

use super::install::{apt_get_packages, command, install, is_root, pip_attempts};
use crate::project;

/// The parts of CUDA 13.0 that rust-cuda reads, and its assembler: headers, libNVVM and
/// libdevice, a quarter of a gigabyte in place of a toolkit.
const PACKAGES: [&str; 4] = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-crt==13.0.*",
];

/// The programs of this machine that can install things.
pub struct Means {
    /// Python 3, for its pip.
    pub python: PathBuf,
    /// Where the wheels go.
    pub wheels: PathBuf,
    /// The commands that install libclang; none for a user who may not install packages.
    pub libclang: Vec<Command>,
}

impl Means {
    pub fn here() -> Self {
        let has_dnf = || project::succeeds(Command::new("dnf").arg("--version"));
        let mut libclang = apt_get_packages(&["clang"]);
        if libclang.is_empty() && is_root() && has_dnf() {
            let arguments = ["install", "--assumeyes", "--quiet", "clang"];
            libclang.push(command("dnf", &arguments));
        }
        Means {
            python: "python3".into(),
            wheels: wheels_dir(),
            libclang,
        }
    }
}

/// The line that says what of rust-cuda this machine has.
pub fn line(found: &Result<RustCuda, Vec<Missing>>) -> String {
    match found {
        // Its name comes first in its version.
        Ok(found) => found.to_string(),
        Err(missing) => {
            let names: Vec<_> = missing.iter().map(Missing::name).collect();
            let names = names.join(", ");
            format!("rust-cuda (optional, docs/rust-cuda.md): without {names}")
        }
    }
}

/// Gets what is missing as far as it can. Prints what was found, or what is still missing
/// and the command that gets it.
pub fn set_up(search: &Search, means: &mut Means) -> Result<RustCuda, Vec<Missing>> {
    for missing in search.run().err().unwrap_or_default() {
        get(&missing, search, means);
    }
    let found = search.run();
    match &found {
        Ok(_) => println!("{}", line(&found)),
        Err(missing) => {
            println!("rust-cuda is not complete. What is left:");
            for missing in missing {
                println!("  {missing}");
            }
        }
    }
    found
}

/// Tries to get one of the prerequisites; the caller looks whether it is there.
fn get(missing: &Missing, search: &Search, means: &mut Means) {
    match missing {
        Missing::Toolchain => {
            let mut rustup = rustup(search, &["toolchain", "install", TOOLCHAIN]);
            rustup.args(["--profile", "minimal"]);
            for component in COMPONENTS {
                rustup.args(["--component", component]);
            }
            install(&mut rustup);
        }
        Missing::Components { names } => {
            let mut rustup = rustup(search, &["component", "add", "--toolchain", TOOLCHAIN]);
            install(rustup.args(names));
        }
        Missing::Libclang => {
            for command in &mut means.libclang {
                install(command);
            }
        }
        Missing::Cuda { .. } => get_cuda(search, means),
        // A clone, rustup, and an LLVM that has to be built: setup gets none of them.
        Missing::Workspace { .. } | Missing::Rustup { .. } | Missing::Llvm { .. } => {}
    }
}

fn rustup(search: &Search, arguments: &[&str]) -> Command {
    let mut rustup = Command::new(&search.rustup);
    rustup.args(arguments);
    rustup
}

/// Has pip install the toolkit's parts, and lays them out as a toolkit, where that is
/// where it is looked for.
fn get_cuda(search: &Search, means: &Means) {
    let root = toolkit_in(&means.wheels);
    if !search.cuda_roots.contains(&root) {
        println!("CUDA: not got, because a variable names another toolkit, which counts alone");
        return;
    }
    for attempt in &mut pip_attempts(&means.python, &means.wheels, &PACKAGES) {
        install(attempt);
        match lay_out(&root) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => println!("CUDA: {}: {error}", root.display()),
        }
    }
}

/// Gives the folder of NVIDIA's wheels the places that a toolkit has for the same files.
/// Only files are links: rust-cuda takes where a link to a folder points for a path from
/// where cargo runs.
fn lay_out(root: &Path) -> io::Result<()> {
    let library = fs::read_dir(root.join("lib"))?
        .flatten()
        .map(|entry| entry.file_name())
        .find(|name| name.to_string_lossy().starts_with("libnvvm.so."))
        .ok_or(io::ErrorKind::NotFound)?;
    let (headers, libraries) = (root.join("nvvm/include"), root.join("nvvm/lib64"));
    fs::create_dir_all(&headers)?;
    fs::create_dir_all(&libraries)?;
    link("../../include/nvvm.h".as_ref(), &headers.join("nvvm.h"))?;
    let library = Path::new(&library);
    link(
        &Path::new("../../lib").join(library),
        &libraries.join(library),
    )?;
    link(library, &libraries.join("libnvvm.so"))
}

/// Makes `name` a link to `to`, unless there is something of that name.
fn link(to: &Path, name: &Path) -> io::Result<()> {
    match symlink(to, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests;
