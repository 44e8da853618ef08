//! The program `tilewise-bench`; see [`tilewise_benches`].

use clap::Parser;
use env_logger::Env;
use std::process::ExitCode;
use tilewise_benches::cli::{Cli, Command};
use tilewise_benches::commands::{bench, host_cost, matmul, order, page, rounding, study, sweep};

fn main() -> ExitCode {
    // The library's warnings; RUST_LOG=tilewise=trace shows what its tuner times.
    env_logger::Builder::from_env(Env::default().default_filter_or("warn")).init();
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::HostCost(args) => host_cost::run(&args),
        Command::Order(args) => order::run(&args).map(|text| print!("{text}")),
        Command::Page(args) => page::run(&args),
        Command::Study(args) => study::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Rounding(args) => rounding::run(&args),
        Command::Matmul(args) => matmul::run(&args).map(|done| println!("{done}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
