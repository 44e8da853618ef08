//! The prerequisites of rust-cuda that a machine lacks, and the command that gets each.

use std::path::PathBuf;

use super::{COMPONENTS, LLVM_MAJOR, OLDEST_CUDA, SETUP, TOOLCHAIN};

/// A prerequisite that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The workspace, where tilewise did not come as a clone of its repository.
    #[error(
        "the workspace rust-cuda/: no Cargo.toml in {}; a clone of tilewise's repository has it",
        directory.display()
    )]
    Workspace {
        /// Where it was looked for.
        directory: PathBuf,
    },

    /// rustup.
    #[error("rustup: `{}` does not run; get it from https://rustup.rs", program.display())]
    Rustup {
        /// What was run.
        program: PathBuf,
    },

    /// The compiler that the code generator is a part of.
    #[error(
        "the toolchain {TOOLCHAIN}; get it: `rustup toolchain install {TOOLCHAIN} \
         --profile minimal --component {}`",
        COMPONENTS.join(" --component ")
    )]
    Toolchain,

    /// Parts of the compiler.
    #[error(
        "{} of {TOOLCHAIN}; get it: `rustup component add --toolchain {TOOLCHAIN} {}`",
        names.join(", "),
        names.join(" ")
    )]
    Components {
        /// The [`COMPONENTS`] that are not installed.
        names: Vec<&'static str>,
    },

    /// The library by which bindgen reads the CUDA toolkit's headers.
    #[error(
        "libclang; get it: `sudo apt-get install clang` (Debian, Ubuntu) or \
         `sudo dnf install clang` (Rocky), or set LIBCLANG_PATH to its directory"
    )]
    Libclang,

    /// LLVM.
    #[error(
        "LLVM {LLVM_MAJOR} ({}); get it: `sudo sh rust-cuda/llvm-7.sh /opt/llvm-7` builds it \
         where it is looked for as long as LLVM_CONFIG is not set",
        tried.join("; ")
    )]
    Llvm {
        /// For each `llvm-config` that was looked at: why it will not do.
        tried: Vec<String>,
    },

    /// The CUDA toolkit, or its libNVVM.
    #[error(
        "a CUDA toolkit with libNVVM, {}.{} or newer ({}); get it: `{SETUP}` puts its parts \
         where they are looked for as long as CUDA_PATH is not set; or \
         https://developer.nvidia.com/cuda-downloads, then `export CUDA_PATH=/usr/local/cuda`",
        OLDEST_CUDA.0, OLDEST_CUDA.1,
        tried.join("; ")
    )]
    Cuda {
        /// For each place that was looked at: why it will not do.
        tried: Vec<String>,
    },
}

impl Missing {
    /// The prerequisite in a few words, for a list.
    pub fn name(&self) -> &'static str {
        match self {
            Missing::Workspace { .. } => "its workspace",
            Missing::Rustup { .. } => "rustup",
            Missing::Toolchain => TOOLCHAIN,
            Missing::Components { .. } => "components of its nightly",
            Missing::Libclang => "libclang",
            Missing::Llvm { .. } => "LLVM 7",
            Missing::Cuda { .. } => "a CUDA toolkit",
        }
    }
}
