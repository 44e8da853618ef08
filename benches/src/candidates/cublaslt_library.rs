//! Finds and opens libcublasLt.
//!
//! It is looked for in this order: the path the caller gives, `$TILEWISE_CUBLASLT`, the
//! dynamic loader (which honours `LD_LIBRARY_PATH`), the Python environment's NVIDIA
//! packages, the CUDA toolkit's folders.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::error::Error as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File names of the major versions whose ABI the bindings fit, newest first.
const NAMES: [&str; 2] = ["libcublasLt.so.13", "libcublasLt.so.12"];

/// Prints every libcublasLt in the NVIDIA packages of a Python environment.
const ASK_PYTHON: &str = "\
import glob, os, sys
for root in sys.path:
    for folder in ('nvidia/cu13/lib', 'nvidia/cublas/lib'):
        for path in sorted(glob.glob(os.path.join(root, folder, 'libcublasLt.so.1[23]'))):
            print(path)
";

/// The functions of libcublasLt that [`crate::candidates::cublaslt`] calls. The bindings
/// panic at a call of one that is missing, so all are looked up first.
const FUNCTIONS: [&str; 13] = [
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtGetVersion",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
];

/// Opens the library for the life of the process; returns where it was found.
///
/// The bindings open it again by its bare name. The loader gives them this one,
/// because it compares names with those of the libraries already open (dlopen(3)).
///
/// # Errors
/// It was not found, or cannot be used: the reason as text.
pub fn open(explicit: Option<&Path>, python: &Path) -> Result<PathBuf, String> {
    let from_environment = std::env::var_os("TILEWISE_CUBLASLT").map(PathBuf::from);
    let path = match explicit.map(Path::to_owned).or(from_environment) {
        Some(path) => try_open(path.as_os_str()).map(|()| path)?,
        None => search(python)?,
    };
    // SAFETY: asking runs the initialisers of a library that is open already.
    if unsafe { cudarc::cublaslt::sys::is_culib_present() } {
        Ok(path)
    } else {
        Err(format!(
            "{} opens, but not under the name libcublasLt.so.13 or .12",
            path.display()
        ))
    }
}

fn search(python: &Path) -> Result<PathBuf, String> {
    let by_loader = NAMES.map(PathBuf::from).into_iter();
    let in_python = in_python_packages(python);
    let in_toolkit = ["/usr/local/cuda/lib64", "/opt/cuda/lib64"]
        .into_iter()
        .flat_map(|folder| NAMES.map(|name| Path::new(folder).join(name)));
    by_loader
        .chain(in_python)
        .chain(in_toolkit)
        .find(|path| try_open(path.as_os_str()).is_ok())
        .ok_or_else(|| {
            "no libcublasLt.so.13 or .12 found by the loader, in Python's NVIDIA packages, or in \
             /usr/local/cuda; give its path with --cublaslt"
                .to_owned()
        })
}

fn in_python_packages(python: &Path) -> Vec<PathBuf> {
    match Command::new(python).arg("-c").arg(ASK_PYTHON).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(PathBuf::from)
            .collect(),
        Err(_) => Vec::new(),
    }
}

fn try_open(path: &OsStr) -> Result<(), String> {
    let shown = Path::new(path).display();
    // SAFETY: NVIDIA's initialisers are made to run in any process.
    let library =
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| {
            // The loader's own words are in the source.
            let cause = error.source().map(ToString::to_string);
            format!("{shown}: {}", cause.unwrap_or_else(|| error.to_string()))
        })?;
    for function in FUNCTIONS {
        // SAFETY: the symbol is only asked for, never called through this type.
        unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) }
            .map_err(|_| format!("{shown} has no function {function}"))?;
    }
    // Never closed: the bindings keep pointers into it.
    std::mem::forget(library);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_is_named_and_does_not_panic() {
        let missing = Path::new("/no/such/libcublasLt.so.13");
        let message = open(Some(missing), Path::new("python3")).unwrap_err();
        assert!(message.contains("/no/such/libcublasLt.so.13"), "{message}");
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let message = try_open(OsStr::new("libc.so.6")).unwrap_err();
        assert!(message.contains("cublasLtCreate"), "{message}");
    }

    #[test]
    fn without_python_there_are_no_packages() {
        assert!(in_python_packages(Path::new("/no/such/python")).is_empty());
    }
}
