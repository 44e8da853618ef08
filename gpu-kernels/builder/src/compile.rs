//! Compiles the device crate to PTX with rustc's own NVPTX code generator.
//!
//! The compiler runs under a cargo of its own, apart from the one that may be
//! building us:
//!
//! - It has its own target directory. A build script cannot use the outer
//!   cargo's, which is locked while the script runs.
//! - It sees a generated manifest with one package, whose sources are those of
//!   `gpu-kernels`. Nothing of the workspace around them has to be resolved, so
//!   they need no lock file and no registry, also where tilewise is someone's
//!   dependency.
//! - It sees none of the outer cargo's variables.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_kernels::Arch;

use crate::Error;
use crate::nested::{self, Compiled, absolute, file_error, warnings, write_if_changed};
use crate::toolchain::{CoreLibrary, TARGET, Toolchain};

/// The PTX ISA version asked for. Any driver since 525 (CUDA 12.0) loads 8.0, and
/// it has every instruction the kernels use.
const PTX_ISA: &str = "+ptx80";

/// The device crate's cargo feature for the probes; that of an [`Arch`]'s kernels has
/// the architecture's name.
pub const PROBES_FEATURE: &str = "probes";

/// The directory of the device crate.
pub(crate) fn device_crate() -> PathBuf {
    // This package lies inside it.
    let mut dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    dir.pop();
    dir
}

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
    cache: &Path,
) -> Result<Compiled, Error> {
    let flags = rustflags(arch);
    let manifest_text = manifest(&device_crate());
    // Cargo overwrites the one output file, and calls it fresh after a switch
    // back: whatever changes the output changes the directory.
    let mut hasher = DefaultHasher::new();
    (&toolchain.verbose_version, &flags, &manifest_text).hash(&mut hasher);
    let dir = absolute(cache)?.join(format!("{entries}-{:016x}", hasher.finish()));

    let manifest_path = dir.join("Cargo.toml");
    write_if_changed(&manifest_path, &manifest_text)?;
    let target_dir = dir.join("target");
    let program = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let mut cargo = Command::new(&program);
    nested::forget_outer_cargo(&mut cargo);
    cargo
        .current_dir(&dir)
        .args(["rustc", "--release", "--lib", "--manifest-path"])
        .arg(&manifest_path)
        .args(["--features", entries, "--target", TARGET])
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_BUILD_BUILD_DIR", &target_dir)
        .env("CARGO_TERM_COLOR", "never")
        .env("RUSTC", &toolchain.rustc)
        // Empty: no wrapper, whatever a configuration file says.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let vendor = match &toolchain.core {
        CoreLibrary::Compiled => None,
        CoreLibrary::Source(library) => {
            cargo.arg("-Zbuild-std=core");
            Some(library.join("vendor"))
        }
    };
    match vendor {
        // Cargo resolves all of the standard library before it builds `core`.
        // Where its dependencies come with its source, nothing else is read.
        Some(vendor) if vendor.is_dir() => {
            let std = format!("source.std.directory='{}'", vendor.display());
            let replace = "source.crates-io.replace-with='std'";
            cargo.args(["--offline", "--config", replace, "--config", &std]);
        }
        Some(_) => {}
        None => {
            cargo.arg("--offline");
        }
    }
    let output = cargo
        .output()
        .map_err(|source| Error::Spawn { program, source })?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Compile {
            arch: arch.name(),
            output: messages.into_owned(),
        });
    }
    let assembly = target_dir.join(TARGET).join("release/deps/gpu_kernels.s");
    let ptx = fs::read_to_string(&assembly).map_err(file_error(&assembly))?;
    // The linker's output. Cargo compiles again as long as it is missing.
    let linked = assembly.with_extension("ptx");
    fs::write(&linked, &ptx).map_err(file_error(&linked))?;
    Ok(Compiled {
        ptx,
        warnings: warnings(&messages),
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

/// The manifest of the nested build.
fn manifest(device_crate: &Path) -> String {
    // The emulator is for the host alone, but its name must be known.
    let mut features = format!(
        "default = [\"standalone\"]\nstandalone = []\nemulator = []\n{PROBES_FEATURE} = []\n"
    );
    for arch in Arch::ALL {
        let _ = writeln!(features, "{} = []", arch.name());
    }
    format!(
        "# Generated by ptx-builder.\n\
         [workspace]\n\
         [package]\n\
         name = \"gpu-kernels\"\n\
         version = \"{version}\"\n\
         edition = \"2024\"\n\
         [lib]\n\
         path = '{lib}'\n\
         crate-type = [\"cdylib\"]\n\
         [features]\n\
         {features}\
         [profile.release]\n\
         opt-level = 3\n\
         panic = \"abort\"\n\
         lto = \"fat\"\n\
         codegen-units = 1\n\
         debug = 0\n",
        version = env!("CARGO_PKG_VERSION"),
        lib = device_crate.join("src/lib.rs").display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_has_a_feature_for_each_target() {
        let text = manifest(Path::new("/crate"));
        assert!(text.contains("path = '/crate/src/lib.rs'\n"));
        for arch in Arch::ALL {
            assert!(
                text.contains(&format!("\n{} = []\n", arch.name())),
                "{text}"
            );
        }
        assert!(text.contains("\nprobes = []\n"), "{text}");
    }
}
