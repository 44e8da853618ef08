//! The WebAssembly module of the HTML page, for the program to embed: a machine that
//! measures needs no compiler to write the page.
//!
//! `explorer.rs` in `OUT_DIR` gets the module, or why there is none.

use std::path::PathBuf;
use std::{env, fs};

use ptx_builder::wasm;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
    let (variables, files) = wasm::watched();
    for variable in variables {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let explorer = match wasm::find() {
        Ok(toolchain) => {
            let module = wasm::build(&toolchain, &ptx_builder::cache_dir(&out));
            let module = module.unwrap_or_else(|error| panic!("{error}"));
            for warning in module.warnings {
                println!("cargo::warning=the page's module: {warning}");
            }
            fs::write(out.join("explorer.wasm"), module.bytes).expect("OUT_DIR can be written");
            "Ok(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/explorer.wasm\")))".to_owned()
        }
        Err(reason) => format!("Err({:?})", reason.to_string()),
    };
    let source = format!("const EXPLORER: Result<&[u8], &str> = {explorer};\n");
    fs::write(out.join("explorer.rs"), source).expect("OUT_DIR can be written");
}
