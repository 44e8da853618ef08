//! `emulator-proof`: shows that the emulator computes what a GPU does.
//!
//! The same launches run on a GPU and in the emulator on the same random bits: a probe
//! ([`gpu_kernels::probe`]) for each family of instructions, then random products
//! with the kernels themselves. The program prints a report in Markdown, for
//! `docs/emulator.md`. `cargo xtask bundle` packs it for a machine with a GPU; without
//! a GPU the program says so and succeeds.

mod args;
mod boxes;
mod conversions;
mod kernels;
mod matrices;
mod refused;
mod report;
mod tally;
mod values;
mod warp_products;
mod warpgroup_products;
mod worlds;

use std::process::ExitCode;

use clap::Parser as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tilewise::Device;

use args::Args;
use report::Report;
use tally::Tally;
use worlds::Worlds;

/// A family of launches, and the heading of its rows.
type Section = (&'static str, fn(&Worlds, &mut StdRng) -> Vec<Tally>);

/// The heading of the section that needs the kernels of the library.
const PRODUCTS: &str = "Kernels";

/// TMA is last, because an address that a GPU refuses ends its context.
const SECTIONS: [Section; 6] = [
    ("Conversions", conversions::compare),
    ("Matrices of a warp", matrices::compare),
    ("Products of a warp", warp_products::compare),
    ("Products of a warpgroup", warpgroup_products::compare),
    (PRODUCTS, kernels::compare),
    ("TMA", boxes::compare),
];

fn main() -> ExitCode {
    let args = Args::parse();
    let device = if args.emulator_only {
        Device::cpu()
    } else {
        let device = Device::gpu(args.device);
        match device.and_then(|device| tilewise::probe::check(&device).map(|()| device)) {
            Ok(device) => device,
            Err(error) => {
                println!("skipped: {error}");
                return ExitCode::SUCCESS;
            }
        }
    };
    if let Some(index) = args.refused {
        // `exit` rather than a return, because a lost device cannot be closed.
        std::process::exit(refused::run_alone(index, &device));
    }
    let worlds = Worlds::new(&device, args.problems);
    let mut report = Report::new(&device, args.seed, args.details);
    if let Err(error) = worlds.load(args.selects(PRODUCTS)) {
        // A launch of such a kernel reports the same.
        eprintln!("not all kernels load: {error}");
    }
    for (index, (heading, compare)) in SECTIONS.into_iter().enumerate() {
        if !args.selects(heading) {
            continue;
        }
        eprintln!("=== {heading}");
        // Each section has its own generator, so that a single section can be repeated.
        let mut random = StdRng::seed_from_u64(args.seed ^ (index as u64) << 32);
        report.add(heading, compare(&worlds, &mut random));
    }
    // `exit` rather than a return, because a launch that hangs would block the closing of
    // the device.
    std::process::exit(if report.finish() { 0 } else { 1 })
}
