//! `check --processes` and `check --threads`: random cases whose ranks are members of a group.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise_parallel::Error;
use tilewise_watchdog::Watchdog;

use super::case::CASE_LIMIT;
use super::check::Arguments;
use super::crew::Crew;
use super::devices::{self, Kind};
use super::rank;

/// Seconds that ranks wait for each other, in cases.
const LIMIT: u64 = 60;

/// Runs the cases, or kills ranks.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    try_run(arguments).map_err(|error| Error::System {
        what: "running the ranks".into(),
        why: error.to_string(),
    })
}

fn try_run(arguments: &Arguments) -> io::Result<ExitCode> {
    let count = arguments.kill.unwrap_or(arguments.cases);
    if arguments.device != Kind::Cpu
        && let Err(error) = devices::open_one(arguments.device, 0)
    {
        println!("{count} cases skipped: {error}");
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.device == Kind::Gpu && arguments.threads {
        println!("{count} cases skipped: ranks on GPUs are processes, or a Group");
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.nccl && tilewise::Device::gpu_count() < arguments.ranks && !may_share() {
        println!(
            "{count} cases skipped: NCCL wants a GPU for each rank, or \
             NCCL_MULTI_RANK_GPU_ENABLE=1 in the environment"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let like = rank::Arguments {
        device: arguments.device,
        rank: 0,
        ranks: arguments.ranks,
        address: None,
        largest: arguments.largest,
        delays: arguments.delays,
        nccl: arguments.nccl,
        limit: LIMIT,
    };
    let kind = if arguments.threads {
        "threads"
    } else {
        "processes"
    };
    let (ranks, seed) = (arguments.ranks, arguments.seed);
    println!("{count} cases on {ranks} ranks, {kind}, seed {seed}");
    let wrong = match arguments.kill {
        Some(rounds) => kill(arguments, &like, rounds)?,
        None => cases(arguments, &like)?,
    };
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Whether the environment lets NCCL's ranks share a GPU. (The library asks for the same.)
fn may_share() -> bool {
    let value = std::env::var("NCCL_MULTI_RANK_GPU_ENABLE");
    value.is_ok_and(|value| value.trim().parse().is_ok_and(|value: i64| value != 0))
}

/// Whether the time for the cases is over.
fn is_over(arguments: &Arguments, begin: Instant) -> bool {
    let is_over = |limit| begin.elapsed() >= Duration::from_secs(limit);
    arguments.seconds.is_some_and(is_over)
}

/// Runs random cases, and returns how many are wrong.
fn cases(arguments: &Arguments, like: &rank::Arguments) -> io::Result<u64> {
    let watchdog = Watchdog::new(|| println!("a case did not end"));
    let begin = Instant::now();
    let joining = watchdog.arm(CASE_LIMIT, "joining");
    let mut crew = Crew::start(like, arguments.ranks, !arguments.threads)?;
    drop(joining);
    let (mut passed, mut wrong, mut runs) = (0, 0, 0);
    if arguments.device == Kind::Gpu {
        let _armed = watchdog.arm(CASE_LIMIT, "a capture");
        for (rank, answer) in crew.ask("capture")?.iter().enumerate() {
            if answer != "ok" {
                wrong += 1;
                println!("WRONG, while the streams capture, rank {rank}: {answer}");
            }
        }
    }
    for seed in (0..arguments.cases).map(|case| arguments.seed.wrapping_add(case)) {
        if is_over(arguments, begin) {
            break;
        }
        let _armed = watchdog.arm(CASE_LIMIT, format!("case {seed}"));
        let answers = crew.ask(&format!("case {seed}"))?;
        let done = |answer: &String| answer.strip_prefix("ok ")?.parse::<u64>().ok();
        match answers.iter().map(done).collect::<Option<Vec<_>>>() {
            Some(done) => {
                passed += 1;
                runs += done.first().copied().unwrap_or(0);
            }
            None => {
                wrong += 1;
                for (rank, answer) in answers.iter().enumerate() {
                    println!("WRONG, seed {seed}, rank {rank}: {answer}");
                }
            }
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{passed} passed ({runs} runs), {wrong} wrong, in {seconds:.1} s");
    Ok(wrong)
}

/// Kills a random rank in each round, and returns how often the others did not say so.
fn kill(arguments: &Arguments, like: &rank::Arguments, rounds: u64) -> io::Result<u64> {
    let watchdog = Watchdog::new(|| println!("the ranks that were left did not end"));
    let mut rng = SmallRng::seed_from_u64(arguments.seed);
    let begin = Instant::now();
    let (mut wrong, mut done, mut longest) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        if is_over(arguments, begin) {
            break;
        }
        let victim = rng.random_range(0..arguments.ranks);
        let _armed = watchdog.arm(CASE_LIMIT, format!("round {round}, without rank {victim}"));
        let mut crew = Crew::start(like, arguments.ranks, true)?;
        let delay = Duration::from_millis(rng.random_range(20..500));
        let (answers, time) = crew.kill(victim, delay)?;
        let expected = format!("ended rank {victim} is lost: ");
        for answer in answers
            .iter()
            .filter(|answer| !answer.starts_with(&expected))
        {
            wrong += 1;
            println!("WRONG, round {round}, without rank {victim}: {answer}");
        }
        done += 1;
        longest = longest.max(time);
    }
    let milliseconds = longest.as_secs_f64() * 1e3;
    println!("{done} ranks killed, {wrong} wrong; the others said so within {milliseconds:.1} ms");
    Ok(wrong)
}
