//! The options of `rounding`.

use crate::rounding::data::Data;
use clap::Args;
use std::path::PathBuf;

/// Options of `rounding`.
#[derive(Debug, Args)]
pub struct RoundingArgs {
    /// Kinds of data, with commas between.
    #[arg(long, value_delimiter = ',', default_values_t = Data::ALL)]
    pub data: Vec<Data>,

    /// Depths K, with commas between.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [32, 128, 512, 2048, 4096, 16384, 65536],
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    pub depths: Vec<u32>,

    /// M and N.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub size: u32,

    /// The seed of the data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The Python whose packages hold cuBLASLt.
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// Write the rows as CSV.
    #[arg(long, value_name = "CSV")]
    pub csv: Option<PathBuf>,
}
