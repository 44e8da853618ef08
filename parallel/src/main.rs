//! `tilewise-parallel`: checks, measures and predicts GEMM over several GPUs.

mod cli;

use std::process::ExitCode;

use clap::Parser;

/// GEMM over several GPUs of one host: check it, measure it, predict it.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Run random cases of every operation, and compare every bit
    Check(cli::check::Arguments),
    /// Measure every operation beside the product alone, and beside NCCL and the product
    Bench(cli::bench::Arguments),
    /// Draw what runs when, and estimate the time, for any number of GPUs; needs none
    Predict(cli::predict::Arguments),
    /// One rank of `check --processes`
    #[command(hide = true)]
    Rank(cli::rank::Arguments),
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Check(arguments) if arguments.has_members() => cli::members::run(&arguments),
        Command::Check(arguments) => cli::check::run(&arguments),
        Command::Bench(arguments) if arguments.processes => cli::measure::run(&arguments),
        Command::Bench(arguments) => cli::bench::run(&arguments),
        Command::Predict(arguments) => cli::predict::run(&arguments),
        Command::Rank(arguments) => cli::rank::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
