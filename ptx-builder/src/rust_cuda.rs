//! rust-cuda: finds everything its code generator needs, and compiles with it.
//!
//! `rustc_codegen_nvvm` is a code generator for `rustc` in place of LLVM. It links
//! into one particular nightly compiler (`rustc-dev`), writes the bitcode of
//! LLVM 7, and gives that to libNVVM, which is a part of the CUDA toolkit. Cargo
//! builds it from the commit that `rust-cuda/Cargo.toml` names, so five things
//! must be there first:
//!
//! 1. the workspace `rust-cuda/`, which a clone of this repository has;
//! 2. rustup with [`TOOLCHAIN`] and its [`COMPONENTS`];
//! 3. libclang, by which bindgen reads the toolkit's headers;
//! 4. LLVM 7, found by `llvm-config`;
//! 5. a CUDA toolkit with libNVVM.
//!
//! [`find`] looks for all of them, and says how to get each one that is missing;
//! [`SETUP`] gets most of them. The search reads files and runs `rustup` and
//! `llvm-config`; it uses no network and builds nothing.

mod build;
mod missing;
mod search;

use std::fmt;
use std::path::PathBuf;

pub use build::{compile, is_prepared, prepare};
pub use missing::Missing;
pub use search::{Search, VARIABLES, toolkit_in, wheels_dir};

/// The commit of rust-cuda that `rust-cuda/Cargo.toml` names.
pub const REVISION: &str = "946c91f080770f30d42d7c706ac8185969274073";

/// The only toolchain that commit compiles with: `rust-cuda/rust-toolchain.toml`.
pub const TOOLCHAIN: &str = "nightly-2026-04-02";

/// What the build uses of [`TOOLCHAIN`] beyond rustup's minimal profile.
pub const COMPONENTS: [&str; 3] = ["llvm-tools-preview", "rust-src", "rustc-dev"];

/// The release of LLVM whose bitcode libNVVM reads.
pub const LLVM_MAJOR: u32 = 7;

/// The first CUDA whose libNVVM knows every target here (`compute_90a`).
pub const OLDEST_CUDA: (u32, u32) = (12, 2);

/// The command that gets all of it that can be got without building LLVM.
pub const SETUP: &str = "cargo xtask setup --codegen rust-cuda";

/// A machine's rust-cuda: all that a build needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustCuda {
    /// The directory `rust-cuda/` of this repository.
    pub workspace: PathBuf,
    /// rustup, which runs [`TOOLCHAIN`].
    pub rustup: PathBuf,
    /// LLVM 7's `llvm-config`.
    pub llvm_config: PathBuf,
    /// What it says its version is, such as `7.1.0`.
    pub llvm_version: String,
    /// The CUDA toolkit.
    pub cuda_root: PathBuf,
    /// Major and minor release of the toolkit.
    pub cuda_version: (u32, u32),
}

impl RustCuda {
    /// Everything that decides what the PTX looks like, such as
    /// `rust-cuda 946c91f, nightly-2026-04-02, LLVM 7.1.0, libNVVM of CUDA 13.0`.
    pub fn version(&self) -> String {
        let (major, minor) = self.cuda_version;
        format!(
            "rust-cuda {}, {TOOLCHAIN}, LLVM {}, libNVVM of CUDA {major}.{minor}",
            &REVISION[..7],
            self.llvm_version
        )
    }
}

impl fmt::Display for RustCuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cuda = self.cuda_root.display();
        write!(f, "{} at {cuda}", self.version())
    }
}

/// Looks for rust-cuda's prerequisites where [`Search::from_env`] says.
///
/// # Errors
/// Everything that is missing, in the order of the [module](self)'s list.
pub fn find() -> Result<RustCuda, Vec<Missing>> {
    Search::from_env().run()
}
