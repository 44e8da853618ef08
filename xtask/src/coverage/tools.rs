//! llvm-profdata and llvm-cov that read what this rustc writes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::project;

/// The two programs.
pub struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Finds the programs of the rustup component `llvm-tools`, or else those of the system
    /// with the LLVM version of rustc in their names, as on Debian.
    pub fn find() -> Result<Tools> {
        let ask = |arguments: &[&str]| -> Result<String> {
            let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let output = Command::new(rustc)
                .args(arguments)
                .output()
                .context("cannot run rustc")?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let version = ask(&["--version", "--verbose"])?;
        let field = |name: &str| {
            let line = version.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let host = field("host: ");
        let major = field("LLVM version: ");
        let major = major.split('.').next().unwrap_or_default();
        let component = PathBuf::from(ask(&["--print", "sysroot"])?)
            .join("lib/rustlib")
            .join(host)
            .join("bin");
        let places = [
            [component.join("llvm-profdata"), component.join("llvm-cov")],
            ["llvm-profdata", "llvm-cov"].map(|name| format!("{name}-{major}").into()),
        ];
        for [profdata, cov] in places {
            if project::succeeds(Command::new(&cov).arg("--version")) {
                return Ok(Tools { profdata, cov });
            }
        }
        bail!(
            "no llvm-cov for LLVM {major}: `rustup component add llvm-tools`, or Debian's package \
             llvm-{major}"
        )
    }

    /// Indexes the profile that a program has written: the path of the result.
    pub fn merge(&self, raw: &Path) -> Result<PathBuf> {
        let merged = raw.with_extension("profdata");
        let mut merge = Command::new(&self.profdata);
        merge.args(["merge", "--sparse", "--output"]);
        project::run(merge.arg(&merged).arg(raw))?;
        Ok(merged)
    }

    /// How often each line of `sources` was executed, in lcov's format.
    pub fn lines(&self, program: &Path, profile: &Path, sources: &[PathBuf]) -> Result<String> {
        let lcov = self.export(&["--format=lcov"], program, profile, sources)?;
        String::from_utf8(lcov).context("llvm-cov's lcov format")
    }

    /// How often each region of `sources` was executed, as JSON.
    pub fn regions(&self, program: &Path, profile: &Path, sources: &[PathBuf]) -> Result<Value> {
        let json = self.export(&["--skip-functions"], program, profile, sources)?;
        serde_json::from_slice(&json).context("llvm-cov's JSON")
    }

    fn export(
        &self,
        format: &[&str],
        program: &Path,
        profile: &Path,
        sources: &[PathBuf],
    ) -> Result<Vec<u8>> {
        let mut cov = Command::new(&self.cov);
        cov.arg("export").args(format);
        cov.arg("--instr-profile").arg(profile).arg(program);
        cov.arg("--sources").args(sources);
        let output = cov.output().context("llvm-cov")?;
        if !output.status.success() {
            bail!("llvm-cov: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    }
}
