//! Builds the device code: compiles `gpu-kernels` to PTX, adds launch bounds, and checks the
//! result with `ptxas`.
//!
//! This is to tilewise what `cuda_builder` is to rust-cuda, and it can use either
//! code generator: the NVPTX back end that every `rustc` has, or rust-cuda's. Two
//! programs use it, so that both build the very same PTX: `host/build.rs`, which
//! embeds it, and `cargo xtask ptx`, which inspects it.
//!
//! The modules are the steps, in order:
//!
//! | module | step |
//! |---|---|
//! | [`codegen`], [`generator`] | choose between the two code generators |
//! | [`toolchain`], [`rustc`] | find a `rustc` that has `core` for `nvptx64-nvidia-cuda`, and compile with it |
//! | [`rust_cuda`] | find all that rust-cuda needs, and compile with it |
//! | [`ptx`] | cut a module's text into entry points, and make a program of each |
//! | [`launch_bounds`] | add the launch bounds, for which `rustc` has no attribute |
//! | `tensor_maps` | name and align the tensor maps among the parameters |
//! | [`convergence`] | refuse a kernel with a warp-aligned instruction in divergent code |
//! | [`ptxas`] | assemble, and read back registers, spills, notes |
//! | [`gates`] | refuse a kernel that spills, calls, or lacks its tensor-core instructions |
//!
//! Beside them, [`group`] compresses the PTX of kernels that are much the same, [`prebuilt`] is the
//! PTX that a package of the library carries, and [`wasm`] compiles the computations of the HTML page.
//!
//! [`build`] does the steps down to the proof of convergence. The last two steps need
//! NVIDIA's `ptxas` and no GPU. [`compare`] compares the PTX of the two code generators.
//!
//! ```no_run
//! use gpu_kernels::Arch;
//!
//! # fn main() -> Result<(), ptx_builder::Error> {
//! let generator = ptx_builder::generator::choose(ptx_builder::Codegen::Auto)?.generator;
//! let cache = ptx_builder::cache_dir("target/debug/build/x/out".as_ref());
//! for program in ptx_builder::build(&generator, Arch::Sm80, &cache)?.programs {
//!     println!("{}: {} bytes of PTX", program.kernel.name, program.ptx.len());
//! }
//! # Ok(())
//! # }
//! ```

pub mod codegen;
pub mod compare;
pub mod convergence;
mod divergence;
mod error;
pub mod gates;
pub mod generator;
pub mod group;
pub mod launch_bounds;
mod nested;
pub mod prebuilt;
pub mod ptx;
pub mod ptxas;
pub mod rust_cuda;
pub mod rustc;
mod tensor_maps;
pub mod toolchain;
pub mod wasm;

use std::path::{Path, PathBuf};

use gpu_kernels::entry::ENTRIES;
use gpu_kernels::probe::PROBES;
use gpu_kernels::{Arch, KernelInfo};
use rayon::prelude::*;

pub use codegen::Codegen;
pub use divergence::{Branch, Divergence};
pub use error::Error;
pub use generator::{Generator, GeneratorChoice};
pub use nested::{Compiled, OptLevel, PROBES_FEATURE};
pub use toolchain::{NoToolchain, Toolchain};

/// One kernel as the driver gets it: a PTX module with one entry point.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kernel's row in [`ENTRIES`] or [`PROBES`]; `kernel.name` is the entry point.
    pub kernel: &'static KernelInfo,
    /// The text of the module, launch bounds included.
    pub ptx: String,
}

/// The result of [`build`] for one target.
#[derive(Clone, Debug)]
pub struct Build {
    /// The kernels, in the order of [`ENTRIES`].
    pub programs: Vec<Program>,
    /// The compiler's warnings about the device code.
    pub warnings: Vec<String>,
    /// Names of functions and variables outside the entry points. Every program carries
    /// them all, and the [`gates`] refuse them.
    pub leftovers: Vec<String>,
}

impl Build {
    /// The warp-aligned instructions that stand in divergent code, with their kernels
    /// ([`convergence`]).
    ///
    /// # Errors
    /// [`Error::Syntax`] for PTX that this crate does not read.
    pub fn divergences(&self) -> Result<Vec<(&'static str, Divergence)>, Error> {
        let check = |program: &Program| {
            let found = convergence::check(&program.ptx)?.into_iter();
            Ok(found.map(|found| (program.kernel.name, found)).collect())
        };
        let found: Result<Vec<Vec<_>>, Error> = self.programs.par_iter().map(check).collect();
        Ok(found?.into_iter().flatten().collect())
    }
}

/// Compiles the kernels of `arch`, adds their launch bounds and gives each a
/// PTX module of its own, so that the driver compiles only what a program uses.
///
/// `cache` keeps intermediate results between calls; see [`cache_dir`].
///
/// # Errors
/// The compiler fails, its output and [`ENTRIES`] disagree about which entry points
/// there are, or a kernel could hang ([`Error::Divergent`]).
pub fn build(generator: &Generator, arch: Arch, cache: &Path) -> Result<Build, Error> {
    let build = build_unchecked(generator, arch, OptLevel::default(), cache)?;
    refuse_divergent(build, generator.version(), arch)
}

/// [`build`] at any level of optimisation, without the proof that no kernel could hang:
/// for programs that apply the [`gates`] themselves, and launch nothing.
///
/// rust-cuda has one level, libNVVM's own, whatever `level` says.
///
/// # Errors
/// As [`build`], but for [`Error::Divergent`].
pub fn build_unchecked(
    generator: &Generator,
    arch: Arch,
    level: OptLevel,
    cache: &Path,
) -> Result<Build, Error> {
    match generator {
        Generator::Rustc(toolchain) => {
            build_units(toolchain, arch, &codegen_units(arch), level, cache)
        }
        Generator::RustCuda(rust_cuda) => {
            let kernels = ENTRIES.iter().filter(|k| k.arch == arch);
            programs(kernels, rust_cuda::compile(rust_cuda, arch, cache)?)
        }
    }
}

/// The codegen units of `arch`, in the order of [`ENTRIES`].
pub fn codegen_units(arch: Arch) -> Vec<&'static str> {
    let mut units = Vec::new();
    for kernel in ENTRIES.iter().filter(|kernel| kernel.arch == arch) {
        if !units.contains(&kernel.codegen_unit) {
            units.push(kernel.codegen_unit);
        }
    }
    units
}

/// [`build_unchecked`] by rustc, for the kernels of some codegen units of `arch`.
///
/// # Errors
/// As [`build_unchecked`].
pub fn build_units(
    toolchain: &Toolchain,
    arch: Arch,
    units: &[&'static str],
    level: OptLevel,
    cache: &Path,
) -> Result<Build, Error> {
    let kernels = ENTRIES
        .iter()
        .filter(|kernel| kernel.arch == arch && units.contains(&kernel.codegen_unit));
    let compiled = rustc::compile(toolchain, arch, units, level, cache)?;
    programs(kernels, compiled)
}

/// [`build`] by rustc, for the [`PROBES`], which are all of one target.
///
/// # Errors
/// As [`build`].
pub fn build_probes(toolchain: &Toolchain, cache: &Path) -> Result<Build, Error> {
    let probes = PROBES.iter().map(|probe| &probe.info);
    let (arch, level) = (Arch::Sm90a, OptLevel::default());
    let compiled = rustc::compile(toolchain, arch, &[PROBES_FEATURE], level, cache)?;
    let build = programs(probes, compiled)?;
    refuse_divergent(build, toolchain.version(), arch)
}

/// `build`, unless a program has a warp-aligned instruction in divergent code.
fn refuse_divergent(build: Build, generator: String, arch: Arch) -> Result<Build, Error> {
    let divergences = build.divergences()?;
    if divergences.is_empty() {
        return Ok(build);
    }
    Err(Error::Divergent {
        generator,
        arch: arch.name(),
        divergences,
    })
}

/// The programs of `kernels`, cut from the modules that a compiler made.
fn programs(
    kernels: impl Iterator<Item = &'static KernelInfo>,
    compiled: Compiled,
) -> Result<Build, Error> {
    let kernels: Vec<_> = kernels.collect();
    let modules = compiled.modules.iter().map(|text| ptx::Module::parse(text));
    let mut modules = modules.collect::<Result<Vec<_>, _>>()?;
    let entries = || modules.iter().flat_map(|module| &module.entries);
    if let Some(missing) = (kernels.iter()).find(|kernel| entries().all(|e| e.name != kernel.name))
    {
        return Err(Error::EntryMissing(missing.name.to_owned()));
    }
    for module in &mut modules {
        launch_bounds::add(module, &kernels)?;
        tensor_maps::settle(module, &kernels)?;
    }
    let program = |&kernel: &&'static KernelInfo| {
        let ptx = modules
            .iter()
            .find_map(|module| module.program(kernel.name))?;
        Some(Program { kernel, ptx })
    };
    let programs = kernels.iter().filter_map(program).collect();
    Ok(Build {
        programs,
        warnings: compiled.warnings,
        leftovers: modules.iter().flat_map(ptx::Module::leftovers).collect(),
    })
}

/// The directory for nested builds that belongs to the cargo target directory
/// around `path` (a build script's `OUT_DIR`, or a program that cargo built).
///
/// Cargo marks a target directory with a `CACHEDIR.TAG`; without one around it,
/// `path` itself is used. The result is never the outer cargo's own target
/// directory: that one is locked for as long as a build script runs.
pub fn cache_dir(path: &Path) -> PathBuf {
    path.ancestors()
        .find(|dir| nested::is_target_dir(dir))
        .unwrap_or(path)
        .join("ptx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_with_a_kernel_that_could_hang_is_refused_by_name() {
        let build = |ptx: &str| Build {
            programs: vec![Program {
                kernel: &ENTRIES[0],
                ptx: ptx.to_owned(),
            }],
            warnings: Vec::new(),
            leftovers: Vec::new(),
        };
        let refuse =
            |ptx| refuse_divergent(build(ptx), "rustc 1.95.0, LLVM 22.1.2".into(), Arch::Sm90a);
        let mended = include_str!("convergence/fixtures/arrivals_predicated.ptx");
        assert_eq!(refuse(mended).unwrap().programs.len(), 1);
        let hangs = include_str!("convergence/fixtures/branches_joined.ptx");
        let text = refuse(hangs).unwrap_err().to_string();
        for part in [
            "rustc 1.95.0, LLVM 22.1.2",
            "sm_90a",
            ENTRIES[0].name,
            "TILEWISE_DEVICE_RUSTC",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.matches("wgmma.wait_group.sync.aligned 0").count(), 4);
    }
}
