//! `cargo xtask test --coverage`: how much of the kernels the CPU's tests execute.
//!
//! The compiler's own instrumentation (`-Cinstrument-coverage`, as cargo-llvm-cov
//! uses it), over the tests of the emulator. What counts is `gpu-kernels/src/kernels`
//! and `gpu-kernels/src/isa`: a line or region is covered if any instantiation of any
//! kernel has executed it. The PTX form of an instruction is not compiled for the
//! host, and so is no line; its emulated form beside it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{emulate, project};

/// What is measured.
const SOURCES: [&str; 2] = ["gpu-kernels/src/kernels", "gpu-kernels/src/isa"];

/// The least that is accepted of lines and of regions, percent.
const LEAST: f64 = 95.0;

/// Covered, and all.
#[derive(Clone, Copy, Default)]
struct Share {
    covered: u64,
    count: u64,
}

impl Share {
    fn percent(self) -> f64 {
        match self.count {
            0 => 100.0,
            count => 100.0 * self.covered as f64 / count as f64,
        }
    }

    fn add(&mut self, other: Share) {
        self.covered += other.covered;
        self.count += other.count;
    }
}

/// Runs the tests, prints a table by file, and fails below the least.
pub fn run() -> Result<()> {
    let tools = Tools::find()?;
    let target = project::root().join("target/coverage");
    let profiles = target.join("profiles");
    let pattern = profiles.join("%p-%m.profraw");
    let mut tests = project::cargo();
    emulate::tests(&mut tests)
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", "-Cinstrument-coverage")
        .env("LLVM_PROFILE_FILE", &pattern)
        .env("TILEWISE_PTX", "skip");
    let programs = programs(&mut tests)?;
    // What the compiler's own plug-ins have left there.
    if profiles.exists() {
        fs::remove_dir_all(&profiles).context("profiles of the build")?;
    }
    for (program, directory) in &programs {
        let mut test = Command::new(program);
        test.current_dir(directory);
        project::run(test.env("LLVM_PROFILE_FILE", &pattern))?;
    }
    let merged = target.join("merged.profdata");
    let mut merge = Command::new(&tools.profdata);
    merge.args(["merge", "--sparse", "--output"]).arg(&merged);
    for entry in fs::read_dir(&profiles).context("profiles of the tests")? {
        merge.arg(entry?.path());
    }
    let status = merge.status().context("llvm-profdata")?;
    ensure!(status.success(), "llvm-profdata failed ({status})");
    let summary = summary(&tools, &merged, &programs)?;
    let files = files(&summary)?;
    print(&files)
}

/// The test programs that `tests` would run, and where.
fn programs(tests: &mut Command) -> Result<Vec<(PathBuf, PathBuf)>> {
    let output = tests
        .args(["--no-run", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot build the tests")?;
    ensure!(output.status.success(), "the tests do not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let test = message["profile"]["test"] == true;
        let program = test.then(|| message["executable"].as_str())??;
        let mut directory = PathBuf::from(message["manifest_path"].as_str()?);
        directory.pop();
        Some((PathBuf::from(program), directory))
    };
    Ok(messages.lines().filter_map(executable).collect())
}

/// llvm-cov's summary, as JSON.
fn summary(tools: &Tools, profile: &Path, programs: &[(PathBuf, PathBuf)]) -> Result<Value> {
    let mut cov = Command::new(&tools.cov);
    cov.args(["export", "--summary-only", "--instr-profile"])
        .arg(profile);
    for (program, _) in programs {
        cov.arg("--object").arg(program);
    }
    for source in SOURCES {
        cov.arg("--sources").arg(project::root().join(source));
    }
    let output = cov.output().context("llvm-cov")?;
    if !output.status.success() {
        bail!("llvm-cov: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("llvm-cov's JSON")
}

/// Lines and regions of each file, without the kernels' unit tests.
fn files(summary: &Value) -> Result<Vec<(String, Share, Share)>> {
    let root = project::root().join("gpu-kernels/src");
    let root = root.to_string_lossy();
    let files = summary["data"][0]["files"].as_array();
    let share = |file: &Value, what: &str| -> Result<Share> {
        let part = &file["summary"][what];
        let number = |name: &str| part[name].as_u64().with_context(|| format!("no {name}"));
        Ok(Share {
            covered: number("covered")?,
            count: number("count")?,
        })
    };
    let mut found = Vec::new();
    for file in files.context("llvm-cov names no files")? {
        let name = file["filename"].as_str().unwrap_or_default();
        let name = name.strip_prefix(&*root).unwrap_or(name);
        let name = name.trim_start_matches('/');
        if !name.contains("/tests") {
            found.push((
                name.to_owned(),
                share(file, "lines")?,
                share(file, "regions")?,
            ));
        }
    }
    Ok(found)
}

fn print(files: &[(String, Share, Share)]) -> Result<()> {
    let (mut all_lines, mut all_regions) = (Share::default(), Share::default());
    println!("\n{:>8} {:>8}  file", "lines", "regions");
    for (name, lines, regions) in files {
        all_lines.add(*lines);
        all_regions.add(*regions);
        println!(
            "{:>7.1}% {:>7.1}%  {name}",
            lines.percent(),
            regions.percent()
        );
    }
    let (lines, regions) = (all_lines.percent(), all_regions.percent());
    println!(
        "{lines:>7.1}% {regions:>7.1}%  all: {} of {} lines, {} of {} regions",
        all_lines.covered, all_lines.count, all_regions.covered, all_regions.count
    );
    ensure!(
        lines >= LEAST && regions >= LEAST,
        "coverage is {lines:.1} % of lines and {regions:.1} % of regions, accepted: {LEAST} %"
    );
    Ok(())
}

/// llvm-profdata and llvm-cov that read what this rustc writes.
struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Those of the rustup component `llvm-tools`, else those of the system that are
    /// of the LLVM that rustc has, which Debian's name says.
    fn find() -> Result<Tools> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read_by_file() {
        let root = project::root();
        let file = |name: &str, covered: u64| {
            serde_json::json!({
                "filename": root.join("gpu-kernels/src").join(name),
                "summary": {
                    "lines": {"count": 4, "covered": covered},
                    "regions": {"count": 8, "covered": covered},
                },
            })
        };
        let summary = serde_json::json!({"data": [{"files": [
            file("isa/mma.rs", 4),
            file("kernels/tiled/layout/tests.rs", 0),
        ]}]});
        let files = files(&summary).unwrap();
        let [(name, lines, regions)] = &files[..] else {
            panic!("{} files", files.len());
        };
        assert_eq!(name, "isa/mma.rs");
        assert_eq!((lines.percent(), regions.percent()), (100.0, 50.0));
        assert!(print(&files).is_err());
    }
}
