//! A machine with rust-cuda, made of scripts and empty files, for the tests that
//! look for it and run it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ptx_builder::rust_cuda::{Missing, RustCuda, Search};
use tempfile::TempDir;

/// What rustup lists of a complete toolchain; lines for `printf`.
pub const COMPONENTS: &str =
    "rust-src\\nrustc-dev-x86_64-unknown-linux-gnu\\nllvm-tools-x86_64-unknown-linux-gnu";

/// One test at a time: a script that is being written while another test starts a
/// program cannot be run (ETXTBSY).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// It has everything; each test takes something away or puts another in its place.
pub struct Machine {
    pub dir: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    pub fn complete() -> Self {
        let machine = Machine {
            _turn: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner),
            dir: TempDir::new().unwrap(),
        };
        machine.file("rust-cuda/Cargo.toml", "[workspace]\n");
        machine.rustup(COMPONENTS);
        machine.file("lib/llvm-18/lib/libclang-18.so.18", "");
        machine.llvm("7.1.0", "all ipo nvptx nvptxcodegen x86");
        machine.cuda("13000");
        machine
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program: a script for `sh`.
    pub fn program(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A rustup that has one toolchain, with these components.
    pub fn rustup(&self, components: &str) {
        self.rustup_that_runs(components, "exit 4");
    }

    /// The same; `script` is what `rustup run TOOLCHAIN …` does.
    pub fn rustup_that_runs(&self, components: &str, script: &str) {
        let script = format!(
            "case \"$*\" in\n\
             'component list --installed --toolchain nightly-2026-04-02')\n\
             [ \"$RUSTUP_AUTO_INSTALL\" = 0 ] || exit 3\n\
             printf '{components}\\n' ;;\n\
             'run nightly-2026-04-02 '*) shift 2\n{script} ;;\n\
             *) exit 2 ;;\n\
             esac"
        );
        self.program("rustup", &script);
    }

    pub fn llvm(&self, version: &str, components: &str) {
        let script = format!(
            "case $1 in --version) echo {version} ;; --components) echo {components} ;; esac"
        );
        self.program("llvm-config", &script);
    }

    pub fn cuda(&self, version: &str) {
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

    pub fn search(&self) -> Search {
        Search {
            workspace: self.path("rust-cuda"),
            rustup: self.path("rustup"),
            llvm_configs: vec![self.path("llvm-config")],
            cuda_roots: vec![self.path("cuda")],
            libclang_dirs: vec![self.path("lib")],
        }
    }

    pub fn find(&self) -> Result<RustCuda, Vec<Missing>> {
        self.search().run()
    }
}
