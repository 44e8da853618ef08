//! `rank`: one rank of `check --processes`, which tells it what to do, line by line.

use std::io::{BufRead, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use tilewise_parallel::{Error, Member};
use tilewise_watchdog::Watchdog;

use super::capture::refused_by_member;
use super::case::{self, CASE_LIMIT, run_case};
use super::devices::{self, Kind};
use super::layer;

/// Which rank this is.
#[derive(clap::Args, Clone)]
pub struct Arguments {
    /// The kind of its device
    #[arg(long, value_enum)]
    pub device: Kind,
    /// Its number
    #[arg(long)]
    pub rank: usize,
    /// Number of ranks
    #[arg(long)]
    pub ranks: usize,
    /// Where rank 0 listens
    #[arg(long)]
    pub address: Option<String>,
    /// The largest M, N or K
    #[arg(long)]
    pub largest: usize,
    /// Delay a random rank before each run
    #[arg(long)]
    pub delays: bool,
    /// Exchange rows by NCCL
    #[arg(long)]
    pub nccl: bool,
    /// Seconds that ranks wait for each other
    #[arg(long)]
    pub limit: u64,
}

/// Does what it is told on stdin.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let (commands, mut answers) = (std::io::stdin().lock(), std::io::stdout());
    let result = serve(arguments, commands, &mut answers);
    // Whoever asked may be gone.
    Ok(result.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// Answers every command with a line, until there are no more.
pub fn serve(
    arguments: &Arguments,
    commands: impl BufRead,
    answers: &mut impl Write,
) -> std::io::Result<()> {
    let watchdog = Watchdog::new(|| {});
    let armed = watchdog.arm(CASE_LIMIT, "joining");
    let member = join(arguments, answers)?;
    drop(armed);
    match &member {
        Ok(_) => writeln!(answers, "joined")?,
        Err(error) => writeln!(answers, "failed {error}")?,
    }
    answers.flush()?;
    for command in commands.lines() {
        let (command, Ok(member)) = (command?, &member) else {
            break;
        };
        let rank = arguments.rank;
        let _armed = watchdog.arm(CASE_LIMIT, format!("{command} on rank {rank}"));
        let answer = match command.strip_prefix("case ").map(str::parse) {
            Some(Ok(seed)) => {
                let place = case::Place::Member(member);
                let (largest, delays) = (arguments.largest, arguments.delays);
                match run_case(seed, &place, largest, delays, arguments.nccl) {
                    (_, Ok(outcome)) => format!("ok {}", outcome.runs),
                    (case, Err(why)) => format!("wrong {why} {case:?}"),
                }
            }
            _ if command == "capture" => match refused_by_member(member) {
                Ok(()) => "ok".into(),
                Err(why) => format!("wrong {why}"),
            },
            _ if command.starts_with("bench ") => layer::answer(member, &command),
            _ => {
                let side = if member.device().stream().is_some() {
                    4096
                } else {
                    64
                };
                let ended = case::load(member, side, arguments.nccl);
                format!(
                    "ended {}",
                    ended.map_or_else(|e| e.to_string(), |()| String::new())
                )
            }
        };
        writeln!(answers, "{}", answer.replace('\n', " "))?;
        answers.flush()?;
    }
    Ok(())
}

/// Joins the others. Rank 0 says first where it listens.
fn join(arguments: &Arguments, answers: &mut impl Write) -> std::io::Result<Result<Member, Error>> {
    let limit = Duration::from_secs(arguments.limit);
    let device = match devices::open_one(arguments.device, arguments.rank) {
        Ok(device) => device,
        Err(error) => return Ok(Err(error.into())),
    };
    match &arguments.address {
        Some(address) => {
            let (rank, ranks) = (arguments.rank, arguments.ranks);
            Ok(Member::join(&device, rank, ranks, address.as_str(), limit))
        }
        None => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            writeln!(answers, "{}", listener.local_addr()?)?;
            answers.flush()?;
            Ok(Member::listen(&device, arguments.ranks, listener, limit))
        }
    }
}
