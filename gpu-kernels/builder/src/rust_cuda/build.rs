//! Compiles the device crate to PTX with rust-cuda.
//!
//! The builder program of `rust-cuda/` runs under rust-cuda's own toolchain and
//! calls `CudaBuilder`, which runs one more cargo for the device code. Cargo
//! builds the code generator along with the builder: minutes the first time.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use gpu_kernels::Arch;

use super::{RustCuda, TOOLCHAIN};
use crate::Error;
use crate::nested::{self, Compiled, absolute, file_error, warnings};

/// The builder's package.
const BUILDER: &str = "tilewise-rust-cuda-builder";

/// Compiles the device crate for `arch`, with the code generator and all outputs
/// kept under `cache`. Quick when nothing has changed.
///
/// # Errors
/// rustup does not run, the build fails, or `cache` is not writable.
pub fn compile(rust_cuda: &RustCuda, arch: Arch, cache: &Path) -> Result<Compiled, Error> {
    let lock = rust_cuda.workspace.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(file_error(&lock))?;
    // A code generator links to one LLVM and one libNVVM.
    let mut hasher = DefaultHasher::new();
    (&rust_cuda.version(), &rust_cuda.llvm_config).hash(&mut hasher);
    (&rust_cuda.cuda_root, &lock).hash(&mut hasher);
    let dir = absolute(cache)?.join(format!("rust-cuda-{:016x}", hasher.finish()));
    let ptx = dir.join("ptx");
    fs::create_dir_all(&ptx).map_err(file_error(&ptx))?;

    let mut command = Command::new(&rust_cuda.rustup);
    nested::forget_outer_cargo(&mut command);
    command
        .args(["run", TOOLCHAIN, "cargo", "run", "--locked"])
        .args(["--package", BUILDER, "--"])
        .arg(&ptx)
        .arg(arch.name())
        .current_dir(&rust_cuda.workspace)
        .env("CARGO_TARGET_DIR", dir.join("target"))
        .env("CARGO_TERM_COLOR", "never")
        .env("LLVM_CONFIG", &rust_cuda.llvm_config)
        .env("CUDA_PATH", &rust_cuda.cuda_root)
        .env("LD_LIBRARY_PATH", library_path(&rust_cuda.cuda_root));
    let output = command.output().map_err(|source| Error::Spawn {
        program: rust_cuda.rustup.clone(),
        source,
    })?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::RustCudaBuild {
            arch: arch.name(),
            output: messages.into_owned(),
        });
    }
    let file = ptx.join(format!("{}.ptx", arch.name()));
    Ok(Compiled {
        ptx: fs::read_to_string(&file).map_err(file_error(&file))?,
        warnings: warnings(&messages),
    })
}

/// The loader's path with libNVVM first: `rustc_codegen_nvvm` is linked to it.
fn library_path(cuda_root: &Path) -> OsString {
    let mut path = cuda_root.join("nvvm/lib64").into_os_string();
    if let Some(rest) = env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}
