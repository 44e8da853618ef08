//! One layer of `bench --processes`, on one rank.

use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use tilewise::{Gemm, bf16};
use tilewise_parallel::program::Operation;
use tilewise_parallel::{Error, Member, Options};

use super::bench::{Sides, median, ms, random, shape};
use super::operations::of_name;
use super::timer::Timer;

/// Runs that follow each other, behind one that brings the ranks together.
pub const RUNS: u32 = 20;

/// Answers `bench OPERATION MxNxK ROUNDS`.
pub fn answer(member: &Member, command: &str) -> String {
    let mut words = command.split(' ').skip(1);
    let operation = words.next().and_then(of_name);
    let shape = words.next().and_then(|shape| self::shape(shape).ok());
    let rounds = words.next().and_then(|rounds| rounds.parse().ok());
    let (Some(operation), Some(shape), Some(rounds)) = (operation, shape, rounds) else {
        return format!("failed: no such command: {command}");
    };
    match measure(member, operation, shape, rounds) {
        Ok([alone, members]) => format!("times {} {}", ms(alone), ms(members)),
        Err(error) => format!("failed: {error}"),
    }
}

/// The times of the product alone, and of the operation.
fn measure(
    member: &Member,
    operation: Operation,
    [m, n, k]: [usize; 3],
    rounds: usize,
) -> Result<[Duration; 2], Error> {
    let device = member.device();
    let Sides {
        a_rows,
        own_n,
        own_k,
        c_rows,
    } = Sides::of(operation, [m, n, k], member.ranks());
    let mut rng = SmallRng::seed_from_u64(member.rank() as u64);
    let a = random(device, &mut rng, a_rows, own_k)?;
    let bt = random(device, &mut rng, own_n, own_k)?;
    let whole_a = random(device, &mut rng, m, own_k)?;
    let mut c = device.zeros::<bf16>(c_rows, own_n)?;
    let mut whole_c = device.zeros::<bf16>(m, own_n)?;
    let b = bt.view().t();
    let mut alone = Gemm::new(device).plan(&whole_a, b, &mut whole_c)?;
    let mut plan = member.plan(operation, &Options::new(), &a, b, &mut c)?;
    let timer = Timer::new(std::slice::from_ref(device))?;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds + 3 {
        let mut product = |runs: u32| -> Result<(), Error> {
            (0..runs).try_for_each(|_| Ok(alone.run(&whole_a, b, &mut whole_c)?))
        };
        product(1)?;
        let of_alone = timer.time(|| Ok(()), || product(RUNS))?;
        plan.run(&a, b, &mut c)?;
        let runs = || (0..RUNS).try_for_each(|_| plan.run(&a, b, &mut c));
        let of_members = timer.time(|| Ok(()), runs)?;
        plan.finish()?;
        // The first rounds load kernels and buffers.
        if round >= 3 {
            times[0].push(of_alone / RUNS);
            times[1].push(of_members / RUNS);
        }
    }
    Ok(times.map(|times| median(&times)))
}
