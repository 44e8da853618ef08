//! Prepares the build of the library: the kernels' PTX to embed and, with the feature `cust`,
//! an empty `libcuda` to link.
//!
//! `embedded.rs` in `OUT_DIR` gets the compressed PTX in groups of kernels
//! (`ptx_builder::group`), a table of where each kernel's is, a digest of the PTX that tells one
//! build of the kernels from another, and the name of the code generator that made them
//! (`TILEWISE_CODEGEN` chooses it). In the repository, the kernels are compiled from source. A
//! package of this crate carries their PTX (`ptx_builder::prebuilt`), so that building it needs no
//! device toolchain. Without either, the table is empty and the library computes on the CPU alone;
//! it knows the reason, and a warning says it.

use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fnv::FnvHasher;
use gpu_kernels::Arch;
use ptx_builder::group::{self, Group};
use ptx_builder::{
    Build, Codegen, Error, Generator, GeneratorChoice, NoToolchain, Program, generator, prebuilt,
    toolchain,
};

fn main() {
    let directory = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let (manifest, out) = (directory("CARGO_MANIFEST_DIR"), directory("OUT_DIR"));

    if env::var_os("CARGO_FEATURE_CUST").is_some() {
        // `.cargo/config.toml` has cust_raw find it, but does not apply to crates that
        // depend on this one.
        let stub = manifest.join("stub/lib64");
        println!("cargo::rustc-link-search=native={}", stub.display());
    }

    println!("cargo::rerun-if-changed=build.rs");
    let embedded = if is_in_repository(&manifest) {
        compiled(&out)
    } else {
        packaged(&manifest.join("prebuilt"), &out)
    };
    if let Some(reason) = &embedded.without_kernels {
        println!("cargo::warning=tilewise is built for the CPU alone: {reason}");
    }
    fs::write(out.join("embedded.rs"), embedded.source()).expect("OUT_DIR can be written");
}

/// Whether this crate lies in its repository, with the sources of the kernels and the release
/// of the compiler that they are compiled with.
fn is_in_repository(manifest: &Path) -> bool {
    ["../gpu-kernels/src/lib.rs", "../rust-toolchain.toml"]
        .iter()
        .all(|file| manifest.join(file).is_file())
}

/// The kernels that this package carries in `dir`.
fn packaged(dir: &Path, out: &Path) -> Embedded {
    println!("cargo::rerun-if-env-changed={}", toolchain::PTX);
    if toolchain::is_skipped() {
        return Embedded::without_kernels(NoToolchain::Skipped.to_string());
    }
    if !dir.is_dir() {
        let reason = "this package was made without the PTX that `cargo xtask package` adds";
        return Embedded::without_kernels(reason.into());
    }
    println!("cargo::rerun-if-changed={}", dir.display());
    let prebuilt = prebuilt::read(dir).unwrap_or_else(|error| panic!("{error}"));
    let mut embedded = Embedded {
        generator: "Some(CodeGenerator::RustcNvptx)",
        toolchain: Some(prebuilt.compiler),
        ..Embedded::default()
    };
    for kernel in prebuilt.kernels {
        embedded.digest(kernel.name, &kernel.ptx);
    }
    embedded.add(prebuilt.groups, out);
    if wants_probes() {
        println!("cargo::warning=built without the probes, which packages do not carry");
    }
    embedded
}

/// The kernels, compiled from source.
fn compiled(out: &Path) -> Embedded {
    let chosen = Codegen::from_env()
        .map_err(Error::from)
        .and_then(generator::choose);
    let watched = generator::watched(chosen.as_ref());
    for variable in watched.variables {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for file in watched.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    match chosen {
        Ok(choice) => kernels(choice, out),
        Err(Error::NoToolchain(reason)) => Embedded::without_kernels(reason.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Whether the feature for the probes is on.
fn wants_probes() -> bool {
    env::var_os("CARGO_FEATURE_PROBES").is_some()
}

/// The contents of `embedded.rs`.
struct Embedded {
    /// The code generator that made the kernels, as Rust.
    generator: &'static str,
    /// Its version.
    toolchain: Option<String>,
    /// Why there are no kernels.
    without_kernels: Option<String>,
    /// The groups: each line has a file in `OUT_DIR`.
    groups: String,
    /// Number of groups.
    count: usize,
    /// The table: each line has an entry point, and where its PTX is.
    table: String,
    /// The digest of the names and the PTX, by FNV-1a (Fowler, Noll and Vo). It is the same
    /// on every machine and in every release of Rust, which `std`'s hashers do not promise.
    digest: FnvHasher,
}

impl Default for Embedded {
    fn default() -> Self {
        Embedded {
            generator: "None",
            toolchain: None,
            without_kernels: None,
            groups: String::new(),
            count: 0,
            table: String::new(),
            digest: FnvHasher::default(),
        }
    }
}

impl Embedded {
    fn without_kernels(reason: String) -> Self {
        Embedded {
            without_kernels: Some(reason),
            ..Embedded::default()
        }
    }

    fn compiled_by(generator: &Generator) -> Self {
        Embedded {
            generator: match generator {
                Generator::Rustc(_) => "Some(CodeGenerator::RustcNvptx)",
                Generator::RustCuda(_) => "Some(CodeGenerator::RustCuda)",
            },
            toolchain: Some(generator.version()),
            ..Embedded::default()
        }
    }

    /// The text of `embedded.rs`.
    fn source(&self) -> String {
        format!(
            "pub(super) const CODE_GENERATOR: Option<CodeGenerator> = {};\n\
             pub(super) const TOOLCHAIN: Option<&str> = {:?};\n\
             pub(super) const WITHOUT_KERNELS: Option<&str> = {:?};\n\
             pub(super) const GROUPS: &[&[u8]] = &[{}];\n\
             pub(super) const PTX: &[Text] = &[{}];\n\
             pub(super) const DIGEST: u64 = {:#x};\n",
            self.generator,
            self.toolchain,
            self.without_kernels,
            self.groups,
            self.table,
            self.digest.finish()
        )
    }

    /// Writes the programs of `build` into files in `out`, and adds them. `what` names them.
    fn add_all(&mut self, what: &str, build: Build, out: &Path) -> Result<(), Error> {
        for warning in build.warnings {
            println!("cargo::warning={what}: {warning}");
        }
        for Program { kernel, ptx } in &build.programs {
            self.digest(kernel.name, ptx);
        }
        // Builds with other features or profiles embed the same PTX.
        let cache = ptx_builder::cache_dir(out);
        self.add(group::compress(&build.programs, Some(&cache))?, out);
        Ok(())
    }

    /// Adds the PTX of kernel `name` to the digest.
    fn digest(&mut self, name: &str, ptx: &str) {
        for text in [name, ptx] {
            self.digest.write(text.as_bytes());
            // 0xff never occurs in UTF-8 text, so it marks the end of a text.
            self.digest.write(&[0xff]);
        }
    }

    /// Writes `groups` into files in `out`, and adds them.
    fn add(&mut self, groups: Vec<Group>, out: &Path) {
        for group in groups {
            let file = group::file_name(&group.name);
            fs::write(out.join(&file), group.compressed).expect("OUT_DIR can be written");
            write!(
                self.groups,
                "\n    include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")),"
            )
            .expect("a String takes any text");
            for (kernel, range) in group.kernels {
                write!(
                    self.table,
                    "\n    Text {{ kernel: {kernel:?}, group: {}, start: {}, bytes: {} }},",
                    self.count,
                    range.start,
                    range.len()
                )
                .expect("a String takes any text");
            }
            self.count += 1;
        }
    }
}

/// Compiles all kernels into files in `out`.
fn kernels(mut choice: GeneratorChoice, out: &Path) -> Embedded {
    loop {
        let error = match embed(&choice.generator, out) {
            Ok(embedded) => return embedded,
            Err(error) => error,
        };
        choice = match choice.after(error) {
            Ok(next) => next,
            Err(error) => panic!("the kernels do not compile: {error}"),
        };
        println!("cargo::warning=kernels by rustc, because {}", choice.reason);
    }
}

/// Compiles all kernels with one code generator.
fn embed(generator: &Generator, out: &Path) -> Result<Embedded, Error> {
    let mut embedded = Embedded::compiled_by(generator);
    let cache = ptx_builder::cache_dir(out);
    for arch in Arch::ALL {
        let build = ptx_builder::build(generator, arch, &cache)?;
        embedded.add_all(arch.name(), build, out)?;
    }
    if wants_probes() {
        match generator {
            Generator::Rustc(toolchain) => {
                let build = ptx_builder::build_probes(toolchain, &cache)?;
                embedded.add_all("the probes", build, out)?;
            }
            Generator::RustCuda(_) => {
                println!("cargo::warning=built without the probes, which rustc compiles");
            }
        }
    }
    Ok(embedded)
}
