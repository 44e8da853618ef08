//! The choice of the code generator that compiles the device code.
//!
//! There are two, for one source: rustc's own NVPTX back end, and rust-cuda's
//! `rustc_codegen_nvvm`. Few machines have what rust-cuda needs, so [`Codegen::Auto`]
//! looks for all of it, and takes rustc where anything is missing or rust-cuda's build
//! fails. A choice always carries its reason.

use std::env;
use std::fmt;
use std::path::PathBuf;

use crate::codegen::{CODEGEN, Codegen};
use crate::rust_cuda::{self, Missing, RustCuda};
use crate::toolchain::{self, NoToolchain, Toolchain};
use crate::{Error, nested};

/// A code generator that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generator {
    /// rustc's own NVPTX back end.
    Rustc(Toolchain),
    /// rust-cuda's `rustc_codegen_nvvm`.
    RustCuda(RustCuda),
}

impl Generator {
    /// The [`Codegen`] that asks for it by name.
    pub const fn codegen(&self) -> Codegen {
        match self {
            Generator::Rustc(_) => Codegen::Rustc,
            Generator::RustCuda(_) => Codegen::RustCuda,
        }
    }

    /// Its version, without any path.
    pub fn version(&self) -> String {
        match self {
            Generator::Rustc(toolchain) => toolchain.version(),
            Generator::RustCuda(rust_cuda) => rust_cuda.version(),
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Rustc(toolchain) => write!(f, "rustc NVPTX, {toolchain}"),
            Generator::RustCuda(rust_cuda) => write!(f, "{rust_cuda}"),
        }
    }
}

/// A code generator, and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorChoice {
    /// The code generator.
    pub generator: Generator,
    /// The reason, to be read after `because`.
    pub reason: String,
    /// What was asked for.
    asked: Codegen,
}

impl fmt::Display for GeneratorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, because {}", self.generator, self.reason)
    }
}

impl GeneratorChoice {
    /// The choice to try after the build of this one has failed: under [`Codegen::Auto`],
    /// rustc in place of rust-cuda.
    ///
    /// # Errors
    /// `failure` itself where nothing is left to try.
    pub fn after(&self, failure: Error) -> Result<GeneratorChoice, Error> {
        self.after_with(failure, toolchain::find)
    }

    /// [`GeneratorChoice::after`], with the way to find a rustc.
    fn after_with(
        &self,
        failure: Error,
        rustc: impl FnOnce() -> Result<Toolchain, NoToolchain>,
    ) -> Result<GeneratorChoice, Error> {
        if self.asked != Codegen::Auto || self.generator.codegen() != Codegen::RustCuda {
            return Err(failure);
        }
        let Ok(toolchain) = rustc() else {
            return Err(failure);
        };
        Ok(GeneratorChoice {
            generator: Generator::Rustc(toolchain),
            reason: format!(
                "rust-cuda is here and does not work: {}",
                summary(&failure.to_string())
            ),
            asked: Codegen::Auto,
        })
    }
}

/// The most telling line of a failure: the first error that a program printed, or else
/// the first line.
fn summary(failure: &str) -> &str {
    let mut lines = failure.lines();
    let first = lines.next().unwrap_or_default();
    let error = lines.find(|line| line.trim_start().starts_with("error"));
    error.unwrap_or(first).trim()
}

/// The error that lists what rust-cuda lacks.
fn no_rust_cuda(missing: &[Missing]) -> Error {
    let lines: Vec<_> = missing.iter().map(|one| format!("  - {one}")).collect();
    Error::NoRustCuda {
        setup: rust_cuda::SETUP,
        missing: lines.join("\n"),
    }
}

/// Finds the code generator that `codegen` asks for.
///
/// # Errors
/// - [`Error::NoToolchain`]: rustc is to be used and none has `core` for the
///   target, or [`toolchain::PTX`] asks for no device code.
/// - [`Error::NoRustCuda`]: rust-cuda is asked for and something is missing.
pub fn choose(codegen: Codegen) -> Result<GeneratorChoice, Error> {
    if toolchain::is_skipped() {
        return Err(NoToolchain::Skipped.into());
    }
    let named_rustc = env::var_os(toolchain::DEVICE_RUSTC).is_some();
    choose_with(codegen, named_rustc, rust_cuda::find, toolchain::find)
}

/// [`choose`], with the state of the environment and the ways to find each compiler as
/// arguments.
fn choose_with(
    codegen: Codegen,
    named_rustc: bool,
    rust_cuda: impl FnOnce() -> Result<RustCuda, Vec<Missing>>,
    rustc: impl FnOnce() -> Result<Toolchain, NoToolchain>,
) -> Result<GeneratorChoice, Error> {
    let (generator, reason) = match codegen {
        Codegen::Rustc => (Generator::Rustc(rustc()?), "it was asked for".to_owned()),
        Codegen::RustCuda => {
            let found = rust_cuda().map_err(|missing| no_rust_cuda(&missing))?;
            (Generator::RustCuda(found), "it was asked for".to_owned())
        }
        Codegen::Auto if named_rustc => (
            Generator::Rustc(rustc()?),
            format!("{} names a rustc", toolchain::DEVICE_RUSTC),
        ),
        Codegen::Auto => match rust_cuda() {
            Ok(found) => (
                Generator::RustCuda(found),
                "all that rust-cuda needs is here".to_owned(),
            ),
            Err(missing) => {
                let names: Vec<_> = missing.iter().map(Missing::name).collect();
                let reason = format!("rust-cuda lacks {}", names.join(", "));
                (Generator::Rustc(rustc()?), reason)
            }
        },
    };
    Ok(GeneratorChoice {
        generator,
        reason,
        asked: codegen,
    })
}

/// The variables and files that a build script must watch to notice that a code generator
/// was installed, upgraded or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// For `cargo::rerun-if-env-changed`.
    pub variables: Vec<&'static str>,
    /// For `cargo::rerun-if-changed`. They exist: cargo takes a missing file
    /// for one that has changed every time.
    pub files: Vec<PathBuf>,
}

/// The variables and files that decide the result of [`choose`], and of a build with it.
pub fn watched(chosen: Result<&GeneratorChoice, &Error>) -> Watched {
    let mut variables = vec![CODEGEN, toolchain::PTX, toolchain::DEVICE_RUSTC];
    variables.extend(rust_cuda::VARIABLES);
    let mut files = vec![nested::sources("gpu-kernels")];
    match chosen.map(|choice| &choice.generator) {
        Ok(Generator::Rustc(toolchain)) => files.push(toolchain.rustc.clone()),
        Ok(Generator::RustCuda(rust_cuda)) => {
            files.push(rust_cuda.workspace.clone());
            files.push(rust_cuda.cuda_root.join("include/cuda.h"));
        }
        Err(_) => files.extend(toolchain::package_lists()),
    }
    files.retain(|file| file.exists());
    Watched { variables, files }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::CoreLibrary;

    fn rustc() -> Result<Toolchain, NoToolchain> {
        Ok(Toolchain {
            rustc: "/usr/bin/rustc".into(),
            verbose_version: "rustc 1.96.0\nrelease: 1.96.0".into(),
            core: CoreLibrary::Compiled,
        })
    }

    fn no_rustc() -> Result<Toolchain, NoToolchain> {
        Err(NoToolchain::NotFound { tried: Vec::new() })
    }

    fn rust_cuda() -> Result<RustCuda, Vec<Missing>> {
        Ok(RustCuda {
            workspace: "/clone/rust-cuda".into(),
            rustup: "rustup".into(),
            llvm_config: "/opt/llvm-7/bin/llvm-config".into(),
            llvm_version: "7.1.0".into(),
            cuda_root: "/usr/local/cuda".into(),
            cuda_version: (13, 0),
        })
    }

    fn no_rust_cuda() -> Result<RustCuda, Vec<Missing>> {
        let tried = vec!["llvm-config does not run".into()];
        Err(vec![Missing::Toolchain, Missing::Llvm { tried }])
    }

    fn failure() -> Error {
        Error::RustCudaBuild {
            arch: "sm_80",
            output: "   Compiling cc v1.2.48\nerror: no C++ compiler\n\nmore".into(),
        }
    }

    #[test]
    fn auto_takes_rust_cuda_where_it_is_complete() {
        let choice = choose_with(Codegen::Auto, false, rust_cuda, rustc).unwrap();
        assert_eq!(
            choice.to_string(),
            "rust-cuda 946c91f, nightly-2026-04-02, LLVM 7.1.0, libNVVM of CUDA 13.0 \
             at /usr/local/cuda, because all that rust-cuda needs is here"
        );
    }

    #[test]
    fn auto_takes_rustc_where_anything_is_missing_and_says_what() {
        let choice = choose_with(Codegen::Auto, false, no_rust_cuda, rustc).unwrap();
        assert_eq!(
            choice.to_string(),
            "rustc NVPTX, rustc 1.96.0 at /usr/bin/rustc, compiled core, \
             because rust-cuda lacks nightly-2026-04-02, LLVM 7"
        );
    }

    #[test]
    fn auto_takes_a_rustc_that_is_named_and_does_not_look_further() {
        let must_not_look = || unreachable!("rust-cuda was looked for");
        let choice = choose_with(Codegen::Auto, true, must_not_look, rustc).unwrap();
        assert_eq!(choice.generator.codegen(), Codegen::Rustc);
        assert_eq!(choice.reason, "TILEWISE_DEVICE_RUSTC names a rustc");
    }

    #[test]
    fn auto_goes_on_with_rustc_after_a_failure_of_rust_cuda() {
        let choice = choose_with(Codegen::Auto, false, rust_cuda, rustc).unwrap();
        let next = choice.after_with(failure(), rustc).unwrap();
        assert_eq!(next.generator.codegen(), Codegen::Rustc);
        assert_eq!(
            next.reason,
            "rust-cuda is here and does not work: error: no C++ compiler"
        );
        assert_eq!(
            summary("cannot run rustup: it is not there"),
            "cannot run rustup: it is not there"
        );
        // Once: rustc's failure is final.
        let error = next.after_with(failure(), rustc).unwrap_err();
        assert!(matches!(error, Error::RustCudaBuild { .. }));
        // And there must be a rustc.
        let error = choice.after_with(failure(), no_rustc).unwrap_err();
        assert!(matches!(error, Error::RustCudaBuild { .. }));
    }

    #[test]
    fn what_is_asked_for_by_name_is_used_or_refused() {
        let choice = choose_with(Codegen::RustCuda, true, rust_cuda, no_rustc).unwrap();
        assert_eq!(choice.generator.codegen(), Codegen::RustCuda);
        assert!(choice.after_with(failure(), rustc).is_err());
        let error = choose_with(Codegen::RustCuda, false, no_rust_cuda, rustc).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("rustup toolchain install"), "{text}");
        assert!(text.contains("llvm-7.sh"), "{text}");
        let choice = choose_with(Codegen::Rustc, false, no_rust_cuda, rustc).unwrap();
        assert_eq!(choice.generator.codegen(), Codegen::Rustc);
        let error = choose_with(Codegen::Rustc, false, rust_cuda, no_rustc).unwrap_err();
        assert!(matches!(error, Error::NoToolchain(_)));
    }
}
