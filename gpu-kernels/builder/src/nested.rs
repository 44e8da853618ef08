//! What both device builds share: a cargo of their own, apart from the one that
//! may be building us.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// What a compiler made of the device code for one target.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module, all entry points in one.
    pub ptx: String,
    /// The compiler's warnings about the device code.
    pub warnings: Vec<String>,
}

/// Takes the outer cargo's variables away from a nested one.
pub(crate) fn forget_outer_cargo(command: &mut Command) {
    for (name, _) in env::vars_os().filter(|(name, _)| is_outer(&name.to_string_lossy())) {
        command.env_remove(name);
    }
}

/// Whether a variable belongs to the cargo that builds us, and would steer the
/// nested one. The job server and the user's home and network settings stay.
fn is_outer(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("CARGO_") {
        let kept = ["HOME", "MAKEFLAGS"].contains(&rest)
            || ["HTTP_", "NET_"]
                .iter()
                .any(|start| rest.starts_with(start));
        return !kept;
    }
    name.starts_with("RUSTC") || ["RUSTFLAGS", "RUSTDOCFLAGS"].contains(&name)
}

/// The warnings in what cargo printed, less those that are about our own flags.
pub(crate) fn warnings(messages: &str) -> Vec<String> {
    messages
        .split("\n\n")
        .filter_map(|block| block.find("warning: ").map(|start| &block[start..]))
        .filter(|block| {
            let summary = block.starts_with("warning: `gpu-kernels`");
            !summary && !block.contains("for `-Ctarget-feature`")
        })
        .map(|block| block.trim_end().to_owned())
        .collect()
}

/// `path` from the root.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(file_error(path))
}

/// Writes a file unless it already says `text`: cargo goes by modification times.
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

/// What to make of a failure with a file.
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
        ] {
            assert!(is_outer(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "PATH",
            "RUSTUP_HOME",
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
