//! What can go wrong between the device sources and a checked kernel.

use std::path::PathBuf;

use crate::codegen::UnknownCodegen;
use crate::divergence::Divergence;
use crate::toolchain::NoToolchain;

/// A failed step of the device build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to compile with.
    #[error(transparent)]
    NoToolchain(#[from] NoToolchain),

    /// rust-cuda was asked for, and is not complete.
    #[error("rust-cuda cannot be used here; `{setup}` gets what it can. Missing:\n{missing}")]
    NoRustCuda {
        /// The command that gets most of it.
        setup: &'static str,
        /// What is missing, a line each.
        missing: String,
    },

    /// No such code generator.
    #[error(transparent)]
    UnknownCodegen(#[from] UnknownCodegen),

    /// rust-cuda's code generator does not build.
    #[error("rust-cuda's code generator does not build: cargo has said why, above")]
    RustCudaGenerator,

    /// rust-cuda's build failed.
    #[error("rust-cuda does not build the device code for {arch}:\n{output}")]
    RustCudaBuild {
        /// The PTX target.
        arch: &'static str,
        /// Everything cargo and the builder said.
        output: String,
    },

    /// A program could not be started.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The compiler refused the sources.
    #[error("the sources do not compile for {package}:\n{output}")]
    Compile {
        /// A PTX target, `probes` or `wasm`.
        package: String,
        /// Everything cargo and rustc said.
        output: String,
    },

    /// The compiler's text is not the PTX this crate understands.
    #[error("PTX line {line}: {reason}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What was expected.
        reason: &'static str,
    },

    /// The compiler put a warp-aligned instruction into divergent code: the kernel could
    /// hang.
    #[error(
        "{generator} makes kernels for {arch} that could hang; use another compiler \
         (TILEWISE_DEVICE_RUSTC names it), and report this one:\n{}",
        lines(.divergences)
    )]
    Divergent {
        /// What made the PTX.
        generator: String,
        /// The PTX target.
        arch: &'static str,
        /// Kernels, with each of their instructions.
        divergences: Vec<(&'static str, Divergence)>,
    },

    /// The table has a row that the PTX has no entry point for.
    #[error("kernel `{0}` is in gpu_kernels::entry::ENTRIES and not in the PTX")]
    EntryMissing(String),

    /// The PTX has an entry point that the table has no row for.
    #[error("entry point `{0}` is in the PTX and not in gpu_kernels::entry::ENTRIES")]
    EntryUnknown(String),

    /// A kernel's second parameter cannot hold tensor maps.
    #[error("kernel `{0}`: the PTX declares no second parameter with an alignment")]
    NoTensorMaps(String),

    /// A file of PTX cannot be used.
    #[error("{}: {reason}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Box<Error>,
    },

    /// A package's PTX is damaged.
    #[error("{}: {reason}", path.display())]
    Prebuilt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Two files of a folder have an entry point of one name that differ.
    #[error("entry point `{0}` is here a second time, with other parameters")]
    EntryTwice(String),

    /// The parameters of an entry point are not what the code generators write.
    #[error("parameters that cannot be read: {signature}")]
    Parameters {
        /// The entry point, from `.visible` to the closing parenthesis.
        signature: String,
    },

    /// A folder without kernels.
    #[error("no entry point in any .ptx file of {}", .0.display())]
    NoPtx(PathBuf),

    /// No `ptxas` (or, where machine code is to be read, no disassembler).
    #[error(
        "no {tool} in the project's tools, on PATH or under CUDA_PATH; `cargo xtask setup` gets it"
    )]
    NoTool {
        /// The program that is missing.
        tool: &'static str,
    },

    /// `ptxas` or the disassembler refused its input.
    #[error("{} failed on `{kernel}`:\n{output}", program.display())]
    Tool {
        /// The program.
        program: PathBuf,
        /// The kernel it was given.
        kernel: String,
        /// Everything it said.
        output: String,
    },
}

/// A line for each instruction, with its kernel.
fn lines(divergences: &[(&str, Divergence)]) -> String {
    let lines = divergences.iter();
    let lines = lines.map(|(kernel, divergence)| format!("  {kernel}: {divergence}"));
    lines.collect::<Vec<_>>().join("\n")
}
