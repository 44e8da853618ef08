//! Compiles the device crate to PTX with rust-cuda.
//!
//! The builder program of `rust-cuda/` runs under rust-cuda's own toolchain and
//! calls `CudaBuilder`, which runs one more cargo for the device code. Cargo
//! builds the code generator along with the builder: minutes the first time.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_kernels::Arch;

use super::{RustCuda, TOOLCHAIN};
use crate::Error;
use crate::nested::{self, Compiled, absolute, file_error, warnings};

/// The builder's package.
const BUILDER: &str = "tilewise-rust-cuda-builder";

/// Whether [`prepare`] has little to do: the code generator has been built before.
///
/// # Errors
/// The workspace has no lock file.
pub fn is_prepared(rust_cuda: &RustCuda, cache: &Path) -> Result<bool, Error> {
    let target = target_dir(&directory(rust_cuda, cache)?);
    Ok(target.join("debug").join(BUILDER).is_file())
}

/// Builds the code generator, with cargo's messages on this program's output. ([`compile`]
/// builds it as well, without showing them.)
///
/// # Errors
/// rustup does not run, or the build fails.
pub fn prepare(rust_cuda: &RustCuda, cache: &Path) -> Result<(), Error> {
    let dir = directory(rust_cuda, cache)?;
    let mut command = cargo(rust_cuda, &dir, "build");
    let status = command.status().map_err(|source| Error::Spawn {
        program: rust_cuda.rustup.clone(),
        source,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::RustCudaGenerator)
    }
}

/// Compiles the device crate for `arch`, with the code generator and all outputs
/// kept under `cache`. Quick when nothing has changed.
///
/// # Errors
/// rustup does not run, the build fails, or `cache` is not writable.
pub fn compile(rust_cuda: &RustCuda, arch: Arch, cache: &Path) -> Result<Compiled, Error> {
    let dir = directory(rust_cuda, cache)?;
    let ptx = dir.join("ptx");
    fs::create_dir_all(&ptx).map_err(file_error(&ptx))?;
    let mut command = cargo(rust_cuda, &dir, "run");
    command.arg("--").arg(&ptx).arg(arch.name());
    let output = nested::output(&mut command)?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::RustCudaBuild {
            arch: arch.name(),
            output: messages.into_owned(),
        });
    }
    let file = ptx.join(format!("{}.ptx", arch.name()));
    let ptx = fs::read_to_string(&file).map_err(file_error(&file))?;
    Ok(Compiled {
        modules: vec![ptx],
        warnings: warnings(&messages),
    })
}

/// The folder of one rust-cuda: a code generator links to one LLVM and one libNVVM.
fn directory(rust_cuda: &RustCuda, cache: &Path) -> Result<PathBuf, Error> {
    let lock = rust_cuda.workspace.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(file_error(&lock))?;
    let mut hasher = DefaultHasher::new();
    (&rust_cuda.version(), &rust_cuda.llvm_config).hash(&mut hasher);
    (&rust_cuda.cuda_root, &lock).hash(&mut hasher);
    Ok(absolute(cache)?.join(format!("rust-cuda-{:016x}", hasher.finish())))
}

/// The target directory of the code generator and the builder.
fn target_dir(directory: &Path) -> PathBuf {
    directory.join("target")
}

/// The cargo of rust-cuda's toolchain, to `build` or `run` the builder.
fn cargo(rust_cuda: &RustCuda, directory: &Path, what: &str) -> Command {
    let mut command = Command::new(&rust_cuda.rustup);
    nested::forget_outer_cargo(&mut command);
    // `rustc_codegen_nvvm` is linked to libNVVM.
    nested::set_library_path(&mut command, &[rust_cuda.cuda_root.join("nvvm/lib64")]);
    command
        .args(["run", TOOLCHAIN, "cargo", what, "--locked"])
        .args(["--package", BUILDER])
        .current_dir(&rust_cuda.workspace)
        .env("CARGO_TARGET_DIR", target_dir(directory))
        .env("CARGO_TERM_COLOR", "never")
        .env("LLVM_CONFIG", &rust_cuda.llvm_config)
        .env("CUDA_PATH", &rust_cuda.cuda_root);
    command
}
