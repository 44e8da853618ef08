//! The ways to install something: rustup, the system's packages, pip.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

use crate::project;

/// Looks for something; where it is missing, makes one attempt after the other to install
/// it, until it is found. Says what is found, or at last why nothing is.
pub fn find_or_install<T: Display, E: Display>(
    what: &str,
    find: impl Fn() -> Result<T, E>,
    attempts: impl FnOnce() -> Vec<Command>,
) -> Option<T> {
    let mut found = find();
    let mut note = "";
    if found.is_err() {
        for mut attempt in attempts() {
            install(&mut attempt);
            found = find();
            if found.is_ok() {
                note = ", just installed";
                break;
            }
        }
    }
    match &found {
        Ok(found) => println!("{what}: {found}{note}"),
        Err(reason) => println!("{what}: {reason}"),
    }
    found.ok()
}

/// Runs one attempt. A failure is printed only: the caller looks whether the attempt
/// helped.
pub fn install(command: &mut Command) {
    println!("$ {}", project::typed(command));
    match command.env("DEBIAN_FRONTEND", "noninteractive").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let error = messages
                .lines()
                .find(|line| line.to_lowercase().starts_with("e"))
                .or(messages.lines().last());
            println!("  failed: {}", error.unwrap_or("without a message"));
        }
        Err(error) => println!("  not run: {error}"),
    }
}

/// A command from words.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(project::root());
    command
}

pub fn has_rustup() -> bool {
    project::succeeds(Command::new("rustup").arg("--version"))
}

/// The commands that install packages of Debian; none for a user who may not.
pub fn apt_get_packages(packages: &[&str]) -> Vec<Command> {
    if !is_debian_root() {
        return Vec::new();
    }
    let install = [&["install"], packages].concat();
    vec![apt_get(&["update"]), apt_get(&install)]
}

/// An `apt-get` command that asks no question.
fn apt_get(arguments: &[&str]) -> Command {
    let quiet = ["--yes", "--quiet=2", "--no-install-recommends"];
    command("apt-get", &[&quiet, arguments].concat())
}

/// The ways to have pip install `packages` below `target`, to be tried one after the
/// other: by `python`'s own, by that of an environment below the project's tools, or by
/// that of the system's packages.
pub fn pip_attempts(python: &Path, target: &Path, packages: &[&str]) -> Vec<Command> {
    let venv = project::tools_dir().join("python");
    let mut create = Command::new(python);
    create.args(["-m", "venv"]).arg(&venv);
    let mut attempts = vec![
        pip_install(python, target, packages),
        create,
        pip_install(&venv.join("bin/python"), target, packages),
    ];
    attempts.extend(apt_get_packages(&["python3-pip"]));
    if is_debian_root() {
        attempts.push(pip_install("/usr/bin/python3".as_ref(), target, packages));
    }
    attempts
}

/// pip, installing packages below `target`.
pub fn pip_install(python: &Path, target: &Path, packages: &[&str]) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--upgrade", "--target"])
        .arg(target)
        .args(packages)
        .current_dir(project::root());
    pip
}

/// Whether this user may install packages of Debian.
fn is_debian_root() -> bool {
    is_root() && project::succeeds(Command::new("apt-get").arg("--version"))
}

/// Whether this user is root.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
