//! The code generator for the kernels, made ready before cargo needs it.
//!
//! Cargo shows the output of a build script only when the script has ended, and rust-cuda's
//! code generator takes minutes to compile. So the commands here that build the library
//! first choose the code generator, print the choice, and compile it where the user sees
//! the output.

use std::path::Path;

use anyhow::{Result, bail};
use ptx_builder::rust_cuda::{self, RustCuda};
use ptx_builder::{Codegen, Error, Generator, GeneratorChoice, NoToolchain, generator};

use crate::{project, setup};

/// Finds the code generator, or installs what rustc's needs, and says which and why.
pub fn choose(codegen: Codegen) -> Result<GeneratorChoice> {
    let choice = match generator::choose(codegen) {
        Err(Error::NoToolchain(NoToolchain::NotFound { .. })) => {
            if setup::device_toolchain().is_none() {
                bail!("the kernels cannot be built without the above");
            }
            generator::choose(codegen)?
        }
        result => result?,
    };
    println!("code generator: {choice}");
    Ok(choice)
}

/// Compiles the code generator, where it has to be.
pub fn prepare(generator: &Generator, cache: &Path) -> Result<(), Error> {
    let Generator::RustCuda(found) = generator else {
        return Ok(());
    };
    if let Some(words) = announcement(found, cache)? {
        println!("{words}");
    }
    rust_cuda::prepare(found, cache)
}

/// What to say before the code generator is compiled, the first time.
fn announcement(found: &RustCuda, cache: &Path) -> Result<Option<&'static str>, Error> {
    let first = !rust_cuda::is_prepared(found, cache)?;
    Ok(first.then_some(
        "rust-cuda's code generator is compiled now, once for this toolchain, LLVM and CUDA. It \
         needs\nnetwork, and takes minutes: seven on two busy cores.",
    ))
}

/// Makes ready the code generator that the build script of the library will use. If
/// `install`, gets one where none is there. A failure is printed only: the build script
/// can build without device code.
pub fn make_ready(install: bool) {
    let chosen = Codegen::from_env().map_err(Into::into).and_then(|codegen| {
        if install {
            choose(codegen)
        } else {
            Ok(generator::choose(codegen)?)
        }
    });
    let ready = chosen.and_then(|choice| {
        let cache = project::ptx_cache()?;
        Ok(prepare(&choice.generator, &cache)?)
    });
    if let Err(error) = ready {
        println!("code generator: {error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn the_first_build_is_announced_and_runs_cargo_in_the_open() {
        let machine = fake::Machine::complete();
        machine.file("rust-cuda/Cargo.lock", "");
        // cargo build --locked --package BUILDER
        let script = "echo $* > ../log; mkdir -p $CARGO_TARGET_DIR/debug; \
                      : > $CARGO_TARGET_DIR/debug/$5";
        machine.rustup_that_runs(fake::COMPONENTS, script);
        let found = machine.find().unwrap();
        let cache = machine.path("cache");
        let words = announcement(&found, &cache).unwrap().unwrap();
        assert!(words.contains("code generator is compiled now"), "{words}");
        prepare(&Generator::RustCuda(found.clone()), &cache).unwrap();
        let command = std::fs::read_to_string(machine.path("log")).unwrap();
        assert!(command.starts_with("cargo build --locked "), "{command}");
        assert_eq!(announcement(&found, &cache).unwrap(), None);
    }
}
