//! `cargo xtask package`: packages of the crates that a dependent needs, and in the library's
//! the PTX of all kernels.
//!
//! A dependent's build has no device toolchain, as a rule. So the PTX is compiled here, by the
//! release of rustc that this repository pins, whose results its gates have judged.

pub mod dependent;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use gpu_kernels::Arch;
use ptx_builder::{Codegen, Generator, Program, Toolchain, prebuilt};

use crate::{generator, project};

/// The packages. Cargo finds their order.
const PACKAGES: [&str; 5] = [
    "gpu-kernels",
    "tilewise-emulator",
    "tilewise-model",
    "tilewise-ptx-builder",
    LIBRARY,
];

/// The package that carries the PTX.
const LIBRARY: &str = "tilewise";

/// The folder of the PTX in that package.
const PREBUILT: &str = "prebuilt";

/// The most bytes that a package may have on crates.io ("Publishing on crates.io" in cargo's
/// book).
const LIMIT_BYTES: u64 = 10 << 20;

/// The version of all packages, which the workspace gives them.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All kernels, and what compiled them.
struct Kernels {
    toolchain: Toolchain,
    programs: Vec<Program>,
}

/// Makes the packages, or compares the PTX in the package `compared` with that of this
/// checkout.
pub fn run(compared: Option<&Path>) -> Result<()> {
    let kernels = Kernels::compile()?;
    match compared {
        None => make(&kernels),
        Some(file) => {
            let folder = tempfile::tempdir()?;
            unpack(file, folder.path())?;
            let name = format!("{LIBRARY}-{VERSION}");
            kernels.compare(&folder.path().join(name).join(PREBUILT))
        }
    }
}

/// Makes the packages in `target/package`.
fn make(kernels: &Kernels) -> Result<()> {
    let dir = project::root().join("host").join(PREBUILT);
    prebuilt::write(
        &dir,
        &kernels.toolchain,
        &kernels.programs,
        Some(&project::ptx_cache()?),
    )?;
    // The PTX is not committed, which alone makes the folder dirty. Cargo's own verification
    // would build each package with what it has once unpacked under the name and version of
    // the others, which may have changed since: `dependent` builds them all instead.
    let mut package = project::cargo();
    package.args(["package", "--allow-dirty", "--no-verify"]);
    package.args(PACKAGES.iter().flat_map(|name| ["--package", name]));
    project::run(&mut package)?;
    for name in PACKAGES {
        let file = package_file(name)?;
        let bytes = fs::metadata(&file)?.len();
        println!("{:>6} kB  {}", bytes.div_ceil(1000), file.display());
        if bytes > LIMIT_BYTES {
            bail!("the package {name} has {bytes} bytes; crates.io takes {LIMIT_BYTES}");
        }
    }
    Ok(())
}

/// The file of package `name`.
fn package_file(name: &str) -> Result<PathBuf> {
    let file = format!("package/{name}-{VERSION}.crate");
    Ok(project::target_dir()?.join(file))
}

/// Unpacks a package into a folder of its name and version below `folder`.
fn unpack(file: &Path, folder: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(file).arg("-C").arg(folder);
    project::run(&mut tar)
}

impl Kernels {
    /// Compiles the kernels by the pinned rustc; quick after `cargo xtask ptx`.
    fn compile() -> Result<Self> {
        let choice = generator::choose(Codegen::Rustc)?;
        let Generator::Rustc(toolchain) = choice.generator else {
            bail!("rustc was asked for");
        };
        let pinned = pinned_release()?;
        if !is_release(&toolchain, &pinned) {
            bail!(
                "packages carry PTX by rustc {pinned}, which rust-toolchain.toml pins, and not by \
                 {toolchain}"
            );
        }
        let cache = project::ptx_cache()?;
        let mut programs = Vec::new();
        for arch in Arch::ALL {
            programs.extend(compile_for(&toolchain, arch, &cache)?);
        }
        Ok(Kernels {
            toolchain,
            programs,
        })
    }

    /// Fails unless the folder `dir` of a package has this PTX.
    fn compare(&self, dir: &Path) -> Result<()> {
        let found = prebuilt::read(dir)?;
        let compiler = self.toolchain.version();
        if found.compiler != compiler {
            bail!(
                "the package's PTX is by {}, and not by {compiler}",
                found.compiler
            );
        }
        refuse_others(&found, &self.programs)?;
        println!(
            "{} kernels of the package are those of a build here",
            found.kernels.len()
        );
        Ok(())
    }
}

/// The kernels of `arch`.
fn compile_for(toolchain: &Toolchain, arch: Arch, cache: &Path) -> Result<Vec<Program>> {
    let generator = Generator::Rustc(toolchain.clone());
    Ok(ptx_builder::build(&generator, arch, cache)?.programs)
}

/// Fails if a program is not the text that the package has under its name.
fn refuse_others(package: &prebuilt::Prebuilt, programs: &[Program]) -> Result<()> {
    let differs = |program: &&Program| {
        let name = program.kernel.name;
        let mut same = package.kernels.iter();
        !same.any(|kernel| kernel.name == name && kernel.ptx == program.ptx)
    };
    let different: Vec<_> = programs.iter().filter(differs).collect();
    if let Some(first) = different.first() {
        bail!(
            "{} of {} kernels of the package have other PTX than a build here; the first is {}",
            different.len(),
            programs.len(),
            first.kernel.name
        );
    }
    Ok(())
}

/// The release in `rust-toolchain.toml`.
fn pinned_release() -> Result<String> {
    let path = project::root().join("rust-toolchain.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines();
    let channel = lines.find_map(|line| line.strip_prefix("channel = "));
    let channel = channel.context("rust-toolchain.toml has no channel")?;
    Ok(channel.trim_matches('"').to_owned())
}

/// Whether `toolchain` is this release.
fn is_release(toolchain: &Toolchain, release: &str) -> bool {
    let mut lines = toolchain.verbose_version.lines();
    lines.any(|line| line.strip_prefix("release: ") == Some(release))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::entry::ENTRIES;
    use ptx_builder::toolchain::CoreLibrary;

    fn kernels(release: &str, ptx: impl Fn(&str) -> String) -> Kernels {
        let programs = ENTRIES.iter().map(|kernel| Program {
            kernel,
            ptx: ptx(kernel.name),
        });
        Kernels {
            toolchain: Toolchain {
                rustc: "rustc".into(),
                verbose_version: format!("rustc {release}\nrelease: {release}"),
                core: CoreLibrary::Compiled,
            },
            programs: programs.collect(),
        }
    }

    #[test]
    fn the_pinned_release_is_that_of_the_workspace() {
        let pinned = pinned_release().unwrap();
        assert!(
            pinned.starts_with(env!("CARGO_PKG_RUST_VERSION")),
            "{pinned}"
        );
        assert!(is_release(
            &kernels(&pinned, str::to_owned).toolchain,
            &pinned
        ));
        assert!(!is_release(
            &kernels("1.96.0", str::to_owned).toolchain,
            &pinned
        ));
    }

    #[test]
    fn other_ptx_and_another_compiler_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let packaged = kernels("1.95.0", str::to_owned);
        prebuilt::write(folder.path(), &packaged.toolchain, &packaged.programs, None).unwrap();
        packaged.compare(folder.path()).unwrap();
        let refusal = |kernels: Kernels| kernels.compare(folder.path()).unwrap_err().to_string();
        let last = ENTRIES.last().unwrap().name;
        let other = |name: &str| {
            if name == last {
                "other".into()
            } else {
                name.to_owned()
            }
        };
        let text = refusal(kernels("1.95.0", other));
        assert!(text.contains("1 of ") && text.ends_with(last), "{text}");
        let text = refusal(kernels("1.96.0", str::to_owned));
        assert!(
            text.contains("by rustc 1.95.0, and not by rustc 1.96.0"),
            "{text}"
        );
    }
}
