//! The command line.

use clap::Parser;

/// The emulator against a GPU, on the same random bits
#[derive(Clone, Debug, Parser)]
#[command(name = "emulator-proof")]
pub struct Args {
    /// Sections of the report: any part of their headings, in any case [default: all]
    #[arg(value_name = "HEADING")]
    headings: Vec<String>,
    /// What the random operands are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Random products with the kernels
    #[arg(long, default_value_t = 240)]
    pub problems: usize,
    /// Which GPU
    #[arg(long, default_value_t = 0)]
    pub device: usize,
    /// A row for each kind of operands, not for each instruction
    #[arg(long)]
    pub details: bool,
    /// Without a GPU: runs the emulator, compares it with itself
    #[arg(long)]
    pub emulator_only: bool,
    /// One launch that the GPU refuses, alone, as the program starts itself
    #[arg(long, value_name = "INDEX", hide = true)]
    pub refused: Option<usize>,
}

impl Args {
    /// Whether the section with this heading is wanted.
    pub fn selects(&self, heading: &str) -> bool {
        let heading = heading.to_lowercase();
        let wanted = |part: &String| heading.contains(&part.to_lowercase());
        self.headings.is_empty() || self.headings.iter().any(wanted)
    }
}
