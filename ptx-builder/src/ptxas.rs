//! NVIDIA's assembler and disassembler: finds them, runs them, and reads their output.
//!
//! The driver has the same assembler built in and runs it when a module is loaded. Run
//! here, without a GPU, it says how many registers and bytes each kernel needs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{Error, Program};

/// The programs of the CUDA toolkit that the checks need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The assembler.
    pub ptxas: PathBuf,
    /// Prints machine code.
    pub cuobjdump: PathBuf,
}

impl Tools {
    /// Looks below `project` (where `cargo xtask setup` puts them), on `PATH`,
    /// and in `bin` below `CUDA_PATH`, `CUDA_HOME` and `/usr/local/cuda`.
    ///
    /// # Errors
    /// [`Error::NoTool`] names the first one that is in none of them.
    pub fn find(project: &Path) -> Result<Tools, Error> {
        let mut dirs = Vec::new();
        program_dirs(project, 6, &mut dirs);
        dirs.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let toolkits = ["CUDA_PATH", "CUDA_HOME"]
            .into_iter()
            .filter_map(env::var_os);
        dirs.extend(toolkits.map(|toolkit| Path::new(&toolkit).join("bin")));
        dirs.push("/usr/local/cuda/bin".into());
        let find = |tool: &'static str| {
            dirs.iter()
                .map(|dir| dir.join(tool))
                .find(|path| path.is_file())
                .ok_or(Error::NoTool { tool })
        };
        Ok(Tools {
            ptxas: find("ptxas")?,
            cuobjdump: find("cuobjdump")?,
        })
    }

    /// The assembler's release, such as `13.0`.
    ///
    /// # Errors
    /// It does not run.
    pub fn version(&self) -> Result<String, Error> {
        let output = run(Command::new(&self.ptxas).arg("--version"), &self.ptxas)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let release = text.split("release ").nth(1).unwrap_or(&text);
        Ok(release
            .split(',')
            .next()
            .unwrap_or(release)
            .trim()
            .to_owned())
    }

    /// Assembles one program for `arch` (an `sm_…` that runs the program's own
    /// target), leaving PTX and machine code in `dir`.
    ///
    /// # Errors
    /// `ptxas` refuses the program, or `dir` is not writable.
    pub fn assemble(&self, program: &Program, arch: &str, dir: &Path) -> Result<Assembled, Error> {
        let name = program.kernel.name;
        let ptx = self.write(program, arch, dir)?;
        let cubin = dir.join(format!("{name}.{arch}.cubin"));
        let mut command = Command::new(&self.ptxas);
        command.args(["--verbose", "--gpu-name", arch, "--output-file"]);
        let output = run(command.arg(&cubin).arg(&ptx), &self.ptxas)?;
        let messages = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(Error::Tool {
                program: self.ptxas.clone(),
                kernel: name.to_owned(),
                output: messages.into_owned(),
            });
        }
        Ok(Assembled {
            report: Report::parse(&messages),
            cubin,
        })
    }

    /// Writes the PTX of one program, which is assembled for `arch`, in `dir`.
    ///
    /// # Errors
    /// `dir` is not writable.
    pub fn write(&self, program: &Program, arch: &str, dir: &Path) -> Result<PathBuf, Error> {
        let name = program.kernel.name;
        let ptx = dir.join(format!("{name}.ptx"));
        // Whole or not at all: the same program may be read for another `arch` meanwhile.
        let partial = dir.join(format!("{name}.{arch}.partial"));
        let write = || {
            fs::create_dir_all(dir)?;
            fs::write(&partial, &program.ptx)?;
            fs::rename(&partial, &ptx)
        };
        write().map_err(|source| Error::File {
            path: ptx.clone(),
            source,
        })?;
        Ok(ptx)
    }

    /// The machine code (SASS) of an assembled kernel, as text.
    ///
    /// # Errors
    /// The disassembler fails.
    pub fn disassemble(&self, cubin: &Path) -> Result<String, Error> {
        let mut command = Command::new(&self.cuobjdump);
        let output = run(command.arg("--dump-sass").arg(cubin), &self.cuobjdump)?;
        if !output.status.success() {
            return Err(Error::Tool {
                program: self.cuobjdump.clone(),
                kernel: cubin.display().to_string(),
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The result of [`Tools::assemble`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The assembler's messages.
    pub report: Report,
    /// The machine code.
    pub cubin: PathBuf,
}

/// The report of `ptxas --verbose` on one entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Registers a thread.
    pub registers: u32,
    /// Stack frame of a thread, bytes.
    pub stack_bytes: u32,
    /// Spilled registers, bytes stored to memory.
    pub spill_store_bytes: u32,
    /// Spilled registers, bytes loaded back.
    pub spill_load_bytes: u32,
    /// Static shared memory of a CTA, bytes; the dynamic part is the launch's.
    pub shared_bytes: u32,
    /// Warnings, and information with a number, such as `C7510`.
    pub notes: Vec<String>,
}

impl Report {
    /// Reads the messages.
    pub fn parse(messages: &str) -> Report {
        let mut report = Report::default();
        for line in messages.lines() {
            let line = line.trim();
            let largest = |old: u32, unit: &str| old.max(number_before(line, unit).unwrap_or(0));
            report.stack_bytes = largest(report.stack_bytes, " bytes stack frame");
            report.spill_store_bytes = largest(report.spill_store_bytes, " bytes spill stores");
            report.spill_load_bytes = largest(report.spill_load_bytes, " bytes spill loads");
            report.shared_bytes = largest(report.shared_bytes, " bytes smem");
            report.registers = largest(report.registers, " registers");
            let note = line.split_once(": ").map(|(_, note)| note.trim());
            if let Some(note) = note
                && (line.starts_with("ptxas warning") || note.starts_with("(C"))
            {
                report.notes.push(note.to_owned());
            }
        }
        report
    }
}

/// The number that stands before `unit` in `line`.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let before = &line[..line.find(unit)?];
    let start = before.rfind(|c: char| !c.is_ascii_digit());
    before[start.map_or(0, |at| at + 1)..].parse().ok()
}

/// Collects the `bin` directories below `dir`, down to `depth` levels.
fn program_dirs(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = dir.read_dir() else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if !path.is_dir() {
            continue;
        }
        if path.file_name().is_some_and(|name| name == "bin") {
            found.push(path);
        } else if depth > 1 {
            program_dirs(&path, depth - 1, found);
        }
    }
}

/// Runs a program to its end.
fn run(command: &mut Command, program: &Path) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Spawn {
        program: program.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = "\
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    48 bytes stack frame, 52 bytes spill stores, 36 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 221.753 ms
ptxas warning : Stack size for entry function cannot be determined
";

    #[test]
    fn a_report_is_read() {
        assert_eq!(
            Report::parse(MESSAGES),
            Report {
                registers: 168,
                stack_bytes: 48,
                spill_store_bytes: 52,
                spill_load_bytes: 36,
                shared_bytes: 1024,
                notes: vec![
                    "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; \
                     unable to determine register count at entry."
                        .into(),
                    "Stack size for entry function cannot be determined".into(),
                ],
            }
        );
    }

    #[test]
    fn tools_are_found_below_the_project_first() {
        let project = env::temp_dir().join(format!("ptx-builder-tools-{}", std::process::id()));
        let bin = project.join("python/nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        for tool in ["ptxas", "cuobjdump"] {
            fs::write(bin.join(tool), "").unwrap();
        }
        let found = Tools::find(&project);
        fs::remove_dir_all(&project).unwrap();
        assert_eq!(found.unwrap().ptxas, bin.join("ptxas"));
    }
}
