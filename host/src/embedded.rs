//! The PTX that `build.rs` embeds in the library, in compressed groups of kernels.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use gpu_kernels::Arch;
use gpu_kernels::entry::{ENTRIES, KERNELS};
use lzma_rust2::LzipReader;

use crate::error::Error;
use crate::problem::Catalog;

/// `CODE_GENERATOR`, `TOOLCHAIN`, `WITHOUT_KERNELS`, `GROUPS`, `PTX` and `DIGEST`, written by
/// `build.rs`.
mod generated {
    use super::{CodeGenerator, Text};

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Where the PTX of a kernel is.
struct Text {
    /// The entry point.
    kernel: &'static str,
    /// The index of its group in `GROUPS`.
    group: usize,
    /// Bytes of the group's texts before this one.
    start: u64,
    /// Bytes of this text.
    bytes: u64,
}

impl Text {
    fn of(kernel: &str) -> Option<&'static Text> {
        generated::PTX.iter().find(|text| text.kernel == kernel)
    }

    /// The text. Its group is decompressed as far as that, which takes a few milliseconds, while
    /// the driver then takes seconds to compile the PTX.
    fn read(&self) -> io::Result<String> {
        let mut reader = LzipReader::new(generated::GROUPS[self.group]);
        io::copy(&mut reader.by_ref().take(self.start), &mut io::sink())?;
        let mut ptx = String::new();
        reader.take(self.bytes).read_to_string(&mut ptx)?;
        Ok(ptx)
    }
}

/// Whether this library has the PTX of entry point `name`.
pub(crate) fn is_built(name: &str) -> bool {
    Text::of(name).is_some()
}

/// The PTX of entry point `kernel`.
pub(crate) fn ptx(kernel: &'static str) -> Result<String, Error> {
    let no_ptx = |found: &str| Error::NoPtx {
        kernel,
        found: found.to_owned(),
    };
    let text = Text::of(kernel).ok_or_else(|| no_ptx("no kernel of that name"))?;
    text.read().map_err(|error| no_ptx(&error.to_string()))
}

/// The digest of the PTX, which distinguishes this build of the kernels from others.
pub(crate) const DIGEST: u64 = generated::DIGEST;

impl Catalog<'static> {
    /// The catalog of this library's kernels.
    pub fn embedded() -> Self {
        Catalog {
            kernels: KERNELS,
            is_built,
        }
    }
}

/// Whether any embedded kernel runs on a GPU of this compute capability, (major, minor).
pub(crate) fn runs_on((major, minor): (u32, u32)) -> bool {
    KERNELS
        .iter()
        .any(|kernel| kernel.arch.runs_on(major, minor) && is_built(kernel.entry))
}

/// The targets that kernels are embedded for, or why there are none.
pub(crate) fn description() -> String {
    if let Some(reason) = generated::WITHOUT_KERNELS {
        return format!("it was built for the CPU alone, because {reason}");
    }
    let targets: Vec<_> = build_info().kernels.into_keys().map(Arch::name).collect();
    format!("it has kernels for {}", targets.join(", "))
}

/// The compiler that turned the kernels' Rust into PTX.
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

/// The kernels that are built into this library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// The code generator that compiled the kernels; `None` for a CPU-only build.
    pub code_generator: Option<CodeGenerator>,
    /// The versions of the code generator and its components, LLVM included; `None` for a
    /// CPU-only build.
    pub toolchain: Option<&'static str>,
    /// Why there are no kernels; `None` where there are some.
    pub without_kernels: Option<&'static str>,
    /// Number of kernels for each PTX target.
    pub kernels: BTreeMap<Arch, usize>,
}

/// The kernels that are built into this library.
///
/// ```
/// let build = tilewise::build_info();
/// let kernels: usize = build.kernels.values().sum();
/// assert_eq!(build.code_generator.is_some(), kernels > 0);
/// assert_eq!(build.without_kernels.is_some(), kernels == 0);
/// ```
pub fn build_info() -> BuildInfo {
    let mut kernels = BTreeMap::new();
    for kernel in ENTRIES.iter().filter(|kernel| is_built(kernel.entry)) {
        *kernels.entry(kernel.arch).or_default() += 1;
    }
    BuildInfo {
        code_generator: generated::CODE_GENERATOR,
        toolchain: generated::TOOLCHAIN,
        without_kernels: generated::WITHOUT_KERNELS,
        kernels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::fold::{fold, loads_of_form};
    use gpu_kernels::{DType, Family, Form};

    #[test]
    fn every_embedded_kernel_is_its_own_text() {
        for &Text {
            kernel: name,
            bytes,
            ..
        } in generated::PTX
        {
            let ptx = ptx(name).unwrap();
            assert_eq!(ptx.len() as u64, bytes, "{name}");
            assert_eq!(ptx.matches(".entry ").count(), 1, "{name}");
            assert!(ptx.contains(&format!(".entry {name}(")), "{name}");
            let form = Form::plain(DType::F32);
            // Those that copy, store no C, or store f32 as it is, need ask for nothing of it.
            let kernel = ENTRIES.iter().find(|kernel| kernel.entry == name).unwrap();
            let copies = !kernel.family.multiplies() && kernel.family != Family::Reduce;
            let asks = loads_of_form(&ptx, name) > 0;
            let stores_as_it_is = copies || kernel.leaves_sums || kernel.c_along_m;
            assert!(asks || stores_as_it_is, "{name}");
            assert_eq!(loads_of_form(&fold(&ptx, name, &form), name), 0, "{name}");
        }
    }

    #[test]
    fn a_kernel_without_ptx_is_an_error() {
        assert!(!is_built("no_such_kernel"));
        let error = ptx("no_such_kernel").unwrap_err();
        assert!(error.to_string().contains("no_such_kernel"), "{error}");
    }
}
