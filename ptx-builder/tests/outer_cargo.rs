//! The cargo that builds tilewise runs ptx-builder in a build script, and must not
//! reach through it into the nested cargos. The programs in their place here write
//! down the environment that they get.

mod fake;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use fake::{COMPONENTS, Machine};
use gpu_kernels::Arch;
use ptx_builder::toolchain::{CoreLibrary, Toolchain};
use ptx_builder::{Error, Generator};

/// Set where a test runs as a build script would: the folder of its stand-ins.
const INSIDE: &str = "PTX_BUILDER_TEST_FOLDER";

/// What cargo sets for a build script ("Environment variables Cargo sets for build
/// scripts" in its book), less what every cargo sets anew for what it runs.
const OF_A_BUILD_SCRIPT: [(&str, &str); 22] = [
    ("CARGO_CFG_TARGET_OS", "linux"),
    ("CARGO_ENCODED_RUSTFLAGS", "-Cdebuginfo=2"),
    ("CARGO_FEATURE_PROBES", "1"),
    ("CARGO_MANIFEST_DIR", "/outer/host"),
    ("CARGO_MANIFEST_LINKS", "outer"),
    ("CARGO_PKG_NAME", "tilewise"),
    ("CARGO_TARGET_DIR", "/outer/target"),
    ("DEBUG", "true"),
    ("DEP_CUDA_ROOT", "/outer/cuda"),
    ("HOST", "x86_64-unknown-linux-gnu"),
    ("NUM_JOBS", "2"),
    ("OPT_LEVEL", "0"),
    ("OUT_DIR", "/outer/target/debug/build/tilewise-0/out"),
    ("PROFILE", "debug"),
    ("RUSTC", "/outer/rustc"),
    ("RUSTC_LINKER", "/outer/cc"),
    ("RUSTC_WORKSPACE_WRAPPER", "/outer/clippy-driver"),
    ("RUSTC_WRAPPER", "/outer/sccache"),
    ("RUSTDOC", "/outer/rustdoc"),
    ("RUSTDOCFLAGS", "--cfg outer"),
    ("RUSTFLAGS", "--cfg outer"),
    ("TARGET", "x86_64-unknown-linux-gnu"),
];

/// Runs the test `name` of this file once more, as a build script of a cargo whose
/// target directory is `outer/target` in `folder`.
fn run_as_a_build_script(name: &str, folder: &Path) {
    let target = folder.join("outer/target");
    let libraries = [
        target.join("debug/deps"),
        folder.join("outer/compiler/lib"),
        folder.join("of-the-user"),
    ];
    for dir in &libraries {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
    fs::write(libraries[1].join("libstd-0123456789abcdef.so"), "").unwrap();
    let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = libraries.into_iter().chain(env::split_paths(&inherited));
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name])
        .envs(OF_A_BUILD_SCRIPT)
        .env("CARGO", folder.join("cargo"))
        .env("CARGO_MAKEFLAGS", "-j2")
        .env("LD_LIBRARY_PATH", env::join_paths(libraries).unwrap())
        .env(INSIDE, folder)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("1 passed"), "{messages}");
}

/// The environment that a stand-in has written down in `file`.
fn environment(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Fails where `environment` has anything of the outer cargo, but for what the nested
/// one is given itself, `given`.
fn assert_clean(environment: &BTreeMap<String, String>, given: &[&str], folder: &Path) {
    let names = OF_A_BUILD_SCRIPT.iter().map(|&(name, _)| name);
    for name in names.chain(["CARGO"]) {
        let value = environment.get(name);
        if given.contains(&name) {
            assert!(!value.unwrap().contains("outer"), "{name}: {value:?}");
        } else {
            assert_eq!(value, None, "{name}");
        }
    }
    assert_eq!(environment["CARGO_MAKEFLAGS"], "-j2");
    let libraries = &environment["LD_LIBRARY_PATH"];
    assert!(!libraries.contains("/outer/"), "{libraries}");
    let own = folder.join("of-the-user");
    assert!(env::split_paths(libraries).any(|dir| dir == own));
}

#[test]
fn rust_cudas_cargo_gets_nothing_of_the_outer_one() {
    if let Some(folder) = env::var_os(INSIDE) {
        let folder = Path::new(&folder);
        let machine = Machine::complete();
        machine.file("rust-cuda/Cargo.lock", "");
        let log = folder.join("environment");
        let script = format!("env > {}; exit 1", log.display());
        machine.rustup_that_runs(COMPONENTS, &script);
        let rust_cuda = machine.find().unwrap();
        let cache = machine.path("cache");
        let given = ["CARGO_TARGET_DIR"];

        let generator = Generator::RustCuda(rust_cuda.clone());
        let error = ptx_builder::build(&generator, Arch::Sm75, &cache).unwrap_err();
        assert!(matches!(error, Error::RustCudaBuild { .. }), "{error}");
        let compiling = environment(&log);
        assert_clean(&compiling, &given, folder);

        // The same when the code generator is built first: else it would be built twice.
        fs::remove_file(&log).unwrap();
        let error = ptx_builder::rust_cuda::prepare(&rust_cuda, &cache).unwrap_err();
        assert!(matches!(error, Error::RustCudaGenerator), "{error}");
        assert_eq!(environment(&log), compiling);
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    run_as_a_build_script(
        "rust_cudas_cargo_gets_nothing_of_the_outer_one",
        folder.path(),
    );
}

#[test]
fn rustcs_cargo_gets_nothing_of_the_outer_one() {
    if let Some(folder) = env::var_os(INSIDE) {
        let folder = Path::new(&folder);
        let toolchain = Toolchain {
            rustc: "/device/rustc".into(),
            verbose_version: "rustc 1.95.0".into(),
            core: CoreLibrary::Compiled,
        };
        let generator = Generator::Rustc(toolchain);
        let cache = folder.join("cache");
        let error = ptx_builder::build(&generator, Arch::Sm75, &cache).unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        let given = [
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTC_WRAPPER",
        ];
        let environment = environment(&folder.join("environment"));
        assert_clean(&environment, &given, folder);
        assert_eq!(environment["RUSTC"], "/device/rustc");
        return;
    }
    let machine = Machine::complete();
    let folder = machine.dir.path();
    let log = folder.join("environment");
    machine.program("cargo", &format!("env > {}; exit 1", log.display()));
    run_as_a_build_script("rustcs_cargo_gets_nothing_of_the_outer_one", folder);
}
