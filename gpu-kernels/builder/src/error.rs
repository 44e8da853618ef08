//! What can go wrong between the device sources and a checked kernel.

use std::path::PathBuf;

use crate::toolchain::NoToolchain;

/// A failed step of the device build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to compile with.
    #[error(transparent)]
    NoToolchain(#[from] NoToolchain),

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

    /// The device compiler refused the sources.
    #[error("the device code does not compile for {arch}:\n{output}")]
    Compile {
        /// The PTX target.
        arch: &'static str,
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

    /// The table has a row that the PTX has no entry point for.
    #[error("kernel `{0}` is in gpu_kernels::entry::KERNELS and not in the PTX")]
    EntryMissing(String),

    /// The PTX has an entry point that the table has no row for.
    #[error("entry point `{0}` is in the PTX and not in gpu_kernels::entry::KERNELS")]
    EntryUnknown(String),

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
