//! The workspace `rust-cuda/`, as far as it can be checked without rust-cuda and
//! without the network: `cargo metadata` accepts it, and it says what the rest of
//! the project relies on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_kernels::Arch;
use ptx_builder::codegen_units;
use ptx_builder::rust_cuda::{COMPONENTS, REVISION, TOOLCHAIN};
use serde_json::Value;

/// The repository.
fn root() -> PathBuf {
    let builder = Path::new(env!("CARGO_MANIFEST_DIR"));
    builder.parent().unwrap().to_owned()
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// What cargo makes of a workspace's own manifests; no dependency is looked at.
fn metadata(manifest: &str) -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .arg("--manifest-path")
        .arg(root().join(manifest))
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(!messages.contains("warning"), "{messages}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One package of a workspace.
fn package<'a>(metadata: &'a Value, name: &str) -> &'a Value {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().find(|p| p["name"] == name).unwrap()
}

/// One dependency of a package.
fn dependency<'a>(package: &'a Value, name: &str) -> &'a Value {
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies.iter().find(|d| d["name"] == name).unwrap()
}

/// The strings in a piece of TOML, in order.
fn strings(toml: &str) -> Vec<&str> {
    toml.split('"').skip(1).step_by(2).collect()
}

const KERNELS: &str = "tilewise-rust-cuda-kernels";
const BUILDER: &str = "tilewise-rust-cuda-builder";

#[test]
fn it_is_a_workspace_of_its_own() {
    let main = metadata("Cargo.toml");
    let here = metadata("rust-cuda/Cargo.toml");
    let directory = root().join("rust-cuda");
    assert_eq!(here["workspace_root"], directory.to_str().unwrap());
    let names = |metadata: &Value| -> Vec<String> {
        let packages = metadata["packages"].as_array().unwrap();
        packages.iter().map(|p| p["name"].to_string()).collect()
    };
    assert_eq!(names(&here).len(), 2);
    for name in names(&here) {
        assert!(!names(&main).contains(&name), "{name}");
    }
    let root = read("Cargo.toml");
    let exclude = root.lines().find(|line| line.starts_with("exclude = ["));
    assert!(exclude.is_some_and(|line| line.contains("\"rust-cuda\"")));
}

#[test]
fn its_packages_have_the_edition_and_version_of_the_kernels() {
    let main = metadata("Cargo.toml");
    let kernels = package(&main, "gpu-kernels");
    let here = metadata("rust-cuda/Cargo.toml");
    for name in [KERNELS, BUILDER] {
        for key in ["edition", "version", "license"] {
            assert_eq!(package(&here, name)[key], kernels[key], "{name}: {key}");
        }
        assert_eq!(package(&here, name)["publish"], Value::Array(Vec::new()));
    }
}

#[test]
fn rust_cuda_is_pinned_to_the_one_commit_everywhere() {
    let source = format!("git+https://github.com/Rust-GPU/rust-cuda?rev={REVISION}");
    let here = metadata("rust-cuda/Cargo.toml");
    let builder = dependency(package(&here, BUILDER), "cuda_builder");
    assert_eq!(builder["source"], source);
    assert_eq!(builder["features"][0], "rustc_codegen_nvvm");
    let std = dependency(package(&here, KERNELS), "cuda_std");
    assert_eq!(std["source"], source);

    let lock = read("rust-cuda/Cargo.lock");
    let locked = format!("source = \"{source}#{REVISION}\"");
    let from_git = lock.lines().filter(|line| line.contains("git+"));
    let (pinned, others): (Vec<&str>, Vec<&str>) = from_git.partition(|line| *line == locked);
    assert!(pinned.len() >= 5, "{pinned:?}");
    assert!(others.is_empty(), "{others:?}");
    assert!(
        !read("Cargo.lock").contains("git+"),
        "the main lock file has a git dependency"
    );
}

#[test]
fn the_documents_name_the_same_commit_and_toolchain() {
    let text = read("docs/rust-cuda.md");
    for part in [REVISION, TOOLCHAIN] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn its_lock_file_is_up_to_date() {
    // `--locked` builds fail otherwise.
    let lock = read("rust-cuda/Cargo.lock");
    let here = metadata("rust-cuda/Cargo.toml");
    let main = metadata("Cargo.toml");
    for (package, dependencies) in [
        (package(&here, KERNELS), vec!["cuda_std", "gpu-kernels"]),
        (package(&here, BUILDER), vec!["cuda_builder"]),
        (package(&main, "gpu-kernels"), vec![]),
    ] {
        let (name, version) = (package["name"].as_str(), package["version"].as_str());
        let mut entry = format!(
            "[[package]]\nname = \"{}\"\nversion = \"{}\"\n",
            name.unwrap(),
            version.unwrap()
        );
        if !dependencies.is_empty() {
            let lines = dependencies.iter().map(|name| format!(" \"{name}\",\n"));
            entry += &format!("dependencies = [\n{}]\n", lines.collect::<String>());
        }
        assert!(
            lock.contains(&format!("{entry}\n")),
            "not in the lock file:\n{entry}"
        );
    }
}

#[test]
fn the_kernels_are_the_one_list_under_cuda_stds_attribute() {
    let here = metadata("rust-cuda/Cargo.toml");
    let kernels = package(&here, KERNELS);
    assert_eq!(
        kernels["targets"][0]["crate_types"],
        serde_json::json!(["cdylib", "rlib"])
    );
    for arch in Arch::ALL {
        let units = codegen_units(arch);
        let of_arch = &kernels["features"][arch.name()];
        match units[..] {
            [unit] => assert_eq!(unit, arch.name()),
            _ => assert_eq!(*of_arch, serde_json::json!(units)),
        }
        for unit in units {
            for package in [kernels, package(&metadata("Cargo.toml"), "gpu-kernels")] {
                assert_eq!(package["features"][unit], Value::Array(Vec::new()));
            }
        }
    }
    // Two panic handlers do not link.
    let dependency = dependency(kernels, "gpu-kernels");
    assert_eq!(dependency["uses_default_features"], false);
    assert_eq!(dependency["features"], Value::Array(Vec::new()));
    assert_eq!(
        dependency["path"],
        root().join("gpu-kernels").to_str().unwrap()
    );

    let source = read("rust-cuda/kernels/src/lib.rs");
    let code: Vec<&str> = source
        .lines()
        .filter(|line| !line.starts_with("//") && !line.is_empty())
        .collect();
    // The attribute without arguments: rust-cuda ignores them.
    assert_eq!(
        code,
        ["gpu_kernels::define_entry_points!(#[cuda_std::kernel] extern \"C\");"]
    );
}

#[test]
fn the_builder_knows_every_target() {
    let source = read("rust-cuda/builder/src/main.rs");
    for arch in Arch::ALL {
        let compute = arch.name().replace("sm_", "Compute");
        let line = format!("\"{}\" => NvvmArch::{compute},", arch.name());
        assert!(source.contains(&line), "{line}");
    }
}

#[test]
fn no_flag_and_no_profile_is_one_that_rust_cuda_cannot_take() {
    let manifest = read("rust-cuda/Cargo.toml");
    let builder = read("rust-cuda/builder/src/main.rs");
    // Fat LTO is a `todo!()` there, and unknown LLVM arguments a panic.
    let lto: Vec<&str> = manifest
        .lines()
        .filter(|line| line.starts_with("lto"))
        .collect();
    assert_eq!(lto, ["lto = \"off\""]);
    for text in [&manifest, &builder] {
        assert!(!text.contains("llvm-args"));
    }
    // Unoptimised device code and its debug information crash the code generator.
    for option in [".release(false)", ".debug("] {
        assert!(!builder.contains(option), "{option}");
    }
}

#[test]
fn the_toolchain_file_and_the_search_agree() {
    let file = read("rust-cuda/rust-toolchain.toml");
    let value = |key: &str| {
        file.lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap()
    };
    assert_eq!(strings(value("channel")), [TOOLCHAIN]);
    let components = strings(value("components"));
    for component in COMPONENTS {
        assert!(components.contains(&component), "{component}");
    }
}
