//! `cargo xtask bundle`: programs for a machine that has an NVIDIA driver and no Rust.
//!
//! All that they need is inside them, PTX included. They link to the C library alone, so
//! this prints the oldest version that will do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use ptx_builder::{Generator, codegen};
use serde_json::Value;

use crate::{project, ptx};

/// The most bytes that the folder may hold, for it is copied to other machines.
const LIMIT_BYTES: u64 = 56 << 20;

/// The contents of the folder.
struct Contents {
    /// Whether the proof of the emulator is in it: its probes are rustc's.
    proof: bool,
    /// What compiled the kernels.
    version: String,
}

impl Contents {
    fn of(generator: &Generator) -> Self {
        Contents {
            proof: matches!(generator, Generator::Rustc(_)),
            version: generator.version(),
        }
    }

    /// What `README.txt` says.
    fn readme(&self) -> String {
        let proof = if self.proof {
            "  ./emulator-proof            the emulator against the GPU, instruction by instruction\n"
        } else {
            ""
        };
        format!(
            "\
tilewise, built to run without Rust or CUDA. It needs Linux on x86-64 and an
NVIDIA driver. Its kernels were compiled by
{}.

  ./tilewise-bench bench      measure tile orders, kernels and peers (--help for the choices)
  ./tilewise-bench study      measure tile orders for the study, bytes with Nsight Compute
  ./tilewise-bench sweep      measure every kernel on drawn problems, and the rule beside them
  ./gpu-tests                 the GPU tests; a name as argument selects some
  ./tilewise-parallel check   random cases over several GPUs (--help for the choices)
  ./tilewise-parallel bench   measure them beside NCCL, where LD_LIBRARY_PATH leads to it
  ./tilewise-parallel predict draw what runs when, for any number of GPUs
{proof}
bench uses cuBLASLt where the system has it, and Triton where python3 has it.
",
            self.version
        )
    }
}

/// Fills the folder `bundle/`. The GPU tests are those of the library with the feature `cust`,
/// as the workspace's programs have it, or `without_cust`, as a crate that depends on it has it.
pub fn run(without_cust: bool) -> Result<()> {
    let generator = ptx::compiled_by().context("a bundle without device code is of no use")?;
    let contents = Contents::of(&generator);
    let dir = project::root().join("bundle");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty {}", dir.display()))?;
    }
    fs::create_dir_all(&dir)?;

    let bench = [
        "build",
        "--package",
        "tilewise-benches",
        "--bin",
        "tilewise-bench",
    ];
    let parallel = [
        "build",
        "--package",
        "tilewise-parallel",
        "--bin",
        "tilewise-parallel",
    ];
    let mut tests = vec!["test", "--package", "tilewise", "--test", "gpu", "--no-run"];
    if !without_cust {
        tests.extend(["--features", "cust"]);
    }
    let proof = [
        "build",
        "--package",
        "tilewise-emulate",
        "--bin",
        "emulator-proof",
    ];
    let add = |build: &[&str], target: &str, name: &str| {
        add_program(&generator, build, target, &dir.join(name))
    };
    add(&bench, "tilewise-bench", "tilewise-bench")?;
    add(&tests, "gpu", "gpu-tests")?;
    add(&parallel, "tilewise-parallel", "tilewise-parallel")?;
    if contents.proof {
        add(&proof, "emulator-proof", "emulator-proof")?;
    }
    for script in python_scripts(&project::root().join("benches"))? {
        let name = script.file_name().context("a script without a name")?;
        fs::copy(&script, dir.join(name))?;
    }
    fs::write(dir.join("README.txt"), contents.readme())?;
    println!("kernels by {}", contents.version);
    report(&dir)
}

/// Builds one program in release, with the kernels of `generator` and no other's, copies
/// it to `path` and strips it.
fn add_program(generator: &Generator, build: &[&str], target: &str, path: &Path) -> Result<()> {
    let mut cargo = project::cargo();
    cargo
        .env(codegen::CODEGEN, generator.codegen().name())
        .args(build)
        .args(["--release", "--message-format=json-render-diagnostics"]);
    println!("$ {}", project::typed(&cargo));
    let output = cargo.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("`{}` failed", project::typed(&cargo));
    }
    let messages = String::from_utf8(output.stdout)?;
    let program = executable(&messages, target)
        .with_context(|| format!("cargo built no program of the name `{target}`"))?;
    fs::copy(&program, path).with_context(|| format!("cannot copy {}", program.display()))?;
    if !project::succeeds(Command::new("strip").arg(path)) {
        println!("  not stripped: `strip` (binutils) does not run");
    }
    Ok(())
}

/// The program of this target among cargo's messages, a line of JSON each.
fn executable(messages: &str, target: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The Python files below a folder.
fn python_scripts(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            scripts.extend(python_scripts(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            scripts.push(path);
        }
    }
    Ok(scripts)
}

/// Lists the folder, and fails if it is too large.
fn report(dir: &Path) -> Result<()> {
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let content = fs::read(&path)?;
        total += content.len() as u64;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let glibc = oldest_glibc(&content)
            .map(|(major, minor)| format!("  needs glibc {major}.{minor}"))
            .unwrap_or_default();
        println!(
            "{:>8.1} MiB  {name}{glibc}",
            mebibytes(content.len() as u64)
        );
    }
    println!("{:>8.1} MiB  in {}", mebibytes(total), dir.display());
    if total > LIMIT_BYTES {
        bail!("the bundle may hold {:.0} MiB", mebibytes(LIMIT_BYTES));
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The newest `GLIBC_x.y` a program names: symbol versions are plain text in it.
fn oldest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    if !program.starts_with(b"\x7fELF") {
        return None;
    }
    let names = program.windows(PREFIX.len()).enumerate();
    names
        .filter(|(_, bytes)| *bytes == PREFIX)
        .filter_map(|(at, _)| {
            let rest = &program[at + PREFIX.len()..];
            let end = rest
                .iter()
                .position(|b| !b.is_ascii_digit() && *b != b'.')?;
            let mut numbers = str::from_utf8(&rest[..end])
                .ok()?
                .split('.')
                .map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_builder::Toolchain;
    use ptx_builder::rust_cuda::RustCuda;
    use ptx_builder::toolchain::CoreLibrary;

    #[test]
    fn the_readme_names_what_compiled_the_kernels_and_offers_what_is_there() {
        let rustc = Contents::of(&Generator::Rustc(Toolchain {
            rustc: "/usr/bin/rustc".into(),
            verbose_version: "rustc 1.95.0\nrelease: 1.95.0".into(),
            core: CoreLibrary::Compiled,
        }));
        assert!(rustc.proof);
        let text = rustc.readme();
        assert!(text.contains("compiled by\nrustc 1.95.0.\n"), "{text}");
        assert!(text.contains("./emulator-proof  "), "{text}");

        let rust_cuda = Contents::of(&Generator::RustCuda(RustCuda {
            workspace: "/clone/rust-cuda".into(),
            rustup: "rustup".into(),
            llvm_config: "/opt/llvm-7/bin/llvm-config".into(),
            llvm_version: "7.1.0".into(),
            cuda_root: "/usr/local/cuda".into(),
            cuda_version: (13, 0),
        }));
        assert!(!rust_cuda.proof);
        let text = rust_cuda.readme();
        let version = "nightly-2026-04-02, LLVM 7.1.0, libNVVM of CUDA 13.0.\n";
        assert!(text.contains(version), "{text}");
        assert!(!text.contains("emulator-proof"), "{text}");
    }

    #[test]
    fn the_program_is_found_among_the_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"gpu"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other-1"}
not a message
{"reason":"compiler-artifact","target":{"name":"gpu"},"executable":"/t/gpu-2"}"#;
        assert_eq!(executable(messages, "gpu"), Some("/t/gpu-2".into()));
        assert_eq!(executable(messages, "none"), None);
    }

    #[test]
    fn the_newest_version_counts() {
        let program = b"\x7fELF..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(oldest_glibc(program), Some((2, 34)));
        assert_eq!(oldest_glibc(b"GLIBC_2.34\0"), None);
    }
}
