//! `cargo xtask ptx --opt-level`: the proof that no kernel can hang, for kernels compiled
//! in other ways than the library's. Another level of optimisation, or another release,
//! may transform the kernels in another way; the proof must hold because of how they are
//! written.

use std::time::Instant;

use anyhow::{Result, bail};
use gpu_kernels::Arch;
use ptx_builder::{Error, OptLevel, Toolchain, toolchain};
use rayon::prelude::*;

use crate::project;

/// Compiles the kernels of `archs`, or of all targets, at each of `levels`: by the
/// compiler of the build, or by every one that can be had. `units` has the codegen units of a
/// target that are compiled.
pub fn run(
    archs: &[Arch],
    units: fn(Arch) -> Vec<&'static str>,
    levels: &[OptLevel],
    every_rustc: bool,
) -> Result<()> {
    let archs = if archs.is_empty() { &Arch::ALL } else { archs };
    let toolchains: Vec<Toolchain> = if every_rustc {
        let (found, lacking) = toolchain::find_all();
        for reason in lacking {
            println!("not run: {reason}");
        }
        found
    } else {
        vec![toolchain::find()?]
    };
    if toolchains.is_empty() {
        bail!("no rustc can compile the kernels");
    }
    let cache = project::ptx_cache()?;
    let mut failures = 0;
    for toolchain in &toolchains {
        for &level in levels {
            let start = Instant::now();
            let prove = |&arch: &Arch| {
                let build = ptx_builder::build_units(toolchain, arch, &units(arch), level, &cache)?;
                Ok((build.programs.len(), build.divergences()?))
            };
            let proved: Vec<_> = archs.par_iter().map(prove).collect::<Result<_, Error>>()?;
            let kernels: usize = proved.iter().map(|(count, _)| count).sum();
            let divergences: Vec<_> = proved.into_iter().flat_map(|(_, found)| found).collect();
            println!(
                "{}, opt-level {}: {kernels} kernels, {} instructions in divergent code ({:.0} s)",
                toolchain.version(),
                level.name(),
                divergences.len(),
                start.elapsed().as_secs_f64()
            );
            for (kernel, divergence) in &divergences {
                println!("  {kernel}: could hang: {divergence}");
            }
            failures += divergences.len();
        }
    }
    if failures > 0 {
        bail!("{failures} warp-aligned instructions in divergent code");
    }
    Ok(())
}
