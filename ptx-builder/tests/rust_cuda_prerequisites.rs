//! Each prerequisite of rust-cuda that is missing is found, and its message says
//! how to get it. The script that builds LLVM is run too. All programs and folders here
//! are fakes.

mod fake;

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use fake::Machine;
use ptx_builder::rust_cuda::{Missing, Search};

/// The message about the one thing that is missing, with the fakes' folder as `DIR`.
fn message_about(machine: &Machine) -> String {
    let missing = machine.find().unwrap_err();
    assert_eq!(missing.len(), 1, "{missing:?}");
    let dir = machine.dir.path().display().to_string();
    missing[0].to_string().replace(&dir, "DIR")
}

#[test]
fn a_complete_machine_is_accepted_with_its_versions() {
    let found = Machine::complete().find().unwrap();
    assert_eq!(
        found.version(),
        "rust-cuda 946c91f, nightly-2026-04-02, LLVM 7.1.0, libNVVM of CUDA 13.0"
    );
}

#[test]
fn with_nothing_installed_everything_is_named_once() {
    let nowhere = |name| Path::new("/nowhere").join(name);
    let search = Search {
        workspace: nowhere("rust-cuda"),
        rustup: nowhere("rustup"),
        llvm_configs: vec![nowhere("llvm-config-7"), nowhere("llvm-config")],
        cuda_roots: vec![nowhere("cuda")],
        libclang_dirs: vec![nowhere("lib")],
    };
    let missing = search.run().unwrap_err();
    let messages: Vec<String> = missing.iter().map(Missing::to_string).collect();
    assert_eq!(
        messages,
        [
            "the workspace rust-cuda/: no Cargo.toml in /nowhere/rust-cuda; \
             a clone of tilewise's repository has it",
            "rustup: `/nowhere/rustup` does not run; get it from https://rustup.rs",
            "libclang; get it: `sudo apt-get install clang` (Debian, Ubuntu) or \
             `sudo dnf install clang` (Rocky), or set LIBCLANG_PATH to its directory",
            "LLVM 7 (/nowhere/llvm-config-7 is not there; /nowhere/llvm-config is not there); \
             get it: `sudo sh rust-cuda/llvm-7.sh /opt/llvm-7` builds it \
             where it is looked for as long as LLVM_CONFIG is not set",
            "a CUDA toolkit with libNVVM, 12.2 or newer (/nowhere/cuda is not there); \
             get it: `cargo xtask setup --codegen rust-cuda` puts its parts where they are \
             looked for as long as CUDA_PATH is not set; or \
             https://developer.nvidia.com/cuda-downloads, then `export CUDA_PATH=/usr/local/cuda`",
        ]
    );
}

#[test]
fn a_missing_nightly_is_told_from_a_missing_component() {
    let machine = Machine::complete();
    machine.program(
        "rustup",
        "echo 'error: toolchain is not installed' >&2; exit 1",
    );
    assert_eq!(
        message_about(&machine),
        "the toolchain nightly-2026-04-02; get it: `rustup toolchain install \
         nightly-2026-04-02 --profile minimal --component llvm-tools-preview \
         --component rust-src --component rustc-dev`"
    );
    machine.rustup("rust-src\\nrustc-x86_64-unknown-linux-gnu");
    assert_eq!(
        message_about(&machine),
        "llvm-tools-preview, rustc-dev of nightly-2026-04-02; get it: `rustup component add \
         --toolchain nightly-2026-04-02 llvm-tools-preview rustc-dev`"
    );
}

#[test]
fn another_llvm_is_refused_with_its_version() {
    let machine = Machine::complete();
    machine.llvm("14.0.6", "all nvptx");
    let message = message_about(&machine);
    assert!(
        message.starts_with("LLVM 7 (DIR/llvm-config is LLVM 14.0.6); get it: "),
        "{message}"
    );
    // Not everything that starts with a 7 is 7.
    machine.llvm("70.0.1", "all nvptx");
    assert!(message_about(&machine).contains("is LLVM 70.0.1"));
    machine.llvm("7.0.1", "all x86");
    assert!(message_about(&machine).contains("is LLVM 7.0.1 without the NVPTX target"));
    machine.program("llvm-config", "exit 1");
    assert!(message_about(&machine).contains("DIR/llvm-config fails"));
}

#[test]
fn the_first_llvm_that_will_do_is_taken() {
    let machine = Machine::complete();
    machine.program("newer", "echo 14.0.6");
    let mut search = machine.search();
    search.llvm_configs.insert(0, machine.path("newer"));
    let found = search.run().unwrap();
    assert_eq!(found.llvm_config, machine.path("llvm-config"));
}

#[test]
fn a_cuda_path_that_points_nowhere_or_to_half_a_toolkit_is_refused() {
    let machine = Machine::complete();
    fs::remove_file(machine.path("cuda/nvvm/lib64/libnvvm.so")).unwrap();
    let message = message_about(&machine);
    assert!(
        message.contains("(DIR/cuda has no nvvm/lib64/libnvvm.so)"),
        "{message}"
    );
    machine.cuda("11080");
    assert!(message_about(&machine).contains("(DIR/cuda is CUDA 11.8)"));
    machine.cuda("12020");
    assert_eq!(machine.find().unwrap().cuda_version, (12, 2));
    machine.cuda("unknown");
    assert!(message_about(&machine).contains("has no CUDA_VERSION in include/cuda.h"));
    fs::remove_file(machine.path("cuda/include/cuda.h")).unwrap();
    assert!(message_about(&machine).contains("(DIR/cuda has no include/cuda.h)"));
    fs::remove_dir_all(machine.path("cuda")).unwrap();
    let message = message_about(&machine);
    assert!(message.contains("(DIR/cuda is not there)"), "{message}");
    assert!(message.contains("export CUDA_PATH="), "{message}");
}

#[test]
fn the_library_of_clang_is_not_that_of_its_c_interface() {
    let machine = Machine::complete();
    let library = machine.path("lib/llvm-18/lib/libclang-18.so.18");
    fs::rename(library, machine.path("lib/llvm-18/lib/libclang-cpp.so.18")).unwrap();
    assert!(message_about(&machine).starts_with("libclang; get it: "));
    for name in [
        "libclang.so.18.1",
        "x86_64-linux-gnu/libclang.so",
        "llvm20/lib64/libclang.so.20",
    ] {
        let name = format!("lib/{name}");
        machine.file(&name, "");
        assert!(machine.find().is_ok(), "{name}");
        fs::remove_file(machine.path(&name)).unwrap();
        assert!(machine.find().is_err(), "{name}");
    }
}

/// Runs the script that builds LLVM, with scripts in place of the programs that it runs:
/// `python` is that of `python3`, and CMake has this version.
fn build_llvm(machine: &Machine, python: &str, cmake: &str) -> Output {
    let dir = machine.dir.path().display();
    machine.program("bin/curl", "while [ $1 != -o ]; do shift; done; : > $2");
    machine.program("bin/tar", ":");
    machine.program("bin/ninja", ":");
    machine.program("bin/python", "exit 2");
    machine.program("bin/python3", python);
    let cmake = format!(
        "case $1 in --version) echo cmake version {cmake};; *) printf '%s\\n' \"$@\" >> {dir}/log;; esac"
    );
    machine.program("bin/cmake", &cmake);
    machine.program("prefix/bin/llvm-config", "echo 7.1.0");
    let path = env::join_paths(
        [machine.path("bin")]
            .into_iter()
            .chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    Command::new("sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../rust-cuda/llvm-7.sh"))
        .arg(machine.path("prefix"))
        .env("PATH", path.unwrap())
        .output()
        .unwrap()
}

#[test]
fn cmake_is_told_which_python_to_run() {
    let machine = Machine::complete();
    let output = build_llvm(&machine, "echo /interpreter/python3.12", "3.31.10");
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
fn a_cmake_that_is_too_new_is_told_before_anything_is_built() {
    let machine = Machine::complete();
    let output = build_llvm(&machine, "echo /interpreter/python3.12", "4.4.5");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs CMake 3"));
    assert!(!machine.path("log").exists());
}

#[test]
fn a_python_that_does_not_run_is_told_before_anything_is_built() {
    let machine = Machine::complete();
    let output = build_llvm(&machine, "exit 127", "3.31.10");
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "python3 does not run; LLVM's build needs it\n");
    assert!(!machine.path("log").exists());
}
