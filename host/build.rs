//! Link search for the empty `libcuda`, and the PTX the library embeds.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    // Here too, so that a crate that depends on this one links.
    println!(
        "cargo:rustc-link-search=native={}",
        manifest.join("stub/lib64").display()
    );
    println!("cargo:rerun-if-changed=build.rs");
    fs::write(
        out.join("embedded.rs"),
        "pub const TOOLCHAIN: Option<&str> = None;\npub const PTX: &[(&str, &str)] = &[];\n",
    )
    .expect("OUT_DIR can be written");
}
