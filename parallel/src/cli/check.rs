//! `check`: random cases, bit by bit.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewise::Device;
use tilewise_parallel::{Error, Group};
use tilewise_watchdog::Watchdog;

use super::capture::refused_by_group;
use super::case::{CASE_LIMIT, Outcome, Place, run_case};
use super::devices::{self, Kind};

/// What to check.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run
    #[arg(long, value_enum, default_value_t = Kind::Gpu)]
    pub device: Kind,
    /// Number of ranks
    #[arg(long, default_value_t = 2)]
    pub ranks: usize,
    /// Number of cases
    #[arg(long, default_value_t = 1000)]
    pub cases: u64,
    /// Stop after so many seconds, whatever is left
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Seed of the first case; case number i has the seed + i
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The largest M, N or K
    #[arg(long, default_value_t = 700)]
    pub largest: usize,
    /// Delay a random rank before each run
    #[arg(long)]
    pub delays: bool,
    /// Exchange rows by NCCL; cases are dense and in equal parts, and sums over ranks are
    /// compared within their rounding where they are not exact. NCCL wants a GPU for each rank;
    /// with --processes, ranks may share one if NCCL_MULTI_RANK_GPU_ENABLE=1 is in the
    /// environment, from NCCL 2.30 on
    #[arg(long)]
    pub nccl: bool,
    /// Each rank is a process of its own, which this one starts
    #[arg(long)]
    pub processes: bool,
    /// Each rank is a thread that joins the others as a process does; not on GPUs
    #[arg(long, conflicts_with_all = ["nccl", "processes"])]
    pub threads: bool,
    /// Kill a process in the middle of its runs, so many times, and see what the others say
    #[arg(long, requires = "processes")]
    pub kill: Option<u64>,
}

impl Arguments {
    /// Whether ranks are members of a group, not of a `Group`.
    pub fn has_members(&self) -> bool {
        self.processes || self.threads
    }
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
    if arguments.nccl && Device::gpu_count() < arguments.ranks {
        let cases = arguments.cases;
        println!("{cases} cases skipped: NCCL wants a GPU for each rank of one process");
        return Ok(ExitCode::SUCCESS);
    }
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
    if arguments.device == Kind::Gpu {
        let _armed = watchdog.arm(CASE_LIMIT, "a capture");
        match refused_by_group(&group) {
            Ok(()) => println!("runs are refused while a stream captures"),
            Err(why) => {
                wrong += 1;
                println!("WRONG, while a stream captures: {why}");
            }
        }
    }
    for seed in (0..arguments.cases).map(|case| arguments.seed.wrapping_add(case)) {
        let is_over = |limit| begin.elapsed() >= Duration::from_secs(limit);
        if arguments.seconds.is_some_and(is_over) {
            break;
        }
        let armed = watchdog.arm(CASE_LIMIT, format!("case {seed}"));
        let place = Place::Group(&group);
        let (case, outcome) = run_case(
            seed,
            &place,
            arguments.largest,
            arguments.delays,
            arguments.nccl,
        );
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
