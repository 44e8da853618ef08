//! `bench --processes`: each operation where every rank is a process, beside the product alone.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tilewise_parallel::Error;
use tilewise_watchdog::Watchdog;

use super::bench::{Arguments, title};
use super::crew::Crew;
use super::devices::{self, Kind};
use super::layer::RUNS;
use super::operations::name_of;
use super::rank;

/// The most that one layer may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Measures.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    try_run(arguments).map_err(|error| Error::System {
        what: "running the ranks".into(),
        why: error.to_string(),
    })
}

fn try_run(arguments: &Arguments) -> io::Result<ExitCode> {
    if let Err(error) = devices::open_one(Kind::Gpu, 0) {
        println!("nothing is measured: {error}");
        return Ok(ExitCode::SUCCESS);
    }
    let like = rank::Arguments {
        device: Kind::Gpu,
        rank: 0,
        ranks: arguments.gpus,
        address: None,
        largest: 0,
        delays: false,
        nccl: false,
        limit: 60,
    };
    let watchdog = Watchdog::new(|| println!("a measurement did not end"));
    let joining = watchdog.arm(LIMIT, "joining");
    let mut crew = Crew::start(&like, arguments.gpus, true)?;
    drop(joining);
    println!(
        "{} processes; bf16, milliseconds of the slower rank for each of {RUNS} runs that follow \
         each other, median of {}",
        arguments.gpus, arguments.rounds
    );
    for &[m, n, k] in &arguments.shapes {
        for &operation in &arguments.operations {
            let name = name_of(operation);
            let command = format!("bench {name} {m}x{n}x{k} {}", arguments.rounds);
            let _armed = watchdog.arm(LIMIT, command.clone());
            let (mut alone, mut members) = (0.0_f64, 0.0_f64);
            for answer in crew.ask(&command)? {
                let mut times = answer.strip_prefix("times ").unwrap_or("").split(' ');
                let mut next = || times.next()?.parse().ok();
                let (Some(of_alone), Some(of_members)): (Option<f64>, Option<f64>) =
                    (next(), next())
                else {
                    return Err(io::Error::other(answer));
                };
                (alone, members) = (alone.max(of_alone), members.max(of_members));
            }
            println!(
                "{} {m}×{n}×{k}: alone {alone:.4}, processes {members:.4}, {:.3} × alone",
                title(operation),
                members / alone
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
