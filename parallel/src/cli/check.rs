//! `check`: random cases, bit by bit.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::{bf16, f16};
use tilewise_parallel::{Error, Group};
use tilewise_watchdog::Watchdog;

use super::case::{Case, Outcome};
use super::devices::{self, Kind};

/// The most that one case may take: most of it is the reference, on one device.
const CASE_LIMIT: Duration = Duration::from_secs(120);

/// What to check.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run
    #[arg(long, value_enum, default_value_t = Kind::Gpu)]
    device: Kind,
    /// Number of ranks
    #[arg(long, default_value_t = 2)]
    ranks: usize,
    /// Number of cases
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// Stop after so many seconds, whatever is left
    #[arg(long)]
    seconds: Option<u64>,
    /// Seed of the first case; case number i has the seed + i
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The largest M, N or K
    #[arg(long, default_value_t = 700)]
    largest: usize,
    /// Delay a random rank before each run
    #[arg(long)]
    delays: bool,
    /// Exchange rows by NCCL; cases are dense and in equal parts, and sums over ranks are
    /// compared within their rounding where they are not exact
    #[arg(long)]
    nccl: bool,
}

/// Runs the cases. On a machine without a GPU, cases for GPUs are skipped, and counted.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let devices = match devices::open(arguments.device, arguments.ranks) {
        Ok(devices) => devices,
        Err(error) if arguments.device != Kind::Cpu => {
            println!("{} cases skipped: {error}", arguments.cases);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error.into()),
    };
    let group = Group::new(&devices)?;
    println!(
        "{} cases on {} ranks, seed {}: {}",
        arguments.cases,
        arguments.ranks,
        arguments.seed,
        devices
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let watchdog = Watchdog::new(|| println!("a case did not end"));
    let begin = Instant::now();
    let (mut passed, mut wrong, mut runs) = (0, 0, 0);
    for seed in (0..arguments.cases).map(|case| arguments.seed.wrapping_add(case)) {
        let is_over = |limit| begin.elapsed() >= Duration::from_secs(limit);
        if arguments.seconds.is_some_and(is_over) {
            break;
        }
        let armed = watchdog.arm(CASE_LIMIT, format!("case {seed}"));
        let mut rng = SmallRng::seed_from_u64(seed);
        let case = Case::random(
            &mut rng,
            arguments.ranks,
            arguments.largest,
            arguments.delays,
        );
        let case = if arguments.nccl { case.by_nccl() } else { case };
        let outcome = match rng.random_range(0..6) {
            0 | 1 => case.run::<bf16, bf16>(&group, &mut rng),
            2 => case.run::<f16, f16>(&group, &mut rng),
            3 => case.run::<f16, f32>(&group, &mut rng),
            4 => case.run::<bf16, f32>(&group, &mut rng),
            _ => case.run::<f32, f32>(&group, &mut rng),
        };
        drop(armed);
        match outcome {
            Ok(Outcome { runs: more }) => {
                passed += 1;
                runs += more;
            }
            Err(why) => {
                wrong += 1;
                println!("WRONG, seed {seed}: {why}\n  {case:?}");
            }
        }
    }
    println!(
        "{passed} passed ({runs} runs), {wrong} wrong, in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
