//! Finds a `rustc` that can compile for `nvptx64-nvidia-cuda`, or for another target
//! that is not the host ([`crate::wasm`]).
//!
//! Every `rustc` has the NVPTX backend. What most lack is `core` for it, which
//! comes compiled (`rustup target add`) or as source (`rustup component add
//! rust-src`, or a distribution's package) that `-Zbuild-std` compiles. The
//! source must be that of the very same `rustc`, so each compiler is looked at
//! together with what its own sysroot holds:
//!
//! 1. the project's compiler (cargo's `RUSTC`, or `rustc` on PATH) with a compiled `core`;
//! 2. the same with the source of `core`;
//! 3. `/usr/bin/rustc` with either, which is where Debian's `rustc-web` and
//!    `rust-web-src` put a matching pair.
//!
//! Two variables change that: [`PTX`] and [`DEVICE_RUSTC`].

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `TILEWISE_PTX=skip`: build without device code, as if no toolchain existed.
pub const PTX: &str = "TILEWISE_PTX";

/// `TILEWISE_DEVICE_RUSTC=/path/to/rustc`: use this compiler and look for no other.
pub const DEVICE_RUSTC: &str = "TILEWISE_DEVICE_RUSTC";

/// The PTX target as rustc names it.
pub const TARGET: &str = "nvptx64-nvidia-cuda";

/// Where distributions install their compiler.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// Where a compiler's `core` for a target comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreLibrary {
    /// Compiled, in the sysroot.
    Compiled,
    /// As source: the sysroot's `library` directory.
    Source(PathBuf),
}

/// A compiler that can build for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// What `rustc --version --verbose` prints: identifies it exactly.
    pub verbose_version: String,
    /// Where its `core` comes from.
    pub core: CoreLibrary,
}

impl Toolchain {
    /// The compiler with its LLVM, which decides what becomes of the device code:
    /// `rustc 1.95.0 (59807616e 2026-04-14), LLVM 22.1.2`.
    pub fn version(&self) -> String {
        let mut lines = self.verbose_version.lines();
        let rustc = lines.next().unwrap_or_default();
        match lines.find_map(|line| line.strip_prefix("LLVM version: ")) {
            Some(llvm) => format!("{rustc}, LLVM {llvm}"),
            None => rustc.to_owned(),
        }
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = match self.core {
            CoreLibrary::Compiled => "compiled core",
            CoreLibrary::Source(_) => "core from source",
        };
        write!(f, "{} at {}, {core}", self.version(), self.rustc.display())
    }
}

/// Why there is no device toolchain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToolchain {
    /// [`PTX`] asked for none.
    #[error("{PTX}=skip: built without device code")]
    Skipped,
    /// No compiler has `core` for the target.
    #[error(
        "no device toolchain ({}); `cargo xtask setup` gets one, or by hand: \
         `rustup component add rust-src`, or on Debian `apt-get install rustc-web rust-web-src`",
        tried.join("; ")
    )]
    NotFound {
        /// For each compiler that was looked at: what it lacks.
        tried: Vec<String>,
    },
}

/// Looks for a device toolchain, in the order the [module](self) gives.
///
/// # Errors
/// No compiler has what it takes, or the environment asks for no device code.
pub fn find() -> Result<Toolchain, NoToolchain> {
    if is_skipped() {
        return Err(NoToolchain::Skipped);
    }
    find_for(TARGET).map_err(|tried| NoToolchain::NotFound { tried })
}

/// Every device toolchain among the compilers that [`find`] looks at, and what each of
/// the others lacks.
pub fn find_all() -> (Vec<Toolchain>, Vec<String>) {
    let (mut found, mut lacking) = (Vec::new(), Vec::new());
    for inspected in inspect_all(TARGET) {
        match inspected {
            Ok(toolchain) => found.push(toolchain),
            Err(reason) => lacking.push(reason),
        }
    }
    (found, lacking)
}

/// Looks for a compiler with `core` for `target`; else, what each lacks.
pub(crate) fn find_for(target: &str) -> Result<Toolchain, Vec<String>> {
    let mut tried = Vec::new();
    for inspected in inspect_all(target) {
        match inspected {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => tried.push(reason),
        }
    }
    Err(tried)
}

/// Looks at one compiler after the other; what one lacks is said with its path.
fn inspect_all(target: &str) -> impl Iterator<Item = Result<Toolchain, String>> {
    compilers().into_iter().map(move |rustc| {
        inspect(&rustc, target).map_err(|reason| format!("{}: {reason}", rustc.display()))
    })
}

/// Files that change when a device toolchain is installed later: rustup's list of
/// what the toolchain has, and Debian's.
pub(crate) fn package_lists() -> Vec<PathBuf> {
    let components = compilers()
        .first()
        .and_then(|rustc| print(rustc, &["--print", "sysroot"]))
        .map(|sysroot| Path::new(&sysroot).join("lib/rustlib/components"));
    let mut files: Vec<PathBuf> = components.into_iter().collect();
    files.push("/var/lib/dpkg/status".into());
    files
}

/// Whether [`PTX`] asks for no device code.
pub fn is_skipped() -> bool {
    env::var_os(PTX).is_some_and(|value| value == "skip")
}

/// The compilers to look at, the preferred one first.
fn compilers() -> Vec<PathBuf> {
    if let Some(rustc) = env::var_os(DEVICE_RUSTC) {
        return vec![rustc.into()];
    }
    let project = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    vec![project.into(), SYSTEM_RUSTC.into()]
}

/// Whether `rustc` has `core` for the target, and else what it lacks.
fn inspect(rustc: &Path, target: &str) -> Result<Toolchain, String> {
    let verbose_version = print(rustc, &["--version", "--verbose"]).ok_or("does not run")?;
    let release = verbose_version
        .lines()
        .find_map(|line| line.strip_prefix("release: "))
        .and_then(minor_version)
        .ok_or("has no version")?;
    let oldest = minor_version(env!("CARGO_PKG_RUST_VERSION")).ok_or("is not comparable")?;
    if release < oldest {
        return Err(concat!("is older than ", env!("CARGO_PKG_RUST_VERSION")).into());
    }
    let libdir = print(rustc, &["--print", "target-libdir", "--target", target])
        .ok_or("does not know the target")?;
    let sysroot = print(rustc, &["--print", "sysroot"]).ok_or("has no sysroot")?;
    let library = Path::new(&sysroot).join("lib/rustlib/src/rust/library");
    let core = if has_compiled_core(Path::new(&libdir)) {
        CoreLibrary::Compiled
    } else if library.join("core/src/lib.rs").is_file() {
        CoreLibrary::Source(library)
    } else {
        return Err(format!("has neither core for {target} nor its source"));
    };
    // The compiler itself, where `rustc` is a proxy on PATH.
    let itself = Path::new(&sysroot).join("bin/rustc");
    Ok(Toolchain {
        rustc: if itself.is_file() {
            itself
        } else {
            rustc.to_owned()
        },
        verbose_version,
        core,
    })
}

/// Whether a target's library directory holds `libcore-*.rlib`.
fn has_compiled_core(libdir: &Path) -> bool {
    let Ok(files) = libdir.read_dir() else {
        return false;
    };
    files.flatten().any(|file| {
        let name = file.file_name();
        name.as_encoded_bytes().starts_with(b"libcore-")
            && Path::new(&name).extension() == Some(OsStr::new("rlib"))
    })
}

/// `1.95.0-nightly` as (1, 95).
fn minor_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What `rustc` prints with these arguments, if it runs and succeeds.
pub(crate) fn print(rustc: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(rustc).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(minor_version("1.95.0"), Some((1, 95)));
        assert_eq!(minor_version("1.100.0-nightly"), Some((1, 100)));
        assert!(minor_version("1.100.0") > minor_version("1.95"));
        assert_eq!(minor_version("unknown"), None);
    }

    #[test]
    fn a_version_names_the_compiler_and_its_llvm() {
        let toolchain = |verbose_version: &str| Toolchain {
            rustc: "rustc".into(),
            verbose_version: verbose_version.into(),
            core: CoreLibrary::Compiled,
        };
        let stable = "rustc 1.95.0 (59807616e 2026-04-14)\nrelease: 1.95.0\nLLVM version: 22.1.2";
        let expected = "rustc 1.95.0 (59807616e 2026-04-14), LLVM 22.1.2";
        assert_eq!(toolchain(stable).version(), expected);
        assert_eq!(toolchain("rustc 1.95.0").version(), "rustc 1.95.0");
    }

    #[test]
    fn a_program_that_is_no_compiler_is_refused() {
        let refusal = |path| inspect(Path::new(path), TARGET).unwrap_err();
        assert_eq!(refusal("/no/such/rustc"), "does not run");
        assert_eq!(refusal("/bin/true"), "has no version");
    }

    #[test]
    fn a_compiled_core_is_recognised_by_its_file() {
        let dir = env::temp_dir().join(format!("ptx-builder-core-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("libcore-0123.rmeta"), "").unwrap();
        let without = has_compiled_core(&dir);
        std::fs::write(dir.join("libcore-0123.rlib"), "").unwrap();
        let with = has_compiled_core(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!((without, with), (false, true));
    }

    #[test]
    fn the_reason_names_the_commands() {
        let reason = NoToolchain::NotFound {
            tried: vec!["rustc: does not run".into()],
        }
        .to_string();
        for part in [
            "rustc: does not run",
            "cargo xtask setup",
            "rustup component add rust-src",
            "apt-get install rustc-web rust-web-src",
        ] {
            assert!(reason.contains(part), "{reason}");
        }
    }
}
