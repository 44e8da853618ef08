//! A crate that depends on the packages, outside the workspace and with nothing set.
//!
//! It is built in a new folder, with an empty home and target directory and none of the
//! variables of this process, and cannot find a device toolchain. The crates of other
//! projects are vendored before, because an empty home knows no registry but crates.io,
//! which a machine may reach in another way.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use gpu_kernels::Arch;
use gpu_kernels::entry::ENTRIES;
use ptx_builder::{prebuilt, toolchain};

use super::{
    Kernels, LIBRARY, PACKAGES, PREBUILT, VERSION, compile_for, make, package_file, refuse_others,
    unpack,
};
use crate::project;

/// The target that is compiled anew, to see that another folder gives the same PTX. It is the
/// one with the fewest kernels.
const COMPILED_ANEW: Arch = Arch::Sm75;

/// The program: what the library says of itself, and a product.
const MAIN: &str = r#"
use tilewise::{Device, build_info};

fn main() -> Result<(), tilewise::Error> {
    let build = build_info();
    println!("compiler {}", build.toolchain.unwrap_or("none"));
    for (arch, kernels) in build.kernels {
        println!("{} {kernels}", arch.name());
    }
    let device = Device::cpu();
    let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
    println!("product {:?}", device.matmul(&a, &a)?.to_vec()?);
    Ok(())
}
"#;

/// The configuration by which cargo takes other crates from the folder that `cargo vendor`
/// fills.
const VENDORED: &str = r#"
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "vendor"
"#;

/// Makes the packages and tries them.
pub fn test() -> Result<()> {
    let kernels = Kernels::compile()?;
    make(&kernels)?;
    let folder = tempfile::tempdir()?;
    let packages = folder.path().join("packages");
    fs::create_dir(&packages)?;
    for name in PACKAGES {
        unpack(&package_file(name)?, &packages)?;
    }

    let carried = packages.join(directory(LIBRARY)).join(PREBUILT);
    kernels.compare(&carried)?;
    let anew = compile_for(
        &kernels.toolchain,
        COMPILED_ANEW,
        &folder.path().join("ptx"),
    )?;
    refuse_others(&prebuilt::read(&carried)?, &anew)?;
    println!(
        "{} kernels compiled anew for {} have the same PTX",
        anew.len(),
        COMPILED_ANEW.name()
    );

    let dependent = write_dependent(folder.path())?;
    let printed = build_and_run(&dependent, folder.path())?;
    let expected = expected(&kernels);
    if printed != expected {
        bail!("the dependent prints\n{printed}and not\n{expected}");
    }
    print!("{printed}");
    Ok(())
}

/// The folder that a package is unpacked into.
fn directory(package: &str) -> String {
    format!("{package}-{VERSION}")
}

/// What the program prints.
fn expected(kernels: &Kernels) -> String {
    let mut counts: BTreeMap<Arch, usize> = BTreeMap::new();
    for kernel in ENTRIES {
        *counts.entry(kernel.arch).or_default() += 1;
    }
    let counts = counts
        .iter()
        .map(|(arch, count)| format!("{} {count}\n", arch.name()));
    format!(
        "compiler {}\n{}product [7.0, 10.0, 15.0, 22.0]\n",
        kernels.toolchain.version(),
        counts.collect::<String>()
    )
}

/// Writes the crate, with the versions of this workspace's lock file and their sources.
fn write_dependent(folder: &Path) -> Result<PathBuf> {
    let dependent = folder.join("dependent");
    fs::create_dir_all(dependent.join("src"))?;
    fs::create_dir_all(dependent.join(".cargo"))?;
    fs::write(dependent.join("src/main.rs"), MAIN)?;
    fs::write(dependent.join("Cargo.toml"), manifest())?;
    fs::copy(
        project::root().join("Cargo.lock"),
        dependent.join("Cargo.lock"),
    )?;
    let mut vendor = project::cargo();
    project::run(vendor.args(["vendor", "--quiet"]).current_dir(&dependent))?;
    fs::write(dependent.join(".cargo/config.toml"), VENDORED)?;
    let lock = fs::read_to_string(dependent.join("Cargo.lock"))?;
    if lock.contains("\"cust_raw\"") {
        bail!("the dependent would compile cust_raw, whose build needs a CUDA library");
    }
    Ok(dependent)
}

/// The manifest of the crate, which depends on every package, so that each is built. The
/// packages' own dependencies on each other are those of a registry, which has them when they
/// are published.
fn manifest() -> String {
    let path = |name| {
        format!(
            "{name} = {{ path = \"../packages/{}\" }}\n",
            directory(name)
        )
    };
    let packages: String = PACKAGES.into_iter().map(path).collect();
    format!(
        "[package]\nname = \"dependent\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{packages}\n[patch.crates-io]\n{packages}\n[workspace]\n"
    )
}

/// Builds and runs the crate, and returns what it prints.
fn build_and_run(dependent: &Path, folder: &Path) -> Result<String> {
    let bin = sysroot()?.join("bin");
    let home = folder.join("home");
    fs::create_dir(&home)?;
    // The compiler itself, for rustup's proxy needs a home; and the linker.
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths = env::join_paths([bin.clone()].into_iter().chain(env::split_paths(&paths)))?;
    let mut cargo = Command::new(bin.join("cargo"));
    cargo
        .current_dir(dependent)
        .env_clear()
        .env("PATH", paths)
        .env("HOME", &home)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        // A build that looks for a device toolchain finds none.
        .env(toolchain::DEVICE_RUSTC, "/no/device/toolchain")
        .args(["run", "--quiet", "--offline"])
        .stderr(Stdio::inherit());
    println!("$ {}", project::typed(&cargo));
    let output = cargo.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the dependent does not build, or fails");
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The folder of the compiler in use.
fn sysroot() -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(rustc);
    let output = rustc
        .current_dir(project::root())
        .args(["--print", "sysroot"])
        .output()?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
}
