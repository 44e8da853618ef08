//! `rust-cuda/llvm-7.sh`, with scripts in place of the programs that it runs.

#[allow(dead_code, reason = "this test needs its programs alone")]
mod fake;

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use fake::Machine;

/// Runs the script where `python` is the stand-in for `python3`.
fn run(machine: &Machine, python: &str) -> Output {
    let dir = machine.dir.path().display();
    machine.program("bin/curl", "while [ $1 != -o ]; do shift; done; : > $2");
    machine.program("bin/tar", ":");
    machine.program("bin/ninja", ":");
    machine.program("bin/python", "exit 2");
    machine.program("bin/python3", python);
    let cmake = format!("printf '%s\\n' \"$@\" >> {dir}/log");
    machine.program("bin/cmake", &cmake);
    machine.program("prefix/bin/llvm-config", "echo 7.1.0");
    let path = env::join_paths(
        [machine.path("bin")]
            .into_iter()
            .chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    Command::new("sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust-cuda/llvm-7.sh"))
        .arg(machine.path("prefix"))
        .env("PATH", path.unwrap())
        .output()
        .unwrap()
}

#[test]
fn cmake_is_told_which_python_to_run() {
    let machine = Machine::complete();
    let output = run(&machine, "echo /interpreter/python3.12");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"7.1.0\n");
    let log = fs::read_to_string(machine.path("log")).unwrap();
    let arguments: Vec<&str> = log.lines().collect();
    assert!(
        arguments.contains(&"-DPYTHON_EXECUTABLE=/interpreter/python3.12"),
        "{log}"
    );
    let prefix = format!(
        "-DCMAKE_INSTALL_PREFIX={}",
        machine.path("prefix").display()
    );
    assert!(arguments.contains(&prefix.as_str()), "{log}");
}

#[test]
fn a_python_that_does_not_run_is_told_before_anything_is_built() {
    let machine = Machine::complete();
    let output = run(&machine, "exit 127");
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "python3 does not run; LLVM's build needs it\n");
    assert!(!machine.path("log").exists());
}
