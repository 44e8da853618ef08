//! `cargo xtask ptx --opt-level`: the proof that no kernel can hang, for kernels compiled
//! in other ways than the library's. What a compiler does to them at its best level today
//! it may do at another, or in another release; the proof is to hold because of how the
//! kernels are written.

use std::time::Instant;

use anyhow::{Result, bail};
use gpu_kernels::Arch;
use ptx_builder::toolchain::{self, Toolchain};
use ptx_builder::{Codegen, Generator, OptLevel, gates};

use super::parallel_map;
use crate::{generator, project};

/// Compiles the kernels of `archs`, or of all targets, at each of `levels`: by the
/// compiler of the build, or by every one that can be had.
pub fn run(archs: &[Arch], levels: &[OptLevel], every_rustc: bool) -> Result<()> {
    let archs = if archs.is_empty() { &Arch::ALL } else { archs };
    let compilers = if every_rustc {
        let (found, lacking) = toolchain::find_all();
        for reason in lacking {
            println!("not run: {reason}");
        }
        found
    } else {
        match generator::choose(Codegen::Rustc)?.generator {
            Generator::Rustc(toolchain) => vec![toolchain],
            Generator::RustCuda(_) => Vec::new(),
        }
    };
    if compilers.is_empty() {
        bail!("no rustc can compile the kernels");
    }
    let cache = project::ptx_cache()?;
    let mut failures = 0;
    for compiler in compilers {
        let generator = Generator::Rustc(compiler.clone());
        for &level in levels {
            let start = Instant::now();
            let proved = parallel_map(archs, |&arch| {
                let build = ptx_builder::build_unchecked(&generator, arch, level, &cache)?;
                let mut divergent = Vec::new();
                for program in &build.programs {
                    for violation in gates::check_convergence(&program.ptx)? {
                        divergent.push(format!("{}: {violation}", program.kernel.name));
                    }
                }
                Ok::<_, ptx_builder::Error>((build.programs.len(), divergent))
            });
            let (mut kernels, mut divergent) = (0, Vec::new());
            for result in proved {
                let (count, found) = result?;
                kernels += count;
                divergent.extend(found);
            }
            print_row(&compiler, level, kernels, divergent.len(), start);
            for line in &divergent {
                println!("  {line}");
            }
            failures += divergent.len();
        }
    }
    if failures > 0 {
        bail!("{failures} warp-aligned instructions in divergent code");
    }
    Ok(())
}

fn print_row(
    compiler: &Toolchain,
    level: OptLevel,
    kernels: usize,
    divergent: usize,
    start: Instant,
) {
    let (version, level) = (compiler.version(), level.name());
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{version}, opt-level {level}: {kernels} kernels, {divergent} instructions in divergent \
         code ({seconds:.0} s)"
    );
}
