//! Compiles the device crate to PTX with rustc's own NVPTX code generator: one package,
//! whose sources are those of `gpu-kernels`, with a generated manifest. Nothing of the
//! workspace around them has to be resolved, so this needs no lock file and no registry,
//! also where tilewise is someone's dependency.

use std::fs;
use std::path::Path;

use gpu_kernels::Arch;

use crate::Error;
use crate::nested::{self, Compiled, OptLevel, Package, file_error};
use crate::toolchain::{TARGET, Toolchain};

/// The PTX ISA version asked for. Any driver since 525 (CUDA 12.0) loads 8.0, and
/// it has every instruction the kernels use.
const PTX_ISA: &str = "+ptx80";

/// Compiles the device crate for `arch`, with the entry points that its cargo
/// feature `entries` names. Outputs and the compiled `core` are kept under `cache`.
/// Quick when nothing has changed.
///
/// # Errors
/// `cargo` does not run, the sources do not compile, or `cache` is not writable.
pub fn compile(
    toolchain: &Toolchain,
    arch: Arch,
    entries: &str,
    level: OptLevel,
    cache: &Path,
) -> Result<Compiled, Error> {
    let package = Package {
        name: entries,
        target: TARGET,
        manifests: &[("Cargo.toml", manifest(level))],
        standard: "core",
        flags: &rustflags(arch),
        features: &format!("standalone,{entries}"),
    };
    let (made, warnings) = package.compile(toolchain, cache)?;
    let assembly = made.join("deps/gpu_kernels.s");
    let ptx = fs::read_to_string(&assembly).map_err(file_error(&assembly))?;
    // The linker's output. Cargo compiles again as long as it is missing.
    let linked = assembly.with_extension("ptx");
    fs::write(&linked, &ptx).map_err(file_error(&linked))?;
    Ok(Compiled { ptx, warnings })
}

/// The compiler flags of the device build, for `core` and the kernels alike.
fn rustflags(arch: Arch) -> Vec<String> {
    vec![
        format!("-Ctarget-cpu={}", arch.name()),
        format!("-Ctarget-feature={PTX_ISA}"),
        "--emit=asm".into(),
        // The PTX is wanted, not a linked file, and there is no linker for it.
        "-Clinker=true".into(),
        // This pass may duplicate a barrier into both arms of a branch.
        "-Zmir-enable-passes=-JumpThreading".into(),
    ]
}

/// The manifest of the device crate.
fn manifest(level: OptLevel) -> String {
    let rest = format!(
        "crate-type = [\"cdylib\"]\n{}{}",
        nested::device_features(),
        nested::profile(level)
    );
    nested::manifest("gpu-kernels", "gpu-kernels", &rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_has_a_feature_for_each_target() {
        let text = manifest(OptLevel::Three);
        assert!(text.contains("\nopt-level = 3\n"), "{text}");
        let small = manifest(OptLevel::Size);
        assert!(small.contains("\nopt-level = \"s\"\n"), "{small}");
        assert!(text.contains("/gpu-kernels/src/lib.rs'\n"), "{text}");
        for arch in Arch::ALL {
            assert!(
                text.contains(&format!("\n{} = []\n", arch.name())),
                "{text}"
            );
        }
        assert!(text.contains("\nprobes = []\n"), "{text}");
    }
}
