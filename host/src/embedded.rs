//! The PTX that `build.rs` put into the library, one text a kernel.

use std::collections::BTreeMap;

use gpu_kernels::Arch;
use gpu_kernels::entry::KERNELS;

/// `CODE_GENERATOR`, `TOOLCHAIN`, `PTX` and `DIGEST`, written by `build.rs`.
mod generated {
    use super::CodeGenerator;

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The PTX text of a kernel.
pub(crate) fn ptx(name: &str) -> Option<&'static str> {
    let found = generated::PTX.iter().find(|(entry, _)| *entry == name);
    found.map(|(_, ptx)| *ptx)
}

/// Tells this build of the kernels from others.
pub(crate) const DIGEST: u64 = generated::DIGEST;

/// Whether any embedded kernel runs on a GPU of this compute capability, (major, minor).
pub(crate) fn runs_on((major, minor): (u32, u32)) -> bool {
    KERNELS
        .iter()
        .any(|kernel| kernel.arch.runs_on(major, minor) && ptx(kernel.name).is_some())
}

/// What turned the kernels' Rust into PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeGenerator {
    /// rustc's own NVPTX back end.
    RustcNvptx,
    /// rust-cuda: `rustc_codegen_nvvm` and libNVVM.
    RustCuda,
}

impl CodeGenerator {
    /// The name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            CodeGenerator::RustcNvptx => "rustc NVPTX",
            CodeGenerator::RustCuda => "rust-cuda",
        }
    }
}

/// What was built into this library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// The code generator that compiled the kernels; `None` for a CPU-only build.
    pub code_generator: Option<CodeGenerator>,
    /// Its version, and that of all it is made of, LLVM included; `None` for a CPU-only
    /// build.
    pub toolchain: Option<&'static str>,
    /// Kernels for each PTX target.
    pub kernels: BTreeMap<Arch, usize>,
}

/// What was built into this library.
///
/// ```
/// let build = tilewise::build_info();
/// let kernels: usize = build.kernels.values().sum();
/// assert_eq!(build.code_generator.is_some(), kernels > 0);
/// ```
pub fn build_info() -> BuildInfo {
    let mut kernels = BTreeMap::new();
    for kernel in KERNELS.iter().filter(|kernel| ptx(kernel.name).is_some()) {
        *kernels.entry(kernel.arch).or_default() += 1;
    }
    BuildInfo {
        code_generator: generated::CODE_GENERATOR,
        toolchain: generated::TOOLCHAIN,
        kernels,
    }
}
