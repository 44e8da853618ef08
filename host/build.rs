//! What the library needs before it compiles: an empty `libcuda` to link, and
//! the kernels' PTX to embed.
//!
//! `embedded.rs` in `OUT_DIR` gets a table of (entry point, PTX text), and a
//! digest of it that tells one build of the kernels from another. Without a
//! device toolchain the table is empty and the library computes on the CPU
//! alone; one warning says so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use gpu_kernels::Arch;

fn main() {
    let directory = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let (manifest, out) = (directory("CARGO_MANIFEST_DIR"), directory("OUT_DIR"));

    // Here as well as in `.cargo/config.toml`, so that a crate that depends on
    // this one links.
    let stub = manifest.join("stub/lib64");
    println!("cargo::rustc-link-search=native={}", stub.display());

    println!("cargo::rerun-if-changed=build.rs");
    println!(
        "cargo::rerun-if-changed={}",
        ptx_builder::source_dir().display()
    );
    let toolchain = ptx_builder::toolchain::find();
    let watched = ptx_builder::toolchain::watched(toolchain.as_ref());
    for variable in watched.variables {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for file in watched.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }

    let mut table = String::new();
    let mut digest = Fnv1a::default();
    let version = match &toolchain {
        Ok(toolchain) => {
            let cache = ptx_builder::cache_dir(&out);
            for arch in Arch::ALL {
                let build = ptx_builder::build(toolchain, arch, &cache);
                embed(arch.name(), build, &out, &mut table, &mut digest);
            }
            if env::var_os("CARGO_FEATURE_PROBES").is_some() {
                let build = ptx_builder::build_probes(toolchain, &cache);
                embed("the probes", build, &out, &mut table, &mut digest);
            }
            Some(toolchain.version())
        }
        Err(reason) => {
            println!("cargo::warning=tilewise is built for the CPU alone: {reason}");
            None
        }
    };
    let embedded = format!(
        "pub(super) const TOOLCHAIN: Option<&str> = {version:?};\n\
         pub(super) const PTX: &[(&str, &str)] = &[{table}];\n\
         pub(super) const DIGEST: u64 = {:#x};\n",
        digest.0
    );
    fs::write(out.join("embedded.rs"), embedded).expect("OUT_DIR can be written");
}

/// Writes the programs of `build`, of `what`, into files in `out`, and adds them to
/// `table` and `digest`.
fn embed(
    what: &str,
    build: Result<ptx_builder::Build, ptx_builder::Error>,
    out: &Path,
    table: &mut String,
    digest: &mut Fnv1a,
) {
    let build = match build {
        Ok(build) => build,
        Err(error) => panic!("the kernels for {what} do not compile: {error}"),
    };
    for warning in build.warnings {
        println!("cargo::warning={what}: {warning}");
    }
    for program in build.programs {
        let name = program.kernel.name;
        let file = format!("{name}.ptx");
        digest.add(name);
        digest.add(&program.ptx);
        fs::write(out.join(&file), program.ptx).expect("OUT_DIR can be written");
        write!(
            table,
            "\n    ({name:?}, include_str!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))),"
        )
        .expect("a String takes any text");
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo): the same on every machine and in every
/// release of Rust, which `std`'s hashers do not promise.
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    fn add(&mut self, text: &str) {
        // 0xff is in no UTF-8 text: it ends this one.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
