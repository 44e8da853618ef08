//! `cargo xtask wheel`: the Python package as a wheel, and its tests.
//!
//! maturin builds the wheel. It and what the tests need are installed by pip into an
//! environment of their own below `target/`, so that nothing else on the machine changes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ptx_builder::{Generator, codegen};

use crate::setup::install::{apt_get_packages, install};
use crate::{project, ptx};

/// What builds the wheel. It is pinned, because the tags of the wheel depend on it.
const MATURIN: &str = "maturin==1.16.*";

/// What the tests and the notebook need. PyTorch is tested where the system's Python has it.
const TEST_PACKAGES: [&str; 5] = ["numpy", "ml_dtypes", "pytest", "nbclient", "ipykernel"];

/// How the wheel is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    /// Optimised, to be used.
    Release,
    /// For tests.
    Dev,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dev => "dev",
        }
    }
}

/// Builds the wheel, and says how large it is and what compiled its kernels. Without a compiler
/// for the device code it fails: such a wheel would install, and refuse every tensor on a GPU.
pub fn run() -> Result<()> {
    let generator = ptx::compiled_by().context("a wheel without device code is of no use")?;
    let environment = Environment::ready(&[MATURIN])?;
    let wheel = environment.build(Profile::Release, Some(&generator))?;
    let bytes = fs::metadata(&wheel)?.len();
    println!(
        "{}: {:.1} MiB, kernels by {}\ninstall it with: pip install --no-index --no-deps {}",
        wheel.display(),
        bytes as f64 / f64::from(1 << 20),
        generator.version(),
        wheel.display()
    );
    Ok(())
}

/// Builds an unoptimised wheel, installs it into the environment, and runs its tests and the
/// notebook. Those that need a GPU are counted as skipped.
pub fn test() -> Result<()> {
    let packages: Vec<&str> = [MATURIN].into_iter().chain(TEST_PACKAGES).collect();
    let environment = Environment::ready(&packages)?;
    let wheel = environment.build(Profile::Dev, None)?;
    let mut pip = environment.pip();
    pip.args(["--force-reinstall", "--no-deps", "--no-index"])
        .arg(wheel);
    project::run(&mut pip)?;
    let tests = project::root().join("python/tests");
    project::run(
        environment
            .python()
            .args(["-m", "pytest", "-q", "-rs"])
            .arg(tests),
    )
}

/// A virtual environment of Python.
struct Environment {
    dir: PathBuf,
}

impl Environment {
    /// The environment with `packages`, made if it is missing. It sees the system's packages.
    fn ready(packages: &[&str]) -> Result<Environment> {
        let dir = project::root().join("target/python");
        let environment = Environment { dir };
        if !project::succeeds(environment.python().args(["-m", "pip", "--version"])) {
            let create = || {
                let mut create = Command::new("python3");
                create
                    .args(["-m", "venv", "--clear", "--system-site-packages"])
                    .arg(&environment.dir);
                project::run(&mut create)
            };
            if create().is_err() {
                // Debian's Python has the module `venv` in a package of its own.
                for mut attempt in apt_get_packages(&["python3-venv"]) {
                    install(&mut attempt);
                }
                create().context("python3 with its module venv is needed")?;
            }
        }
        project::run(environment.pip().args(packages))?;
        Ok(environment)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    fn python(&self) -> Command {
        Command::new(self.program("python"))
    }

    /// pip, about to install.
    fn pip(&self) -> Command {
        let mut pip = self.python();
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip
    }

    /// Builds the wheel, alone in a folder of its profile; its kernels by `generator`, or where
    /// none is given by what the build finds, if anything.
    fn build(&self, profile: Profile, generator: Option<&Generator>) -> Result<PathBuf> {
        let out = project::root().join("target/wheels").join(profile.name());
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
        }
        let mut maturin = Command::new(self.program("maturin"));
        maturin
            .current_dir(project::root())
            .args(["build", "--manifest-path", "python/Cargo.toml"])
            .args(["--profile", profile.name(), "--strip"])
            .arg("--out")
            .arg(&out);
        if let Some(generator) = generator {
            maturin.env(codegen::CODEGEN, generator.codegen().name());
        }
        project::run(&mut maturin)?;
        only_wheel(&out)
    }
}

/// The one wheel in a folder.
fn only_wheel(dir: &Path) -> Result<PathBuf> {
    let files: std::io::Result<Vec<PathBuf>> = fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut wheels = files?;
    wheels.retain(|path| path.extension() == Some(OsStr::new("whl")));
    match <[PathBuf; 1]>::try_from(wheels) {
        Ok([wheel]) => Ok(wheel),
        Err(wheels) => bail!("{} wheels in {}, not one", wheels.len(), dir.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wheel_is_found_among_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        fs::write(path("notes.txt"), "").unwrap();
        assert!(only_wheel(dir.path()).is_err());
        fs::write(path("one.whl"), "").unwrap();
        assert_eq!(only_wheel(dir.path()).unwrap(), path("one.whl"));
        fs::write(path("two.whl"), "").unwrap();
        assert!(only_wheel(dir.path()).is_err());
    }
}
