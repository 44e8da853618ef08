//! Compiles the device crate to PTX with rustc's own NVPTX code generator: one package for each
//! codegen unit, whose sources are those of `gpu-kernels`, with generated manifests. Cargo compiles
//! `core` once for them, and then the packages side by side. Nothing of the workspace around the
//! sources has to be resolved, so this needs no lock file and no registry, also where tilewise is
//! someone's dependency.

use std::fs;
use std::path::Path;

use gpu_kernels::Arch;

use crate::Error;
use crate::nested::{self, Compiled, OptLevel, Package, file_error};
use crate::toolchain::{TARGET, Toolchain};

/// The PTX ISA version asked for. Any driver since 525 (CUDA 12.0) loads 8.0, and
/// it has every instruction the kernels use.
const PTX_ISA: &str = "+ptx80";

/// Compiles the device crate for `arch`, a module for each of `units`: cargo features that name
/// entry points. Outputs and the compiled `core` are kept under `cache`. Quick when nothing has
/// changed.
///
/// # Errors
/// `cargo` does not run, the sources do not compile, or `cache` is not writable.
pub fn compile(
    toolchain: &Toolchain,
    arch: Arch,
    units: &[&str],
    level: OptLevel,
    cache: &Path,
) -> Result<Compiled, Error> {
    let package = Package {
        name: arch.name(),
        target: TARGET,
        manifests: &manifests(units, level),
        standard: "core",
        flags: &rustflags(arch),
    };
    let (made, warnings) = package.compile(toolchain, cache)?;
    let module = |unit: &&str| -> Result<String, Error> {
        let assembly = made.join(format!("deps/{unit}.s"));
        let ptx = fs::read_to_string(&assembly).map_err(file_error(&assembly))?;
        // The linker's output. Cargo compiles again as long as it is missing.
        let linked = assembly.with_extension("ptx");
        fs::write(&linked, &ptx).map_err(file_error(&linked))?;
        Ok(ptx)
    };
    Ok(Compiled {
        modules: units.iter().map(module).collect::<Result<_, _>>()?,
        warnings,
    })
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

/// The manifests of a workspace in which each unit is a package, with their places.
fn manifests(units: &[&str], level: OptLevel) -> Vec<(String, String)> {
    let unit = |unit: &&str| {
        let features = nested::device_features(&["standalone", unit]);
        let rest = format!("crate-type = [\"cdylib\"]\n{features}");
        let manifest = nested::manifest(unit, "gpu-kernels", &rest);
        (format!("{unit}/Cargo.toml"), manifest)
    };
    let mut manifests: Vec<_> = units.iter().map(unit).collect();
    let workspace = nested::workspace(units, level);
    manifests.push(("Cargo.toml".to_owned(), workspace));
    manifests
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::entry::ENTRIES;

    #[test]
    fn each_unit_is_a_package_with_its_feature_on() {
        let made = manifests(&["one", "two"], OptLevel::Size);
        let [one, two, workspace] = &made[..] else {
            panic!("{made:?}")
        };
        for ((place, text), name) in [(one, "one"), (two, "two")] {
            assert_eq!(*place, format!("{name}/Cargo.toml"));
            let features = format!("\ndefault = [\"standalone\", \"{name}\"]\n");
            for part in ["/gpu-kernels/src/lib.rs'\n", &features, "\nprobes = []\n"] {
                assert!(text.contains(part), "{text}");
            }
            for kernel in ENTRIES {
                let feature = format!("\n{} = []\n", kernel.codegen_unit);
                assert!(text.contains(&feature), "{text}");
            }
        }
        assert_eq!(workspace.0, "Cargo.toml");
        for part in ["members = [\"one\", \"two\"]\n", "\nopt-level = \"s\"\n"] {
            assert!(workspace.1.contains(part), "{}", workspace.1);
        }
        let three = nested::workspace(&[], OptLevel::Three);
        assert!(three.contains("\nopt-level = 3\n"), "{three}");
    }
}
