//! The search for rust-cuda's prerequisites.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{COMPONENTS, LLVM_MAJOR, Missing, OLDEST_CUDA, RustCuda, TOOLCHAIN};
use crate::nested::repository;

/// `LLVM_CONFIG=/path/to/llvm-config`: the only one to look at.
const LLVM_CONFIG: &str = "LLVM_CONFIG";

/// Variables that name the CUDA toolkit, in rust-cuda's order. The first that is
/// set counts, and no other place is looked at.
const CUDA: [&str; 3] = ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];

/// `LIBCLANG_PATH=/path/to/lib`: where bindgen looks for libclang first.
const LIBCLANG_PATH: &str = "LIBCLANG_PATH";

/// The variables that decide what [`Search::from_env`] finds.
pub const VARIABLES: [&str; 5] = [LLVM_CONFIG, CUDA[0], CUDA[1], CUDA[2], LIBCLANG_PATH];

/// Files that `rustc_codegen_nvvm` reads from the toolkit when it is built.
const CUDA_FILES: [&str; 4] = [
    "include/cuda_runtime_api.h",
    "nvvm/include/nvvm.h",
    "nvvm/lib64/libnvvm.so",
    "nvvm/libdevice/libdevice.10.bc",
];

/// Where `cargo xtask setup --codegen rust-cuda` puts NVIDIA's wheels with the parts of
/// a CUDA toolkit: an ignored folder of this repository.
pub fn wheels_dir() -> PathBuf {
    repository().join(".tools").join("cuda")
}

/// The CUDA toolkit that lies in a folder with NVIDIA's wheels.
pub fn toolkit_in(wheels: &Path) -> PathBuf {
    wheels.join("nvidia/cu13")
}

/// The places to look at, the preferred one first.
#[derive(Clone, Debug)]
pub struct Search {
    /// The directory `rust-cuda/` of this repository.
    pub workspace: PathBuf,
    /// rustup: a path, or a name to be found on PATH.
    pub rustup: PathBuf,
    /// LLVM's `llvm-config`, as [`rustup`](Self::rustup).
    pub llvm_configs: Vec<PathBuf>,
    /// CUDA toolkits.
    pub cuda_roots: Vec<PathBuf>,
    /// Directories with libclang, in themselves or up to two levels below.
    pub libclang_dirs: Vec<PathBuf>,
}

impl Search {
    /// The places that [`VARIABLES`] name; for a variable that is not set, the usual ones.
    pub fn from_env() -> Self {
        let llvm_configs = match env::var_os(LLVM_CONFIG) {
            Some(path) => vec![path.into()],
            None => [
                "llvm-config-7",
                "llvm-config",
                "/opt/llvm-7/bin/llvm-config",
            ]
            .map(PathBuf::from)
            .to_vec(),
        };
        let cuda_roots = match CUDA.into_iter().find_map(env::var_os) {
            Some(root) => vec![root.into()],
            None => {
                let mut roots = vec![toolkit_in(&wheels_dir())];
                roots.extend(["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].map(PathBuf::from));
                roots
            }
        };
        let mut libclang_dirs: Vec<PathBuf> = Vec::new();
        libclang_dirs.extend(env::var_os(LIBCLANG_PATH).map(PathBuf::from));
        libclang_dirs.extend(
            [
                "/usr/lib",
                "/usr/lib64",
                "/usr/local/lib",
                "/usr/local/lib64",
            ]
            .map(PathBuf::from),
        );
        Search {
            workspace: repository().join("rust-cuda"),
            rustup: "rustup".into(),
            llvm_configs,
            cuda_roots,
            libclang_dirs,
        }
    }

    /// Looks at all places.
    ///
    /// # Errors
    /// Everything that is missing.
    pub fn run(&self) -> Result<RustCuda, Vec<Missing>> {
        let mut missing = Vec::new();
        let manifest = self.workspace.join("Cargo.toml");
        if !manifest.is_file() {
            let directory = self.workspace.clone();
            missing.push(Missing::Workspace { directory });
        }
        missing.extend(toolchain(&self.rustup).err());
        if !self.libclang_dirs.iter().any(|dir| has_libclang(dir, 2)) {
            missing.push(Missing::Libclang);
        }
        let reject = |tried| Missing::Llvm { tried };
        let llvm = first(&self.llvm_configs, llvm_version).map_err(reject);
        let reject = |tried| Missing::Cuda { tried };
        let cuda = first(&self.cuda_roots, cuda_version).map_err(reject);
        match (llvm, cuda) {
            (Ok((llvm_config, llvm_version)), Ok((cuda_root, cuda_version)))
                if missing.is_empty() =>
            {
                Ok(RustCuda {
                    workspace: self.workspace.clone(),
                    rustup: self.rustup.clone(),
                    llvm_config,
                    llvm_version,
                    cuda_root,
                    cuda_version,
                })
            }
            (llvm, cuda) => {
                missing.extend(llvm.err());
                missing.extend(cuda.err());
                Err(missing)
            }
        }
    }
}

/// The first of `places` that `inspect` accepts, with what it found; or what is
/// wrong with each.
fn first<T>(
    places: &[PathBuf],
    inspect: impl Fn(&Path) -> Result<T, String>,
) -> Result<(PathBuf, T), Vec<String>> {
    let mut tried = Vec::new();
    for place in places {
        match inspect(place) {
            Ok(found) => return Ok((place.clone(), found)),
            Err(reason) => tried.push(format!("{} {reason}", place.display())),
        }
    }
    Err(tried)
}

/// Whether the toolchain and its components are installed.
fn toolchain(rustup: &Path) -> Result<(), Missing> {
    let output = Command::new(rustup)
        .args(["component", "list", "--installed", "--toolchain", TOOLCHAIN])
        // The search must not download.
        .env("RUSTUP_AUTO_INSTALL", "0")
        .output()
        .map_err(|_| Missing::Rustup {
            program: rustup.to_owned(),
        })?;
    if !output.status.success() {
        return Err(Missing::Toolchain);
    }
    let installed = String::from_utf8_lossy(&output.stdout);
    let has = |component: &str| {
        // Listed with the host's name, and without `-preview`.
        let name = component.trim_end_matches("-preview");
        installed.lines().any(|line| line.starts_with(name))
    };
    let names: Vec<_> = COMPONENTS.into_iter().filter(|name| !has(name)).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(Missing::Components { names })
    }
}

/// The version of an LLVM that will do.
fn llvm_version(llvm_config: &Path) -> Result<String, String> {
    let ask = |argument| {
        let output = Command::new(llvm_config).arg(argument).output();
        let output = output.map_err(|error| match error.kind() {
            ErrorKind::NotFound => "is not there",
            _ => "does not run",
        })?;
        if !output.status.success() {
            return Err("fails".to_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = ask("--version")?;
    let major = version.split('.').next().unwrap_or_default();
    if major.parse() != Ok(LLVM_MAJOR) {
        return Err(format!("is LLVM {version}"));
    }
    if ask("--components")?
        .split_whitespace()
        .all(|component| component != "nvptx")
    {
        return Err(format!("is LLVM {version} without the NVPTX target"));
    }
    Ok(version)
}

/// The version of a CUDA toolkit that will do.
fn cuda_version(root: &Path) -> Result<(u32, u32), String> {
    if !root.is_dir() {
        return Err("is not there".to_owned());
    }
    let header =
        fs::read_to_string(root.join("include/cuda.h")).map_err(|_| "has no include/cuda.h")?;
    let number: u32 = header
        .lines()
        .find_map(|line| line.trim().strip_prefix("#define CUDA_VERSION"))
        .and_then(|number| number.trim().parse().ok())
        .ok_or("has no CUDA_VERSION in include/cuda.h")?;
    // CUDA 12.8 is 12080.
    let version = (number / 1000, number / 10 % 100);
    if version < OLDEST_CUDA {
        return Err(format!("is CUDA {}.{}", version.0, version.1));
    }
    match CUDA_FILES.iter().find(|file| !root.join(file).is_file()) {
        Some(file) => Err(format!("has no {file}")),
        None => Ok(version),
    }
}

/// Whether bindgen, which reads the toolkit's headers, will find libclang in
/// `dir` or in the likely directories below it, down to `depth` levels.
fn has_libclang(dir: &Path, depth: usize) -> bool {
    let Ok(entries) = dir.read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        // libclang.so, libclang-18.so.18; not libclang-cpp.so.18.
        let library = name.starts_with("libclang.so")
            || (name.starts_with("libclang-") && !name.starts_with("libclang-cpp"));
        if library && name.contains(".so") {
            return true;
        }
        let likely = ["lib", "llvm"].iter().any(|start| name.starts_with(start))
            || name.ends_with("-linux-gnu");
        depth > 0 && likely && has_libclang(&entry.path(), depth - 1)
    })
}
