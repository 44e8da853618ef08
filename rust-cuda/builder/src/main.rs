//! `builder DIRECTORY TARGET`: compiles the kernels of one PTX target (`sm_75`,
//! `sm_80`, `sm_90a`) with rust-cuda's `CudaBuilder` to `DIRECTORY/TARGET.ptx`.
//!
//! `cargo xtask ptx --codegen rust-cuda` runs it, and then adds the launch bounds
//! and checks the result, as it does for rustc's PTX.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [directory, target] = &arguments[..] else {
        eprintln!("usage: builder DIRECTORY TARGET");
        return ExitCode::FAILURE;
    };
    let Some(arch) = arch(target) else {
        eprintln!("no target `{target}`; there are sm_75, sm_80, sm_90a");
        return ExitCode::FAILURE;
    };
    match build(Path::new(directory), target, arch) {
        Ok(ptx) => {
            println!("{}", ptx.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// libNVVM's name of a target.
fn arch(target: &str) -> Option<NvvmArch> {
    Some(match target {
        "sm_75" => NvvmArch::Compute75,
        "sm_80" => NvvmArch::Compute80,
        "sm_90a" => NvvmArch::Compute90a,
        _ => return None,
    })
}

/// Compiles one target.
fn build(directory: &Path, target: &str, arch: NvvmArch) -> Result<PathBuf, CudaBuilderError> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("kernels");
    // A target directory for each: cargo calls the cdylib fresh after a switch
    // back from another target, though its one file has been overwritten.
    let target_dir = directory.join(target).display().to_string();
    CudaBuilder::new(kernels)
        .arch(arch)
        // rustc fuses no a·b + c by itself, and results are to be equal.
        .fma_contraction(false)
        .build_args(&[
            "--locked",
            "--features",
            target,
            "--target-dir",
            &target_dir,
        ])
        // This pass may duplicate a barrier into both arms of a branch. CudaBuilder
        // sets the flags of all crates itself; those of the profile are added.
        .build_args(&[
            "-Zprofile-rustflags",
            "--config",
            "profile.release.rustflags=['-Zmir-enable-passes=-JumpThreading']",
        ])
        .copy_to(directory.join(format!("{target}.ptx")))
        .build()
}
