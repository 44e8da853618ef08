//! Compiles the computations of the HTML page, the crate `tilewise-explorer`, to
//! WebAssembly.
//!
//! It finds a `rustc` that has `core` for `wasm32-unknown-unknown` ([`toolchain`] says
//! where it looks) and a linker, which rustup's compilers bring and Debian's does not. Then
//! it runs a cargo of its own on generated manifests, with the workspace's sources. The
//! module has a plain C interface and needs no `wasm-bindgen`.
//!
//! The variable [`WASM`] can switch it off.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::nested::{self, OptLevel, Package, file_error};
use crate::toolchain::{self, Toolchain};

/// `TILEWISE_WASM=skip`: build without the page's module, as if no toolchain existed.
pub const WASM: &str = "TILEWISE_WASM";

/// The target as rustc names it.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Names of LLVM's linker; the first is what rustc ships.
const LINKERS: [&str; 2] = ["rust-lld", "wasm-ld"];

/// A compiler and a linker for WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmToolchain {
    /// The compiler.
    pub toolchain: Toolchain,
    /// LLVM's linker.
    pub linker: PathBuf,
}

impl fmt::Display for WasmToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, linked by {}", self.toolchain, self.linker.display())
    }
}

/// Why there is no WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWasm {
    /// [`WASM`] asked for none.
    #[error("{WASM}=skip: built without WebAssembly")]
    Skipped,
    /// No compiler has `core` for the target.
    #[error(
        "no compiler for WebAssembly ({}); `cargo xtask setup` gets one, or by hand: \
         `rustup target add {TARGET}`, or on Debian `apt-get install rustc-web rust-web-src lld`",
        tried.join("; ")
    )]
    NoCompiler {
        /// For each compiler that was looked at: what it lacks.
        tried: Vec<String>,
    },
    /// There is a compiler and no linker.
    #[error(
        "no linker for WebAssembly ({} or {}, of the toolchains, on PATH or in /usr/lib/llvm-*); \
         `cargo xtask setup` gets one, or by hand on Debian: `apt-get install lld`",
        LINKERS[0], LINKERS[1]
    )]
    NoLinker,
}

/// Looks for a compiler and a linker.
///
/// # Errors
/// One of them is missing, or the environment asked for none.
pub fn find() -> Result<WasmToolchain, NoWasm> {
    if env::var_os(WASM).is_some_and(|value| value == "skip") {
        return Err(NoWasm::Skipped);
    }
    let toolchain = toolchain::find_for(TARGET).map_err(|tried| NoWasm::NoCompiler { tried })?;
    let linker = linkers(&toolchain)
        .into_iter()
        .find(|linker| linker.is_file())
        .ok_or(NoWasm::NoLinker)?;
    Ok(WasmToolchain { toolchain, linker })
}

/// The variables and files that decide what [`find`] finds, and the sources: a build script
/// runs again when one of them changes.
pub fn watched() -> (Vec<&'static str>, Vec<PathBuf>) {
    let mut files = toolchain::package_lists();
    files.extend(["gpu-kernels", "model", "program", "explorer"].map(nested::sources));
    (vec![WASM, toolchain::DEVICE_RUSTC], files)
}

/// Paths where a linker may be: beside the compiler that is used and beside the project's,
/// on PATH, and in LLVM's folders, the newest first.
fn linkers(toolchain: &Toolchain) -> Vec<PathBuf> {
    let project = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let beside = [toolchain.rustc.as_path(), Path::new(&project)]
        .into_iter()
        .filter_map(|rustc| {
            let libdir = toolchain::print(rustc, &["--print", "target-libdir"])?;
            Some(Path::new(&libdir).with_file_name("bin"))
        });
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = beside.chain(env::split_paths(&path)).collect();
    let mut llvm: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|folder| {
            let name = folder.file_name();
            let release = name.to_str()?.strip_prefix("llvm-")?.parse().ok()?;
            Some((release, folder.path().join("bin")))
        })
        .collect();
    llvm.sort_unstable_by(|a, b| b.cmp(a));
    folders.extend(llvm.into_iter().map(|(_, folder)| folder));
    let in_folder = |folder: PathBuf| LINKERS.map(|name| folder.join(name));
    folders.into_iter().flat_map(in_folder).collect()
}

/// The compiled module.
#[derive(Clone, Debug)]
pub struct Module {
    /// The module in WebAssembly's binary format, a few tens of kilobytes.
    pub bytes: Vec<u8>,
    /// The compiler's warnings about the sources.
    pub warnings: Vec<String>,
}

/// Compiles the module. Intermediate results are kept under `cache`
/// ([`crate::cache_dir`]).
///
/// # Errors
/// `cargo` does not run, the sources do not compile, or `cache` is not writable.
pub fn build(wasm: &WasmToolchain, cache: &Path) -> Result<Module, Error> {
    let package = Package {
        name: "wasm",
        target: TARGET,
        manifests: &manifests(),
        standard: "core,alloc",
        flags: &[
            format!("-Clinker={}", wasm.linker.display()),
            "-Clinker-flavor=wasm-ld".to_owned(),
        ],
    };
    let (made, warnings) = package.compile(&wasm.toolchain, cache)?;
    let module = made.join("tilewise_explorer.wasm");
    Ok(Module {
        bytes: fs::read(&module).map_err(file_error(&module))?,
        warnings,
    })
}

/// The manifests, each with its place.
fn manifests() -> [(String, String); 4] {
    let explorer = format!(
        "crate-type = [\"cdylib\"]\n\
         [dependencies]\n\
         gpu-kernels = {{ path = \"gpu-kernels\" }}\n\
         tilewise-model = {{ path = \"model\" }}\n\
         tilewise-program = {{ path = \"program\" }}\n\
         {}strip = true\n",
        nested::workspace(&[], OptLevel::Three)
    );
    let model = "[dependencies]\ngpu-kernels = { path = \"../gpu-kernels\" }\n";
    [
        (
            "gpu-kernels/Cargo.toml".into(),
            nested::manifest("gpu-kernels", "gpu-kernels", &nested::device_features(&[])),
        ),
        (
            "model/Cargo.toml".into(),
            nested::manifest("tilewise-model", "model", model),
        ),
        (
            "program/Cargo.toml".into(),
            nested::manifest("tilewise-program", "program", ""),
        ),
        (
            "Cargo.toml".into(),
            nested::manifest("tilewise-explorer", "explorer", &explorer),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manifest_names_sources_that_exist() {
        for (place, text) in manifests() {
            let lib = text
                .lines()
                .find_map(|line| line.strip_prefix("path = '")?.strip_suffix('\''));
            assert!(lib.is_some_and(|lib| Path::new(lib).is_file()), "{place}");
        }
    }

    #[test]
    fn the_reasons_name_the_commands() {
        let compiler = NoWasm::NoCompiler {
            tried: vec!["rustc: does not run".into()],
        };
        for part in ["rustc: does not run", "rustup target add wasm32", "xtask"] {
            assert!(compiler.to_string().contains(part), "{compiler}");
        }
        let linker = NoWasm::NoLinker.to_string();
        assert!(linker.contains("wasm-ld") && linker.contains("apt-get install lld"));
    }
}
