//! The project's own commands, as `cargo xtask COMMAND`.
//!
//! A program in the workspace in place of shell scripts, after the
//! [cargo-xtask](https://github.com/matklad/cargo-xtask) convention. Each command
//! does the set-up it needs, so all of them work in a fresh clone.

mod bench;
mod book;
mod bundle;
mod coverage;
mod emulate;
mod explain;
/// Stand-ins for rust-cuda's programs, those of ptx-builder's tests.
#[cfg(test)]
#[path = "../../ptx-builder/tests/fake/mod.rs"]
mod fake;
mod generator;
mod package;
mod project;
mod ptx;
mod setup;
mod test;
mod wheel;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gpu_kernels::Arch;
use ptx_builder::{Codegen, OptLevel, codegen_units};

/// Builds, checks and measures tilewise.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find or get a device toolchain, ptxas and cuobjdump; quick when nothing is missing
    Setup {
        /// The code generator to set up for: auto, rustc, rust-cuda [default: TILEWISE_CODEGEN, or
        /// auto]. rust-cuda is large, and only got where it is asked for
        #[arg(long)]
        codegen: Option<Codegen>,
    },
    /// Compile the kernels to PTX, assemble them, print what they cost, and fail on the gates
    Ptx {
        /// PTX targets, comma-separated: sm_75, sm_80, sm_90a [default: all]
        #[arg(long, value_delimiter = ',', value_parser = parse_arch)]
        arch: Vec<Arch>,
        /// Code generator: auto, rustc, rust-cuda [default: TILEWISE_CODEGEN, or auto, which is
        /// rust-cuda where all of it is installed]
        #[arg(long)]
        codegen: Option<Codegen>,
        /// Only prove that no kernel can hang, for kernels compiled by rustc at these levels of
        /// optimisation, comma-separated: 1, 2, 3, s
        #[arg(long, value_delimiter = ',', value_parser = parse_opt_level, conflicts_with = "codegen")]
        opt_level: Vec<OptLevel>,
        /// With --opt-level: by every rustc that can be had, not by the build's alone
        #[arg(long, requires = "opt_level")]
        every_rustc: bool,
        /// Build nothing: compare the entry points in two folders of PTX, names and parameters
        #[arg(long, num_args = 2, value_names = ["FOLDER", "FOLDER"], conflicts_with_all = ["arch", "codegen", "opt_level"])]
        compare: Vec<PathBuf>,
    },
    /// Measure: `tilewise-bench bench`, release build; on a machine without a GPU, the model, the CPU
    /// and a kernel on the emulator. With --gpus N, `tilewise-parallel bench`
    Bench(PassedOn),
    /// Run one kernel on the CPU, instruction by instruction: check it, verify it, count
    Emulate(PassedOn),
    /// Draw the order of tiles, by wave, and print what the model of L2 says: `tilewise-bench order`
    Order(PassedOn),
    /// Write the HTML page from the files of a study, a sweep and a benchmark: `tilewise-bench page`
    Page(PassedOn),
    /// Measure tile orders against each other and the model of L2 on a GPU, or report from the
    /// file of an earlier study: `tilewise-bench study`
    Study(PassedOn),
    /// Measure every kernel on drawn problems, and what the library's choice loses against the
    /// best of them, or report from the file of an earlier sweep: `tilewise-bench sweep`
    Sweep(PassedOn),
    /// Print which elements of A, B and C one tile touches, and what is masked
    Explain(explain::Arguments),
    /// Check every link in the documentation, and build docs/ as a book
    Book,
    /// All that CI checks: set-up, format, clippy, docs, tests, the book, PTX gates, every kernel
    /// in the emulator, a benchmark without a GPU
    Test {
        /// Instead, measure how much of the kernels the CPU's tests execute
        #[arg(long)]
        coverage: bool,
    },
    /// Make packages of the library and the crates it needs, with the PTX of all kernels by the
    /// pinned rustc, in target/package/
    Package {
        /// Then build a crate that depends on them, outside the workspace, in an empty home and
        /// without a device toolchain
        #[arg(long)]
        check: bool,
        /// Make nothing: compare the PTX in a package of the library with that of this checkout
        #[arg(long, value_name = "FILE", conflicts_with = "check")]
        compare: Option<PathBuf>,
    },
    /// Collect the benchmark and the GPU tests in bundle/, to run on a machine without Rust
    Bundle {
        /// Build the GPU tests without `cust`: with the driver's functions loaded at run time, as
        /// a crate that depends on the library has them
        #[arg(long)]
        without_cust: bool,
    },
    /// Build the Python package as a wheel, and say how large it is
    Wheel,
}

/// What another program reads.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct PassedOn {
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup { codegen } => setup::run(codegen),
        Command::Ptx {
            arch,
            codegen,
            opt_level,
            every_rustc,
            compare,
        } => match (&compare[..], &opt_level[..]) {
            ([first, second], _) => ptx::compare(first, second),
            (_, []) => ptx::run(&arch, codegen),
            (_, levels) => ptx::levels::run(&arch, codegen_units, levels, every_rustc),
        },
        Command::Bench(passed_on) => bench::run(&passed_on.arguments),
        Command::Order(passed_on) => bench::order(&passed_on.arguments),
        Command::Page(passed_on) => bench::page(&passed_on.arguments),
        Command::Study(passed_on) => bench::study(&passed_on.arguments),
        Command::Sweep(passed_on) => bench::sweep(&passed_on.arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Emulate(passed_on) => emulate::run(&passed_on.arguments),
        Command::Book => book::run(),
        Command::Test { coverage: true } => coverage::run(),
        Command::Test { coverage: false } => test::run(),
        Command::Package { check: true, .. } => package::dependent::test(),
        Command::Package { compare, .. } => package::run(compare.as_deref()),
        Command::Bundle { without_cust } => bundle::run(without_cust),
        Command::Wheel => wheel::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A level of optimisation by its name.
fn parse_opt_level(name: &str) -> Result<OptLevel, String> {
    by_name(OptLevel::ALL, OptLevel::name, name)
}

/// A PTX target by its name.
fn parse_arch(name: &str) -> Result<Arch, String> {
    by_name(Arch::ALL, Arch::name, name)
}

/// The one of `all` that is called `name`; the error lists the names.
fn by_name<T: Copy, const N: usize>(
    all: [T; N],
    name_of: fn(T) -> &'static str,
    name: &str,
) -> Result<T, String> {
    let found = all.into_iter().find(|&one| name_of(one) == name);
    found.ok_or_else(|| format!("not one of {}", all.map(name_of).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn targets_are_a_list() {
        let parse = |list| Arguments::try_parse_from(["xtask", "ptx", "--arch", list]);
        let Ok(Arguments {
            command: Command::Ptx { arch, .. },
        }) = parse("sm_75,sm_90a")
        else {
            panic!("not accepted");
        };
        assert_eq!(arch, [Arch::Sm75, Arch::Sm90a]);
        assert!(parse("sm_75,sm_91").is_err());
    }

    #[test]
    fn a_code_generator_is_named_and_two_folders_are_compared() {
        let parse = |arguments: &[&str]| {
            let all = ["xtask", "ptx"].iter().chain(arguments);
            match Arguments::try_parse_from(all).ok()?.command {
                Command::Ptx {
                    codegen, compare, ..
                } => Some((codegen, compare)),
                _ => None,
            }
        };
        assert_eq!(parse(&[]), Some((None, Vec::new())));
        for codegen in Codegen::ALL {
            let parsed = parse(&["--codegen", codegen.name()]);
            assert_eq!(parsed, Some((Some(codegen), Vec::new())));
        }
        assert_eq!(parse(&["--codegen", "nvvm"]), None);
        let folders = vec![PathBuf::from("a"), PathBuf::from("b")];
        assert_eq!(parse(&["--compare", "a", "b"]), Some((None, folders)));
        assert_eq!(parse(&["--compare", "a"]), None);
        assert_eq!(parse(&["--compare", "a", "b", "--codegen", "rustc"]), None);
    }

    #[test]
    fn the_benchmark_program_gets_its_flags_unread() {
        let parsed = Arguments::try_parse_from(["xtask", "bench", "--json", "out.json", "--help"]);
        let Ok(Arguments {
            command: Command::Bench(PassedOn { arguments }),
        }) = parsed
        else {
            panic!("not accepted");
        };
        assert_eq!(arguments, ["--json", "out.json", "--help"]);
        let parsed = Arguments::try_parse_from(["xtask", "order", "--gpu", "t4", "--help"]);
        let Ok(Arguments {
            command: Command::Order(PassedOn { arguments }),
        }) = parsed
        else {
            panic!("not accepted");
        };
        assert_eq!(arguments, ["--gpu", "t4", "--help"]);
    }
}
