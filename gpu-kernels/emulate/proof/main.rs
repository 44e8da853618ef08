//! `emulator-proof`: shows that the emulator computes what a GPU does.
//!
//! The same launches run in both worlds on the same random bits: a probe
//! ([`gpu_kernels::probe`]) for each family of instructions, then random products
//! with the kernels themselves. It prints a report in Markdown, for
//! `docs/emulator.md`. `cargo xtask bundle` carries it to a machine with a GPU;
//! without one it says so and ends well.

mod args;
mod boxes;
mod conversions;
mod kernels;
mod matrices;
mod report;
mod tally;
mod values;
mod warp_products;
mod warpgroup_products;
mod worlds;

use std::process::ExitCode;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tilewise::Device;

use args::{Args, USAGE};
use report::Report;
use tally::Tally;
use worlds::Worlds;

/// A family of launches, and the heading of its rows.
type Section = (&'static str, fn(&Worlds, &mut StdRng) -> Vec<Tally>);

const SECTIONS: [Section; 5] = [
    ("Conversions", conversions::compare),
    ("Matrices of a warp", matrices::compare),
    ("Products of a warp", warp_products::compare),
    ("Products of a warpgroup", warpgroup_products::compare),
    ("TMA", boxes::compare),
];

/// The heading of the rows that are about whole products.
const KERNELS: &str = "Kernels";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let args = match Args::parse(words.into_iter()) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let device = if args.emulator_only {
        Device::cpu()
    } else {
        match Device::gpu(args.device) {
            Ok(device) => device,
            Err(error) => {
                println!("skipped: {error}");
                return ExitCode::SUCCESS;
            }
        }
    };
    let worlds = Worlds::new(&device);
    let mut report = Report::new(&device, args.seed);
    for (index, (heading, compare)) in SECTIONS.into_iter().enumerate() {
        if !args.selects(heading) {
            continue;
        }
        // Each section by itself, so that one alone repeats.
        let mut random = StdRng::seed_from_u64(args.seed ^ (index as u64) << 32);
        for tally in compare(&worlds, &mut random) {
            report.add(heading, &tally);
        }
    }
    if args.selects(KERNELS) {
        let mut random = StdRng::seed_from_u64(args.seed);
        for tally in kernels::compare(&device, args.problems, &mut random) {
            report.add(KERNELS, &tally);
        }
    }
    if report.finish() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
