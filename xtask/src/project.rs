//! The folders of the project, and running programs.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let mut dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    dir.pop();
    dir
}

/// The ignored folder for programs that setup downloads.
pub fn tools_dir() -> PathBuf {
    root().join(".tools")
}

/// The target directory of the cargo that has built this program.
pub fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().context("where is this program?")?;
    let mut profiles = program.ancestors().skip(1);
    let marked = profiles.find(|dir| dir.join("CACHEDIR.TAG").is_file());
    Ok(marked
        .context("this program is in no target directory")?
        .to_owned())
}

/// The cache of nested device builds; build scripts use the same.
pub fn ptx_cache() -> Result<PathBuf> {
    let program = std::env::current_exe().context("where is this program?")?;
    Ok(ptx_builder::cache_dir(&program))
}

/// The cargo that runs this program, to be run in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Whether this machine has an NVIDIA driver with a GPU.
pub fn has_gpu() -> bool {
    ["/dev/nvidia0", "/dev/dxg"]
        .iter()
        .any(|device| std::path::Path::new(device).exists())
}

/// The command as a user would type it.
pub fn typed(command: &Command) -> String {
    let name = PathBuf::from(command.get_program());
    let name = name.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints a command and runs it.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", typed(command));
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", typed(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", typed(command));
    }
    Ok(())
}

/// Whether a command succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
