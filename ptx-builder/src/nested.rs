//! Builds for other targets run a cargo of their own, apart from the one that may be
//! running this program as a build script.
//!
//! - It has its own target directory. A build script cannot use the outer cargo's,
//!   which is locked while the script runs.
//! - It sees none of the outer cargo's variables.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpu_kernels::entry::ENTRIES;

use crate::Error;
use crate::toolchain::{CoreLibrary, Toolchain};

/// Device code for one target, compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The PTX modules.
    pub modules: Vec<String>,
    /// The compiler's warnings about the device code.
    pub warnings: Vec<String>,
}

/// The device crate's cargo feature for the probes.
pub const PROBES_FEATURE: &str = "probes";

/// How hard the compiler optimises the device code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// `opt-level = 1`.
    One,
    /// `opt-level = 2`.
    Two,
    /// `opt-level = 3`, the level of every build except the proofs of convergence.
    #[default]
    Three,
    /// `opt-level = "s"`.
    Size,
}

impl OptLevel {
    /// All of them.
    pub const ALL: [OptLevel; 4] = [
        OptLevel::One,
        OptLevel::Two,
        OptLevel::Three,
        OptLevel::Size,
    ];

    /// The value of `-Copt-level`.
    pub const fn name(self) -> &'static str {
        match self {
            OptLevel::One => "1",
            OptLevel::Two => "2",
            OptLevel::Three => "3",
            OptLevel::Size => "s",
        }
    }
}

/// Libraries to compile for another target, from generated manifests whose sources are
/// the workspace's. The workspace's own manifests would ask for dependencies that these
/// builds have no use for, a lock file, and a registry to look them up in.
pub(crate) struct Package<'a> {
    /// The first part of the folder's name in the cache.
    pub name: &'a str,
    /// The target as rustc names it.
    pub target: &'static str,
    /// The manifests, each with its place below the folder. `Cargo.toml` is the library's, or that
    /// of a workspace of libraries, which are all compiled.
    pub manifests: &'a [(String, String)],
    /// The crates of the standard library that they use, for where they must be compiled
    /// too, separated by commas.
    pub standard: &'static str,
    /// The compiler's flags, for the standard library and the package alike.
    pub flags: &'a [String],
}

impl Package<'_> {
    /// Compiles it in release. Returns the folder with rustc's output, and rustc's warnings.
    /// Quick when nothing has changed.
    pub fn compile(
        &self,
        toolchain: &Toolchain,
        cache: &Path,
    ) -> Result<(PathBuf, Vec<String>), Error> {
        // Cargo overwrites the one output file, and calls it fresh after a switch
        // back: whatever changes the output changes the folder.
        let mut hasher = DefaultHasher::new();
        (&toolchain.verbose_version, self.flags, self.manifests).hash(&mut hasher);
        let dir = absolute(cache)?.join(format!("{}-{:016x}", self.name, hasher.finish()));
        for (place, manifest) in self.manifests {
            write_if_changed(&dir.join(place), manifest)?;
        }
        let output = output(&mut self.cargo(toolchain, &dir))?;
        let messages = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(Error::Compile {
                package: self.name.to_owned(),
                output: messages.into_owned(),
            });
        }
        let made = dir.join("target").join(self.target).join("release");
        Ok((made, warnings(&messages)))
    }

    fn cargo(&self, toolchain: &Toolchain, dir: &Path) -> Command {
        let target_dir = dir.join("target");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        forget_outer_cargo(&mut cargo);
        cargo
            .current_dir(dir)
            .args(["build", "--release", "--lib", "--manifest-path"])
            .arg(dir.join("Cargo.toml"))
            .args(["--target", self.target, "--target-dir"])
            .arg(&target_dir)
            .env("CARGO_BUILD_BUILD_DIR", &target_dir)
            .env("CARGO_TERM_COLOR", "never")
            .env("RUSTC", &toolchain.rustc)
            // Empty: no wrapper, whatever a configuration file says.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags.join("\u{1f}"));
        let vendor = match &toolchain.core {
            CoreLibrary::Compiled => None,
            CoreLibrary::Source(library) => {
                cargo.arg(format!("-Zbuild-std={}", self.standard));
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
        cargo
    }
}

/// The manifest of package `name`, whose sources are those of `folder` in this
/// repository.
pub(crate) fn manifest(name: &str, folder: &str, rest: &str) -> String {
    format!(
        "# Generated by ptx-builder.\n\
         [package]\n\
         name = \"{name}\"\n\
         version = \"{}\"\n\
         edition = \"2024\"\n\
         [lib]\n\
         path = '{}'\n\
         {rest}",
        env!("CARGO_PKG_VERSION"),
        sources(folder).join("lib.rs").display(),
    )
}

/// The manifest of a workspace of the packages in the folders `members`, or the end of the manifest of
/// a package that is compiled by itself.
pub(crate) fn workspace(members: &[&str], level: OptLevel) -> String {
    let level = match level {
        OptLevel::Size => "\"s\"",
        level => level.name(),
    };
    format!(
        "[workspace]\n\
         resolver = \"3\"\n\
         members = {members:?}\n\
         [profile.release]\n\
         opt-level = {level}\n\
         panic = \"abort\"\n\
         lto = \"fat\"\n\
         codegen-units = 1\n"
    )
}

/// The section of the device crate's manifest that declares its cargo features, and enables some.
/// Builds for other targets must know them, too.
pub(crate) fn device_features(enabled: &[&str]) -> String {
    let mut names = vec!["standalone", PROBES_FEATURE, "emulator"];
    names.extend(ENTRIES.iter().map(|kernel| kernel.codegen_unit));
    names.sort_unstable();
    names.dedup();
    let lines = names.iter().map(|name| format!("{name} = []\n"));
    format!(
        "[features]\ndefault = {enabled:?}\n{}",
        lines.collect::<String>()
    )
}

/// The folder with the sources of a crate of this repository.
pub(crate) fn sources(folder: &str) -> PathBuf {
    repository().join(folder).join("src")
}

/// The root of this repository.
pub(crate) fn repository() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Runs a command to its end.
pub(crate) fn output(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Spawn {
        program: command.get_program().into(),
        source,
    })
}

/// Removes the variables from a nested cargo that an outer one has set, for a build script
/// or for a program that it runs.
pub(crate) fn forget_outer_cargo(command: &mut Command) {
    for (name, _) in env::vars_os().filter(|(name, _)| is_outer(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    set_library_path(command, &[]);
}

/// The loader's search path, which cargo extends for what it runs.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Has the loader look for a command's libraries in `first`, and then where it would
/// have looked without the outer cargo.
pub(crate) fn set_library_path(command: &mut Command, first: &[PathBuf]) {
    let inherited = env::var_os(LIBRARY_PATH).unwrap_or_default();
    let others = env::split_paths(&inherited)
        .filter(|dir| !dir.as_os_str().is_empty() && !is_outer_libraries(dir));
    match env::join_paths(first.iter().cloned().chain(others)) {
        Ok(path) if !path.is_empty() => command.env(LIBRARY_PATH, path),
        _ => command.env_remove(LIBRARY_PATH),
    };
}

/// Whether a variable belongs to the outer cargo and would change what the nested one, or
/// a program under it, does: `CudaBuilder` takes `OUT_DIR` for its own, and
/// bindgen compiles anew whenever `TARGET` comes or goes. The job server and the
/// user's home and network settings stay.
fn is_outer(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("CARGO_") {
        let kept = ["HOME", "MAKEFLAGS"].contains(&rest)
            || ["HTTP_", "NET_"]
                .iter()
                .any(|start| rest.starts_with(start));
        return !kept;
    }
    // "Environment variables Cargo sets for build scripts" in its book; DEP_ begins those
    // that the packages which a build script's own links to tell it.
    #[rustfmt::skip]
    let of_build_scripts = matches!(
        name,
        "CARGO" | "DEBUG" | "HOST" | "NUM_JOBS" | "OPT_LEVEL" | "OUT_DIR" | "PROFILE" | "RUSTDOC"
            | "RUSTDOCFLAGS" | "RUSTFLAGS" | "TARGET"
    );
    of_build_scripts || name.starts_with("DEP_") || name.starts_with("RUSTC")
}

/// Whether cargo has put a directory on the loader's path: a part of its target
/// directory, or the compiler's libraries.
fn is_outer_libraries(dir: &Path) -> bool {
    let of_the_compiler = || {
        let mut entries = dir.read_dir().into_iter().flatten().flatten();
        entries.any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("librustc_driver-") || name.starts_with("libstd-")
        })
    };
    dir.ancestors().any(is_target_dir) || of_the_compiler()
}

/// Whether cargo has marked `dir` as a target directory.
pub(crate) fn is_target_dir(dir: &Path) -> bool {
    dir.join("CACHEDIR.TAG").is_file()
}

/// The warnings that cargo printed, without those about the flags of [`Package`].
pub(crate) fn warnings(messages: &str) -> Vec<String> {
    messages
        .split("\n\n")
        .filter_map(|block| block.find("warning: ").map(|start| &block[start..]))
        .filter(|block| {
            let summary = block.starts_with("warning: `");
            !summary && !block.contains("for `-Ctarget-feature`")
        })
        .map(|block| block.trim_end().to_owned())
        .collect()
}

/// `path` as an absolute path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(file_error(path))
}

/// Writes a file unless it already holds `text`, for cargo compares modification times.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text)
    };
    write().map_err(file_error(path))
}

/// Makes an [`Error`] of a failure with a file.
pub(crate) fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_build_does_not_reach_the_nested_one() {
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_FEATURE_X",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "DEP_CUDA_ROOT",
            "CARGO",
            "DEBUG",
            "HOST",
            "NUM_JOBS",
            "OPT_LEVEL",
            "OUT_DIR",
            "PROFILE",
            "RUSTDOC",
            "RUSTDOCFLAGS",
            "TARGET",
        ] {
            assert!(is_outer(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "PATH",
            "RUSTUP_HOME",
            "TARGETS",
        ] {
            assert!(!is_outer(name), "{name}");
        }
    }

    #[test]
    fn only_warnings_about_the_code_are_reported() {
        let messages = "   Compiling gpu-kernels v0.1.0\n\
            warning: unstable feature specified for `-Ctarget-feature`: `ptx80`\n  |\n\n\
            warning: unused variable: `x`\n --> src/lib.rs:1:1\n\n\
            warning: `gpu-kernels` (lib) generated 2 warnings\n    Finished\n";
        assert_eq!(
            warnings(messages),
            ["warning: unused variable: `x`\n --> src/lib.rs:1:1"]
        );
    }
}
