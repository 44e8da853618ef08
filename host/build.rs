//! Prepares the build of the library: the kernels' PTX to embed and, with the feature `cust`,
//! an empty `libcuda` to link.
//!
//! `embedded.rs` in `OUT_DIR` gets a table of (entry point, compressed PTX), a digest
//! of the PTX that tells one build of the kernels from another, and the name of the
//! code generator that made them (`TILEWISE_CODEGEN` chooses it). Without a device
//! toolchain the table is empty and the library computes on the CPU alone; one
//! warning says so.
//!
//! PTX is repetitive text: raw DEFLATE with one stream per kernel compresses the kernels'
//! 12 MB to 2.4 MB, and decompressing one kernel takes 0.2 ms.

use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fnv::FnvHasher;
use gpu_kernels::Arch;
use miniz_oxide::deflate::compress_to_vec;
use ptx_builder::{Build, Codegen, Error, Generator, GeneratorChoice, generator};

/// The compression level, of zlib's levels 0 to 9. Higher levels take longer and save
/// less than 1 %.
const COMPRESSION: u8 = 6;

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
    let embedded = match chosen {
        Ok(choice) => kernels(choice, &out),
        Err(Error::NoToolchain(reason)) => {
            println!("cargo::warning=tilewise is built for the CPU alone: {reason}");
            Embedded::default()
        }
        Err(error) => panic!("{error}"),
    };
    fs::write(out.join("embedded.rs"), embedded.source()).expect("OUT_DIR can be written");
}

/// The contents of `embedded.rs`.
#[derive(Default)]
struct Embedded {
    /// The code generator that made the kernels.
    generator: Option<Generator>,
    /// The table: each line has an entry point and a file in `OUT_DIR`.
    table: String,
    /// The digest of the names and the PTX, by FNV-1a (Fowler, Noll and Vo). It is the same
    /// on every machine and in every release of Rust, which `std`'s hashers do not promise.
    digest: FnvHasher,
}

impl Embedded {
    /// The text of `embedded.rs`.
    fn source(&self) -> String {
        let name = match self.generator {
            None => "None",
            Some(Generator::Rustc(_)) => "Some(CodeGenerator::RustcNvptx)",
            Some(Generator::RustCuda(_)) => "Some(CodeGenerator::RustCuda)",
        };
        let version = self.generator.as_ref().map(Generator::version);
        format!(
            "pub(super) const CODE_GENERATOR: Option<CodeGenerator> = {name};\n\
             pub(super) const TOOLCHAIN: Option<&str> = {version:?};\n\
             pub(super) const PTX: &[(&str, &[u8])] = &[{}];\n\
             pub(super) const DIGEST: u64 = {:#x};\n",
            self.table,
            self.digest.finish()
        )
    }

    /// Writes the programs of `build` into files in `out`, and adds them. `what` names them.
    fn add(&mut self, what: &str, build: Build, out: &Path) {
        for warning in build.warnings {
            println!("cargo::warning={what}: {warning}");
        }
        for program in build.programs {
            let name = program.kernel.name;
            let file = format!("{name}.ptx.deflate");
            for text in [name, &program.ptx] {
                self.digest.write(text.as_bytes());
                // 0xff never occurs in UTF-8 text, so it marks the end of a text.
                self.digest.write(&[0xff]);
            }
            let compressed = compress_to_vec(program.ptx.as_bytes(), COMPRESSION);
            fs::write(out.join(&file), compressed).expect("OUT_DIR can be written");
            write!(
                self.table,
                "\n    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))),"
            )
            .expect("a String takes any text");
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
    let mut embedded = Embedded {
        generator: Some(generator.clone()),
        ..Embedded::default()
    };
    let cache = ptx_builder::cache_dir(out);
    for arch in Arch::ALL {
        let build = ptx_builder::build(generator, arch, &cache)?;
        embedded.add(arch.name(), build, out);
    }
    if env::var_os("CARGO_FEATURE_PROBES").is_some() {
        match generator {
            Generator::Rustc(toolchain) => {
                embedded.add(
                    "the probes",
                    ptx_builder::build_probes(toolchain, &cache)?,
                    out,
                );
            }
            Generator::RustCuda(_) => {
                println!("cargo::warning=built without the probes, which rustc compiles");
            }
        }
    }
    Ok(embedded)
}
