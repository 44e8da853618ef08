//! Each prerequisite of rust-cuda that is missing is found, and its message says
//! how to get it. The programs and folders looked at here are fakes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ptx_builder::rust_cuda::{Missing, RustCuda, Search};
use tempfile::TempDir;

/// One test at a time: a script that is being written while another test starts a
/// program cannot be run (ETXTBSY).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A machine that has everything; each test takes something away.
struct Machine {
    dir: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    fn complete() -> Self {
        let machine = Machine {
            _turn: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner),
            dir: TempDir::new().unwrap(),
        };
        machine.file("rust-cuda/Cargo.toml", "[workspace]\n");
        machine.rustup(
            "rust-src\\nrustc-dev-x86_64-unknown-linux-gnu\\nllvm-tools-x86_64-unknown-linux-gnu",
        );
        machine.llvm("7.1.0", "all ipo nvptx nvptxcodegen x86");
        machine.cuda("13000");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program: a script for `sh`.
    fn program(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A rustup that has one toolchain, with these components.
    fn rustup(&self, components: &str) {
        let script = format!(
            "[ \"$*\" = 'component list --installed --toolchain nightly-2026-04-02' ] || exit 2\n\
             [ \"$RUSTUP_AUTO_INSTALL\" = 0 ] || exit 3\n\
             printf '{components}\\n'"
        );
        self.program("rustup", &script);
    }

    fn llvm(&self, version: &str, components: &str) {
        let script = format!(
            "case $1 in --version) echo {version} ;; --components) echo {components} ;; esac"
        );
        self.program("llvm-config", &script);
    }

    fn cuda(&self, version: &str) {
        let header = format!("#ifndef X\n#define CUDA_VERSION {version}\n#endif\n");
        self.file("cuda/include/cuda.h", &header);
        for file in [
            "include/cuda_runtime_api.h",
            "nvvm/include/nvvm.h",
            "nvvm/lib64/libnvvm.so",
            "nvvm/libdevice/libdevice.10.bc",
        ] {
            self.file(&format!("cuda/{file}"), "");
        }
    }

    fn search(&self) -> Search {
        Search {
            workspace: self.path("rust-cuda"),
            rustup: self.path("rustup"),
            llvm_configs: vec![self.path("llvm-config")],
            cuda_roots: vec![self.path("cuda")],
        }
    }

    fn find(&self) -> Result<RustCuda, Vec<Missing>> {
        self.search().run()
    }

    /// The message about the one thing that is missing, with the fakes' folder as `DIR`.
    fn message(&self) -> String {
        let missing = self.find().unwrap_err();
        assert_eq!(missing.len(), 1, "{missing:?}");
        let dir = self.dir.path().display().to_string();
        missing[0].to_string().replace(&dir, "DIR")
    }
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
    };
    let missing = search.run().unwrap_err();
    let messages: Vec<String> = missing.iter().map(Missing::to_string).collect();
    assert_eq!(
        messages,
        [
            "the workspace rust-cuda/: no Cargo.toml in /nowhere/rust-cuda; \
             a clone of tilewise's repository has it",
            "rustup: `/nowhere/rustup` does not run; get it from https://rustup.rs",
            "LLVM 7 (/nowhere/llvm-config-7 does not run; /nowhere/llvm-config does not run); \
             get it: `sudo sh rust-cuda/llvm-7.sh /opt/llvm-7` builds it, \
             then `export LLVM_CONFIG=/opt/llvm-7/bin/llvm-config`",
            "a CUDA toolkit with libNVVM, 12.2 or newer (/nowhere/cuda has no include/cuda.h); \
             get it: https://developer.nvidia.com/cuda-downloads, \
             then `export CUDA_PATH=/usr/local/cuda`",
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
        machine.message(),
        "the toolchain nightly-2026-04-02; get it: `rustup toolchain install \
         nightly-2026-04-02 --profile minimal --component llvm-tools-preview \
         --component rust-src --component rustc-dev`"
    );
    machine.rustup("rust-src\\nrustc-x86_64-unknown-linux-gnu");
    assert_eq!(
        machine.message(),
        "llvm-tools-preview, rustc-dev of nightly-2026-04-02; get it: `rustup component add \
         --toolchain nightly-2026-04-02 llvm-tools-preview rustc-dev`"
    );
}

#[test]
fn another_llvm_is_refused_with_its_version() {
    let machine = Machine::complete();
    machine.llvm("14.0.6", "all nvptx");
    let message = machine.message();
    assert!(
        message.starts_with("LLVM 7 (DIR/llvm-config is LLVM 14.0.6); get it: "),
        "{message}"
    );
    // Not everything that starts with a 7 is 7.
    machine.llvm("70.0.1", "all nvptx");
    assert!(machine.message().contains("is LLVM 70.0.1"));
    machine.llvm("7.0.1", "all x86");
    assert!(
        machine
            .message()
            .contains("is LLVM 7.0.1 without the NVPTX target")
    );
    machine.program("llvm-config", "exit 1");
    assert!(machine.message().contains("DIR/llvm-config fails"));
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
    let message = machine.message();
    assert!(
        message.contains("(DIR/cuda has no nvvm/lib64/libnvvm.so)"),
        "{message}"
    );
    machine.cuda("11080");
    assert!(machine.message().contains("(DIR/cuda is CUDA 11.8)"));
    machine.cuda("12020");
    assert_eq!(machine.find().unwrap().cuda_version, (12, 2));
    machine.cuda("unknown");
    assert!(
        machine
            .message()
            .contains("has no CUDA_VERSION in include/cuda.h")
    );
    fs::remove_dir_all(machine.path("cuda")).unwrap();
    let message = machine.message();
    assert!(
        message.contains("(DIR/cuda has no include/cuda.h)"),
        "{message}"
    );
    assert!(message.contains("export CUDA_PATH="), "{message}");
}
